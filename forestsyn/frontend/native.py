"""The native topology file: text to Topology, and the command line's T (file, machine or shape) to Topology."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from forestsyn.errors import InputError
from forestsyn.frontend.builder import MAXIMUM_VERTICES, TopologyBuilder
from forestsyn.frontend.catalog import machine_names, read_machine, split_spec, unknown_machine
from forestsyn.frontend.decode import decode
from forestsyn.frontend.document import Document, Marks, located, parse_document, read_text
from forestsyn.frontend.hosts import Context, add_box, add_fabrics, add_hosts
from forestsyn.frontend.pattern import Namespace, check_name
from forestsyn.frontend.quantity import check_bandwidth_unit
from forestsyn.frontend.rates import Rates
from forestsyn.frontend.repairs import apply_exceptions
from forestsyn.frontend.schema import SwitchDefaults, TopologyFile
from forestsyn.frontend.shaped import add_shape, shape_names, shape_text
from forestsyn.frontend.speeds import SpeedReader
from forestsyn.ir.topology import Topology, VertexKind
from forestsyn.units import format_count

if TYPE_CHECKING:
    from forestsyn.frontend.imports.load import ImportRequest

VERSION = 1
_NATIVE_KEY = re.compile(rb"""^[ \t{]*["']?forestsyn["']?[ \t]*:""", re.MULTILINE)
_HEAD_BYTES = 65_536
_FILE_ENDINGS = (".yaml", ".yml", ".json")
_SHAPE_KEYS = (
    "ring",
    "full",
    "switch",
    "hypercube",
    "mesh",
    "torus",
    "fat_tree",
    "dragonfly",
    "rail_optimized",
)
_BOX_KEYS = ("gpus", "switches", "nics", "cpus", "links")


def load_topology(spec: str, request: ImportRequest | None = None) -> Topology:
    """The topology of a file, a catalog machine (`dgx-a100:2`) or a shape (`torus:4x4`). Raises InputError.

    A file may be native or of any kind that `imports` reads; `request` holds the answers to what such a file does not
    say, and files that go with it.
    """
    composed = request is not None and request.is_given
    if composed or is_foreign(spec):
        from forestsyn.frontend.imports.load import ImportRequest, load_foreign

        told = load_foreign([spec], request or ImportRequest())
        if told is not None:
            return found_topology(told.document, spec, told.notes)
    if _names_file(spec):
        return parse_topology(read_text(Path(spec)), source=spec)
    document, sizes = _read_spec(spec)
    with located(spec[:80]):
        return _complete(document, sizes)


def parse_topology(text: str, *, source: str) -> Topology:
    """The topology of the native file `text`; `source` names it in messages. Raises InputError."""
    return _complete(parse_document(text, source=source), ())


def found_topology(document: dict[str, Any], source: str, notes: tuple[str, ...] = ()) -> Topology:
    """The topology of the plain values of a native file, with `notes` before its own. Raises InputError."""
    topology = _complete(Document(document, Marks(0, {}), source), ())
    return msgspec.structs.replace(topology, notes=(*notes, *topology.notes))


def is_foreign(spec: str) -> bool:
    """Whether `spec` is a readable file whose beginning has no key of native files."""
    if not _names_file(spec):
        return False
    try:
        with Path(spec).open("rb") as file:
            return _NATIVE_KEY.search(file.read(_HEAD_BYTES)) is None
    except (OSError, ValueError):
        return False


def _names_file(spec: str) -> bool:
    if "/" in spec or "\\" in spec or spec.lower().endswith(_FILE_ENDINGS):
        return True
    try:
        return Path(spec).is_file()
    except (OSError, ValueError):
        return False


def _read_spec(spec: str) -> tuple[Document, tuple[int, ...]]:
    """The file of a machine or shape, and the sizes that `spec` gives to its parameters."""
    name, sizes = split_spec(spec)
    if name in machine_names():
        return read_machine(name), sizes
    shapes = {shape.name: shape for shape in shape_names()}
    if name not in shapes:
        raise unknown_machine(name, (*machine_names(), *shapes))
    with located(spec):
        document = parse_document(shape_text(shapes[name], sizes), source=spec)
    return Document(document.value, Marks(0, {}), spec), ()


def _complete(document: Document, sizes: tuple[int, ...]) -> Topology:
    """Expand the file, apply its exceptions, choose its ranks."""
    file = _read_file(document)
    variables = _parameters(file, document, sizes)
    builder = _expand(document, file, variables, None, None)
    if sizes:
        builder.name = "-".join([builder.name, "x".join(map(str, sizes))])
    reader = _reader(document, file, Rates(builder.rates))
    removed = apply_exceptions(file.exceptions, builder, document, reader, variables)
    ranks = _choose_ranks(file, document, builder, removed, variables)
    gone = set(removed)
    if not file.relay:
        chosen = set(ranks)
        gpus = [p for p, vertex in enumerate(builder.vertices) if vertex.kind is VertexKind.GPU]
        gone |= {position for position in gpus if position not in chosen}
    with located(document.where("ranks")):
        if len(ranks) < 2:
            raise InputError(f"a collective needs at least 2 ranks, found {len(ranks)}", hint="only GPUs are ranks")
    return builder.finish(ranks, gone)


def _read_file(document: Document) -> TopologyFile:
    value = document.value
    if not isinstance(value, dict) or "forestsyn" not in value:
        raise InputError(
            "this is no native topology: the key 'forestsyn' is missing",
            where=document.where(),
            hint="begin the file with the line 'forestsyn: 1'",
        )
    if value["forestsyn"] != VERSION or isinstance(value["forestsyn"], bool):
        raise InputError(
            f"format version {str(value['forestsyn'])[:20]!r} is not supported, expected {VERSION}",
            where=document.where("forestsyn"),
        )
    return decode(document, (), TopologyFile)


def _parameters(file: TopologyFile, document: Document, sizes: tuple[int, ...]) -> dict[str, int]:
    """The values of the parameters: the sizes in order, or else the defaults."""
    values = dict(file.parameters)
    for name in values:
        if not (name.isascii() and name.isidentifier()):
            raise InputError(f"the parameter name {name[:40]!r} is not accepted", where=document.where("parameters"))
    machine = document.source.removesuffix(".yaml")
    where = None if sizes else document.source  # sizes stand in the command or another file
    if sizes and len(sizes) != len(values):
        takes = f"takes {len(values)} ({' x '.join(values)})" if values else "takes none"
        raise InputError(f"found {format_count(len(sizes), 'size')} after ':', {machine} {takes}", where=where)
    values.update(zip(values, sizes, strict=False))
    for name, value in values.items():
        if not 1 <= value <= MAXIMUM_VERTICES:
            raise InputError(
                f"{name} is {value:,}, expected 1 to {MAXIMUM_VERTICES:,}",
                where=where,
                hint=f"give 1 or more, as in {machine}:{'x'.join('2' for _ in values)}" if sizes else None,
            )
    return values


def _reader(document: Document, file: TopologyFile, rates: Rates) -> SpeedReader:
    with located(document.where("unit")):
        return SpeedReader(unit=check_bandwidth_unit(file.unit), rates=rates)


def _expand(
    document: Document,
    file: TopologyFile,
    variables: dict[str, int],
    rates: Rates | None,
    switch_defaults: SwitchDefaults | None,
) -> TopologyBuilder:
    """All vertices and links of the file; `rates` and `switch_defaults`, when given, overrule those of the file."""
    rates = rates or file.rates
    if switch_defaults is None and "switch_defaults" in document.value:
        switch_defaults = file.switch_defaults
    kind = _content(document, file)
    if kind == "use":
        return _expand_used(document, file, rates, switch_defaults)
    builder = TopologyBuilder(_topology_name(document, file))
    builder.rates = (rates or Rates.SPEC).value
    builder.switch_defaults = switch_defaults or file.switch_defaults
    reader = _reader(document, file, Rates(builder.rates))
    context = Context(document=document, file=file, reader=reader, variables=variables)
    if kind == "box":
        add_box(context, builder)
    elif kind == "hosts":
        add_fabrics(context, builder, add_hosts(context, builder))
    else:
        with located(document.where(kind.replace("_", "-"))):
            add_shape(kind, file, reader, variables, builder)
    return builder


def _content(document: Document, file: TopologyFile) -> str:
    """Which one way of describing the network the file uses: use, box, hosts or a shape key."""
    value = document.value
    found = [key for key in _SHAPE_KEYS if getattr(file, key) is not None]
    if file.use is not None:
        found.append("use")
    if any(key in value for key in _BOX_KEYS):
        found.append("box")
    if any(key in value for key in ("templates", "hosts", "fabric")):
        found.append("hosts")
    if len(found) == 1:
        if file.link is not None and found[0] not in _SHAPE_KEYS:
            raise InputError("'link' goes with a shape only", where=document.where("link"))
        return found[0]
    words = {"box": "devices at the top level (gpus, links)", "hosts": "templates, hosts and fabric"}
    shown = " and ".join(words.get(key, key.replace("_", "-")) for key in found)
    raise InputError(
        f"the file describes its network by {shown}, expected one way" if found else "the file describes no network",
        where=document.where(),
        hint="give gpus and links (one box), or templates and hosts (a cluster), or use: MACHINE, or a shape",
    )


def _expand_used(
    document: Document, file: TopologyFile, rates: Rates | None, switch_defaults: SwitchDefaults | None
) -> TopologyBuilder:
    with located(document.where("use")):
        assert file.use is not None, "the caller chose this way because of it"
        inner, sizes = _read_spec(file.use)
        inner_file = _read_file(inner)
        builder = _expand(inner, inner_file, _parameters(inner_file, inner, sizes), rates, switch_defaults)
    if file.name is not None:
        builder.name = _topology_name(document, file)
    return builder


def _topology_name(document: Document, file: TopologyFile) -> str:
    if file.name is not None:
        with located(document.where("name")):
            return check_name(file.name, "topology")
    stem = Path(document.source).name.partition(".")[0]
    return "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in stem)[:64].strip("-") or "topology"


def _choose_ranks(
    file: TopologyFile,
    document: Document,
    builder: TopologyBuilder,
    removed: dict[int, str],
    variables: dict[str, int],
) -> list[int]:
    """Positions of the ranks in rank order: those listed, or all GPUs that are not removed."""
    vertices = builder.vertices
    if file.ranks is None:
        return [p for p, vertex in enumerate(vertices) if vertex.kind is VertexKind.GPU and p not in removed]
    with located(document.where("ranks")):
        namespace = Namespace(builder.names)
        listed = [file.ranks] if isinstance(file.ranks, str) else file.ranks
        ranks: list[int] = []
        for pattern in listed:
            for position in namespace.select(pattern, variables):
                wildcard = "*" in pattern or "?" in pattern
                if vertices[position].kind is not VertexKind.GPU and not wildcard:
                    raise InputError(
                        f"'{vertices[position].name}' is a {vertices[position].kind}, only GPUs are ranks"
                    )
                if position in removed and not wildcard:
                    raise InputError(f"'{vertices[position].name}' is listed but removed: {removed[position]}")
                if vertices[position].kind is VertexKind.GPU and position not in removed:
                    ranks.append(position)
        if len(set(ranks)) < len(ranks):
            twice = next(position for place, position in enumerate(ranks) if position in ranks[:place])
            raise InputError(f"'{vertices[twice].name}' is listed twice", hint="a GPU is one rank")
        return ranks
