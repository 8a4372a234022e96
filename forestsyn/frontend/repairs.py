"""Exceptions: devices and links that are gone, links that are slower today. Each with its reason."""

from __future__ import annotations

from forestsyn.errors import InputError
from forestsyn.frontend.builder import Speed, TopologyBuilder
from forestsyn.frontend.document import Document, located
from forestsyn.frontend.expression import Variables
from forestsyn.frontend.linking import is_two_way
from forestsyn.frontend.pattern import Namespace
from forestsyn.frontend.schema import ExceptionEntry, RemovedLink, Setting
from forestsyn.frontend.speeds import SpeedReader


def apply_exceptions(
    entries: list[ExceptionEntry],
    builder: TopologyBuilder,
    document: Document,
    reader: SpeedReader,
    variables: Variables,
) -> dict[int, str]:
    """Change the links of `builder`; the vertices to remove, each with its reason. Raises InputError."""
    removed: dict[int, str] = {}
    namespace = Namespace(builder.names)
    for index, entry in enumerate(entries):
        with located(document.where("exceptions", index)):
            if not entry.reason.strip():
                raise InputError(
                    "the exception has an empty reason", hint="say what is broken, it appears in reports"
                )
            if (entry.remove is None) == (entry.set is None):
                raise InputError("an exception needs one of 'remove' and 'set'")
            if isinstance(entry.remove, str):
                positions = _devices(entry.remove, namespace, variables)
                removed.update(dict.fromkeys(positions, entry.reason))
                what = f"{entry.remove} removed"
            elif isinstance(entry.remove, RemovedLink):
                for pair in _links(entry.remove, builder, namespace, variables):
                    del builder.links[pair]
                what = f"link {_arrow(entry.remove)} removed"
            else:
                assert entry.set is not None, "exactly one of both is given"
                what = _apply_setting(entry.set, builder, namespace, reader, variables)
            builder.notes.append(f"exception: {what}: {entry.reason.strip()}")
    return removed


def _devices(pattern: str, namespace: Namespace, variables: Variables) -> list[int]:
    """What a pattern removes; the name of a host stands for all of its devices."""
    return list(namespace.devices_of(pattern)) or namespace.select(pattern, variables)


def _apply_setting(
    setting: Setting, builder: TopologyBuilder, namespace: Namespace, reader: SpeedReader, variables: Variables
) -> str:
    gives_bandwidth = reader.gives_bandwidth(setting)
    if not gives_bandwidth and setting.latency is None:
        raise InputError("'set' changes nothing", hint="give a bandwidth, as bw: 275, or a latency")
    latency = reader.latency(setting)
    for pair in _links(setting, builder, namespace, variables):
        old = builder.links[pair]
        bandwidth = reader.read(setting, variables).bandwidth if gives_bandwidth else old.bandwidth
        builder.links[pair] = Speed(bandwidth, old.latency if latency is None else latency)
    changes = [f"{reader.read(setting, variables).bandwidth} GB/s"] if gives_bandwidth else []
    if latency is not None:
        changes.append(f"{latency} us")
    return f"link {_arrow(setting)} set to {' and '.join(changes)}"


def _links(
    entry: Setting | RemovedLink, builder: TopologyBuilder, namespace: Namespace, variables: Variables
) -> list[tuple[int, int]]:
    """The directed links between the two ends, each end a pattern."""
    if len(entry.link) != 2:
        raise InputError(f"a link has two ends, found {len(entry.link)}", hint="write link: [n0/gpu0, n0/nvsw]")
    tails, heads = (namespace.select(end, variables) for end in entry.link)
    pairs = [(tail, head) for tail in tails for head in heads]
    if is_two_way(entry.dir):
        pairs += [(head, tail) for tail, head in pairs]
    found = [pair for pair in dict.fromkeys(pairs) if pair in builder.links]
    if not found:
        raise InputError(f"there is no link {_arrow(entry)}")
    return found


def _arrow(entry: Setting | RemovedLink) -> str:
    sign = " - " if entry.dir == "both" else " -> "
    return sign.join(entry.link)
