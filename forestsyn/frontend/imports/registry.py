"""Which reader reads a file, and what several files tell together.

Files play three parts: about a machine (a box of GPUs), about a fabric (switches, and the hosts on them), or beside
one of these (`Reader.helps`). A fabric takes the machine's file as the template of its hosts.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import msgspec

from forestsyn.errors import InputError
from forestsyn.frontend.document import read_bytes
from forestsyn.frontend.imports.kinds import Found, Helper, HostTemplate, Options, Reader
from forestsyn.frontend.imports.text import MAXIMUM_BYTES, decode_bytes

_HEAD = 20_000
_PACKAGE = "forestsyn.frontend.imports"
#: Module and class of each reader; of two that are equally sure, the first is taken.
_MACHINES = (
    *(("nvidia_topo", "NvidiaTopo"), ("nvidia_topo", "NvidiaHelper"), ("amd_smi", "RocmSmi"), ("amd_smi", "AmdSmi")),
    *(("nccl_xml", "NcclXml"), ("hwloc_xml", "HwlocXml"), ("nvidia_words", "WordsOnly")),
)
_FABRICS = (
    *(("ibnetdiscover", "IbNetDiscover"), ("slurm_conf", "SlurmConf"), ("slurm_yaml", "SlurmYaml")),
    *(("topograph", "TopographModel"), ("topograph", "NodeLabels")),
)
_NETWORKS = (
    *(("astra_yml", "AstraYml"), ("simai_topology", "SimAiTopology"), ("ns3_topology", "Ns3Topology")),
    *(("htsim_topology", "HtsimTopology"), ("taccl_json", "TacclTopology"), ("taccl_json", "TacclSketch")),
    *(("teccl_json", "TecclJson"), ("graph_text", "NodeLinkJson"), ("graph_text", "GmlText")),
    *(("graph_text", "GraphMlText"), ("graph_text", "DotText")),
)
_HELPERS = (("ibnetdiscover_helpers", "IbStat"), ("ibnetdiscover_helpers", "HostList"))
_FABRIC_KINDS = (
    "ibnetdiscover",
    "slurm-topology",
    "slurm-topology-yaml",
    "topograph-model",
    "kubernetes-labels",
)


class SourceText(msgspec.Struct, frozen=True):
    """The text of a file and the name that messages give it."""

    source: str
    text: str


def readers() -> tuple[Reader, ...]:
    """All readers, in the order in which they are asked."""
    places = (*_MACHINES, *_FABRICS, *_NETWORKS, *_HELPERS)
    return tuple(getattr(import_module(f"{_PACKAGE}.{module}"), name)() for module, name in places)


def recognize(source: SourceText, kind: str | None = None) -> Reader | None:
    """The reader that is surest of the text, or the one called `kind`; None when none knows it. Raises InputError."""
    known = readers()
    if kind is not None:
        for reader in known:
            if reader.kind == kind:
                return reader
        kinds = ", ".join(reader.kind for reader in known)
        raise InputError(f"no kind of file is called '{kind[:40]}'", where="--kind", hint=f"known: {kinds}")
    head = source.text[:_HEAD].replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
    name = Path(source.source).name
    scores = [(reader.recognizes(name, head), -place) for place, reader in enumerate(known)]
    score, place = max(scores)
    return known[-place] if score else None


def read_source(path: Path) -> SourceText:
    """The text of a foreign file, whatever its encoding. Raises InputError."""
    return SourceText(str(path), decode_bytes(read_bytes(path, MAXIMUM_BYTES), source=str(path)))


def read_sources(
    sources: Sequence[SourceText],
    options: Options,
    *,
    kind: str | None = None,
    beside: Sequence[SourceText] = (),
) -> Found:
    """What the files tell together: one machine, one fabric with its hosts, or one network, and helpers of these.

    `kind` is that of the first file; `beside` are helpers whatever they look like. Raises InputError for a file
    that no reader knows and for files that do not go together.
    """
    if not sources:
        raise InputError("no file is given", where="import")
    chosen = [_known(source, kind if place == 0 else None) for place, source in enumerate(sources)]
    kinds = {reader.kind for reader in chosen}
    pairs = list(zip(chosen, sources, strict=True))
    helping = [pair for pair in pairs if pair[0].helps is not None and _helped(pair[0], kinds)]
    main = [pair for pair in pairs if pair not in helping] or [helping.pop(0)]
    helpers = tuple(Helper(source.source, source.text) for source in (*(source for _, source in helping), *beside))
    options = msgspec.structs.replace(options, helpers=(*options.helpers, *helpers))
    fabrics = [pair for pair in main if is_fabric(pair[0])]
    machines = [pair for pair in main if pair not in fabrics]
    if len(fabrics) == 1 and machines:
        options = msgspec.structs.replace(options, templates=(*options.templates, *_templates(machines, options)))
        machines = []
    reader, source = (*fabrics, *machines)[0]
    if len(fabrics) + len(machines) > 1:
        told = ", ".join(f"{one.kind} ({text.source})" for one, text in (*fabrics, *machines))
        raise InputError(
            f"these files do not go together: {told}",
            where=source.source,
            hint="give one file, a fabric and its hosts (--host 'PATTERN=FILE' for several kinds), or --beside FILE",
        )
    return reader.read(source.text, source=source.source, options=options)


def is_fabric(reader: Reader) -> bool:
    """Whether the reader's files describe switches and hosts without what hosts hold."""
    return reader.kind in _FABRIC_KINDS


def is_machine(reader: Reader) -> bool:
    """Whether the reader's files describe one host."""
    return type(reader).__name__ in {name for _, name in _MACHINES}


def _known(source: SourceText, kind: str | None) -> Reader:
    reader = recognize(source, kind)
    if reader is None:
        titles = ", ".join(dict.fromkeys(reader.title for reader in readers()))
        raise InputError(
            "no reader recognizes this file", where=source.source, hint=f"read are: {titles}; or name it by --kind"
        )
    return reader


def _helped(reader: Reader, kinds: set[str]) -> bool:
    return any(kind == reader.helps for kind in kinds)


def _templates(pairs: Sequence[tuple[Reader, SourceText]], options: Options) -> list[HostTemplate]:
    from forestsyn.frontend.imports.compose_plain import found_template
    from forestsyn.frontend.imports.kinds import require_answers

    templates = []
    for reader, source in pairs:
        found = reader.read(source.text, source=source.source, options=options)
        require_answers(found, source=source.source)
        templates.append(found_template(found, pattern="*", source=source.source))
    if len(templates) > 1:
        raise InputError(
            "two files describe hosts of one fabric",
            where=pairs[1][1].source,
            hint="say which is which: --host 'PATTERN=FILE'",
        )
    return templates
