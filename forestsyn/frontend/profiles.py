"""Profiles of runtimes on machines: `forestsyn/profiles/*.yaml` by name, and files of the same form.

A file names the costs of `forestsyn.ir.profile.Profile`, the machines it is meant for (patterns of topology names)
and, under `sources`, where each number comes from: by the field's name, or `PROTOCOL.FIELD` where protocols differ.
`docs/profiles.md` explains every key.
"""

from __future__ import annotations

import difflib
import re
from fnmatch import fnmatchcase
from importlib import resources
from pathlib import Path

import msgspec

from forestsyn.errors import InputError
from forestsyn.frontend.decode import Path as Place
from forestsyn.frontend.decode import decode
from forestsyn.frontend.document import Document, parse_document, read_text
from forestsyn.frontend.schema import Strict
from forestsyn.ir.profile import LinkClass, Profile, ProtocolCost
from forestsyn.ir.program import Protocol
from forestsyn.ir.topology import Topology, VertexKind

VERSION = 1
#: What is taken where neither the name nor the links of a topology say more.
GENERIC = "generic"

_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{0,15})?([eE][+-]?[0-9]{1,2})?")
_SHARE = re.compile(r"([0-9]{1,9})/([0-9]{1,9})")
_SIZES = re.compile(r"-[0-9]+(x[0-9]+)*")
_FILE_ENDINGS = (".yaml", ".yml", ".json")
_BYTES_MAX = 1 << 40
_COUNT_MAX = 1 << 20
_TIME_MAX = 1e6
_RATE_MAX = 1e5
#: GB/s from a GPU to the switches of its host, from which on it is taken for one of this generation.
_GENERATIONS = ((600, "nvidia-b200"), (350, "nvidia-h100"), (200, "nvidia-a100"), (0, "nvidia-v100"))

Number = int | str


class ProtocolEntry(Strict, frozen=True, kw_only=True):
    """One protocol as the file writes it, see `ProtocolCost`."""

    message_bytes: int
    messages_in_flight: int
    slices: int
    efficiency: Number
    threadblock_GBps: dict[str, Number]
    step_us: Number
    latency_us: dict[str, Number]


class ProfileFile(Strict, frozen=True, kw_only=True):
    """The whole file. machines: patterns of topology names for which it is taken unless another is asked for."""

    profile: int
    name: str
    launch_us: Number
    copy_GBps: Number
    protocols: dict[str, ProtocolEntry]
    title: str = ""
    machines: tuple[str, ...] = ()
    sources: dict[str, str] = msgspec.field(default_factory=dict)


class ProfileInfo(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A profile that comes with the package. machines: patterns of the topology names it is taken for."""

    name: str
    title: str
    machines: tuple[str, ...]
    profile: Profile


def load_profile(spec: str) -> Profile:
    """The profile of a name or of a file (a `/` or an ending such as .yaml says so). Raises InputError."""
    if "/" in spec or "\\" in spec or spec.lower().endswith(_FILE_ENDINGS):
        return parse_profile(read_text(Path(spec)), source=spec)
    names = profile_names()
    if spec not in names:
        near = difflib.get_close_matches(spec.lower(), names, n=2, cutoff=0.4)
        nearest = f"did you mean {' or '.join(near)}? " if near else ""
        raise InputError(
            f"no profile is named '{spec[:80]}'",
            hint=f"{nearest}'forestsyn profiles' lists all; "
            "a file needs a '/' or an ending such as .yaml in its name",
        )
    return _shipped(spec).profile


def choose_profile(topology: Topology, spec: str | None = None) -> Profile:
    """The profile of `spec`, else the one that suits `topology`. Raises InputError."""
    return load_profile(spec or profile_name_for(topology))


def parse_profile(text: str, *, source: str) -> Profile:
    """The profile of `text`; `source` names it in messages. Raises InputError with file and line."""
    return _build(*_read(parse_document(text, source=source)))


def profile_names() -> tuple[str, ...]:
    """Names of the profiles that come with the package, sorted."""
    files = (resources.files("forestsyn") / "profiles").iterdir()
    return tuple(sorted(file.name.removesuffix(".yaml") for file in files if file.name.endswith(".yaml")))


def list_profiles() -> tuple[ProfileInfo, ...]:
    """All profiles that come with the package, by name."""
    return tuple(_shipped(name) for name in profile_names())


def profile_name_for(topology: Topology) -> str:
    """The profile that suits `topology`: by its name, else by the links of its GPUs.

    Where several match, as on a mix of generations, the one whose threadblocks are slowest is taken.
    """
    name = _SIZES.sub("", topology.name.lower())
    matching = [
        (_slowest_rate(info.profile), info.name)
        for info in list_profiles()
        if any(fnmatchcase(name, pattern) or fnmatchcase(topology.name.lower(), pattern) for pattern in info.machines)
    ]
    return min(matching)[1] if matching else _name_by_links(topology)


def _shipped(name: str) -> ProfileInfo:
    file = resources.files("forestsyn") / "profiles" / f"{name}.yaml"
    document, entries = _read(parse_document(file.read_text(encoding="utf-8"), source=f"{name}.yaml"))
    return ProfileInfo(
        name=name, title=entries.title, machines=tuple(entries.machines), profile=_build(document, entries)
    )


def _slowest_rate(profile: Profile) -> float:
    return min(min(cost.threadblock_GBps.values()) for cost in profile.protocols.values())


def _name_by_links(topology: Topology) -> str:
    """PCIe where GPUs meet CPUs only; NVIDIA's generations by the bandwidth to the switches of a host."""
    vertices = topology.vertices
    to_switch = to_cpu = direct = 0.0
    for link in topology.links:
        if link.tail != topology.ranks[0]:
            continue
        head = vertices[link.head]
        if head.kind is VertexKind.SWITCH and head.host is not None:
            to_switch += float(link.bandwidth)
        elif head.kind is VertexKind.CPU:
            to_cpu += float(link.bandwidth)
        elif head.kind is VertexKind.GPU:
            direct += float(link.bandwidth)
    if to_switch and not direct:
        return next(name for least, name in _GENERATIONS if to_switch >= least)
    return "pcie" if to_cpu and not direct else GENERIC


def _read(document: Document) -> tuple[Document, ProfileFile]:
    value = document.value
    if not isinstance(value, dict) or "profile" not in value:
        raise InputError(
            "this is no profile: the key 'profile' is missing",
            where=document.where(),
            hint=f"begin the file with the line 'profile: {VERSION}'",
        )
    if value["profile"] != VERSION or isinstance(value["profile"], bool):
        raise InputError(
            f"format version {str(value['profile'])[:20]!r} is not supported, expected {VERSION}",
            where=document.where("profile"),
        )
    return document, decode(document, (), ProfileFile)


def _build(document: Document, file: ProfileFile) -> Profile:
    if not file.protocols:
        raise InputError("no protocol is given", where=document.where("protocols"), hint="give at least Simple")
    protocols = {}
    for name, entry in file.protocols.items():
        place = ("protocols", name)
        if name not in tuple(Protocol):
            raise InputError(
                f"no protocol is named '{name[:40]}'",
                where=document.where(*place),
                hint=f"expected one of {', '.join(Protocol)}",
            )
        protocols[Protocol(name)] = _cost(document, place, entry)
    _check_sources(document, file)
    return Profile(
        name=file.name,
        launch_us=_number(document, ("launch_us",), file.launch_us, most=_TIME_MAX),
        copy_GBps=_number(document, ("copy_GBps",), file.copy_GBps, most=_RATE_MAX, positive=True),
        protocols=protocols,
        sources=file.sources,
    )


def _cost(document: Document, place: Place, entry: ProtocolEntry) -> ProtocolCost:
    def whole(key: str, value: int, most: int) -> int:
        if not 1 <= value <= most:
            raise InputError(f"{key} is {value:,}, expected 1 to {most:,}", where=document.where(*place, key))
        return value

    rates = _by_class(document, (*place, "threadblock_GBps"), entry.threadblock_GBps, _RATE_MAX, positive=True)
    return ProtocolCost(
        message_bytes=whole("message_bytes", entry.message_bytes, _BYTES_MAX),
        messages_in_flight=whole("messages_in_flight", entry.messages_in_flight, _COUNT_MAX),
        slices=whole("slices", entry.slices, _COUNT_MAX),
        efficiency=_number(document, (*place, "efficiency"), entry.efficiency, most=1.0, positive=True),
        threadblock_GBps=rates,
        step_us=_number(document, (*place, "step_us"), entry.step_us, most=_TIME_MAX),
        latency_us=_by_class(document, (*place, "latency_us"), entry.latency_us, _TIME_MAX),
    )


def _by_class(
    document: Document, place: Place, values: dict[str, Number], most: float, *, positive: bool = False
) -> dict[LinkClass, float]:
    known = tuple(LinkClass)
    for name in values:
        if name not in known:
            raise InputError(
                f"no link class is named '{name[:40]}'",
                where=document.where(*place, name),
                hint=f"expected {', '.join(known)}",
            )
    missing = [name for name in known if name not in values]
    if missing:
        raise InputError(f"'{place[-1]}' lacks {', '.join(missing)}", where=document.where(*place))
    return {kind: _number(document, (*place, kind.value), values[kind], most, positive=positive) for kind in known}


def _number(document: Document, place: Place, value: Number, most: float, *, positive: bool = False) -> float:
    """A number as written, `12`, `0.5`, `1e-3` or `15/16`; 0 to `most`, and more than 0 when `positive`."""
    text = str(value).strip()
    share = _SHARE.fullmatch(text)
    if share and int(share[2]):
        number = int(share[1]) / int(share[2])
    elif _NUMBER.fullmatch(text):
        number = float(text)
    else:
        raise InputError(
            f"'{place[-1]}' is '{text[:40]}', expected a number", where=document.where(*place), hint="write it as 2.5"
        )
    if number > most or (positive and number < 1e-9):
        least = "more than 0" if positive else "0"
        raise InputError(f"'{place[-1]}' is {text}, expected {least} to {most:,g}", where=document.where(*place))
    return number


def _check_sources(document: Document, file: ProfileFile) -> None:
    fields = [field.name for field in msgspec.structs.fields(ProtocolEntry)]
    known = {"launch_us", "copy_GBps", *fields, *(f"{name}.{field}" for name in file.protocols for field in fields)}
    for name in file.sources:
        if name not in known:
            near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.5)
            raise InputError(
                f"'sources' names '{name[:60]}', which is no number of this file",
                where=document.where("sources", name),
                hint=f"did you mean '{near[0]}'?" if near else "name a field, or PROTOCOL.FIELD",
            )
