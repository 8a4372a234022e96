"""What a topology holds, and what looks odd about it."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import msgspec

from forestsyn.frontend.components import mutually_reachable
from forestsyn.ir.topology import Topology, VertexKind
from forestsyn.units import format_bandwidth, format_count


class RankBandwidth(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """GB/s that a rank can send and receive over all of its links together."""

    name: str
    host: str | None
    send: Fraction
    receive: Fraction


class Imbalance(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """GB/s forwards and backwards of a link (`subject` is ``a - b``), or in and out of a switch."""

    subject: str
    first: Fraction
    second: Fraction


class TopologyReport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `check` prints. `str()` gives the text.

    hosts: names, in order. vertices: how many of each kind. links: directed ones.
    asymmetric_links: unequal in the two directions, absent counting as 0. unbalanced_switches: in ≠ out, for every
    vertex that is no rank. lonely_nics: NICs without a link to a GPU, a switch or a CPU of their host.
    unused_switches: with fewer than two neighbours. relays: GPUs that only forward.
    sides: the ranks in groups that reach each other both ways; one group when all is well.
    """

    name: str
    rates: str
    hosts: tuple[str, ...]
    vertices: dict[str, int]
    links: int
    ranks: tuple[RankBandwidth, ...]
    relays: tuple[str, ...]
    asymmetric_links: tuple[Imbalance, ...]
    unbalanced_switches: tuple[Imbalance, ...]
    lonely_nics: tuple[str, ...]
    unused_switches: tuple[str, ...]
    sides: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def describe_topology(topology: Topology) -> TopologyReport:
    """Count and compare; linear in the size of the topology."""
    vertices = topology.vertices
    outgoing = [Fraction(0)] * len(vertices)
    incoming = [Fraction(0)] * len(vertices)
    neighbours: list[set[int]] = [set() for _ in vertices]
    for link in topology.links:
        outgoing[link.tail] += link.bandwidth
        incoming[link.head] += link.bandwidth
        neighbours[link.tail].add(link.head)
        neighbours[link.head].add(link.tail)
    ranks = set(topology.ranks)
    others = [position for position in range(len(vertices)) if position not in ranks]
    sides = mutually_reachable(topology)
    return TopologyReport(
        name=topology.name,
        rates=topology.rates,
        hosts=tuple(dict.fromkeys(vertex.host for vertex in vertices if vertex.host is not None)),
        vertices=_count_kinds(topology),
        links=len(topology.links),
        ranks=tuple(
            RankBandwidth(
                name=vertices[rank].name, host=vertices[rank].host, send=outgoing[rank], receive=incoming[rank]
            )
            for rank in topology.ranks
        ),
        relays=tuple(vertices[p].name for p in others if vertices[p].kind is VertexKind.GPU),
        asymmetric_links=_asymmetric_links(topology),
        unbalanced_switches=tuple(
            Imbalance(subject=vertices[position].name, first=incoming[position], second=outgoing[position])
            for position in others
            if incoming[position] != outgoing[position]
        ),
        lonely_nics=tuple(
            vertices[position].name
            for position in others
            if vertices[position].kind is VertexKind.NIC and not _has_inner_link(topology, position, neighbours)
        ),
        unused_switches=tuple(
            vertices[position].name
            for position in others
            if vertices[position].kind is VertexKind.SWITCH and len(neighbours[position]) < 2
        ),
        sides=tuple(tuple(topology.rank_name(rank) for rank in side) for side in sides),
        notes=topology.notes,
    )


def _count_kinds(topology: Topology) -> dict[str, int]:
    counts = Counter(vertex.kind for vertex in topology.vertices)
    return {kind.value: counts[kind] for kind in VertexKind if counts[kind]}


def _asymmetric_links(topology: Topology) -> tuple[Imbalance, ...]:
    bandwidths = {(link.tail, link.head): link.bandwidth for link in topology.links}
    found = []
    for (tail, head), forwards in bandwidths.items():
        backwards = bandwidths.get((head, tail), Fraction(0))
        if forwards != backwards and (tail < head or not backwards):
            subject = f"{topology.vertices[tail].name} - {topology.vertices[head].name}"
            found.append(Imbalance(subject=subject, first=forwards, second=backwards))
    return tuple(found)


def _has_inner_link(topology: Topology, nic: int, neighbours: list[set[int]]) -> bool:
    host = topology.vertices[nic].host
    return any(topology.vertices[neighbour].host == host for neighbour in neighbours[nic])


def _lines(report: TopologyReport) -> list[str]:
    kinds = ", ".join(f"{count} {kind}" for kind, count in report.vertices.items())
    hosts = format_count(len(report.hosts), "host") if report.hosts else "no named hosts"
    lines = [
        f"{report.name}: {format_count(len(report.ranks), 'rank')} on {hosts}",
        f"vertices: {kinds}; {format_count(report.links, 'directed link')}; rates: {report.rates}",
        *_bandwidth_lines(report),
    ]
    lines += _listed("relay GPUs", report.relays)
    lines += _listed("links of unequal directions", [_imbalance(item, "back") for item in report.asymmetric_links])
    lines += _listed("unbalanced switches", [_imbalance(item, "out") for item in report.unbalanced_switches])
    lines += _listed("NICs without a device of their host", report.lonely_nics)
    lines += _listed("unused switches", report.unused_switches)
    if len(report.sides) > 1:
        lines.append("NOT CONNECTED: these groups of ranks cannot reach each other both ways:")
        lines += [f"  {format_count(len(side), 'rank')}: {_some(side)}" for side in report.sides[:8]]
        if len(report.sides) > 8:
            lines.append(f"  and {format_count(len(report.sides) - 8, 'more group')}")
    lines += [f"note: {note}" for note in report.notes]
    return lines


def _bandwidth_lines(report: TopologyReport) -> list[str]:
    """One line for each distinct pair of bandwidths, the most common first."""
    groups: dict[tuple[Fraction, Fraction], list[str]] = {}
    for rank in report.ranks:
        groups.setdefault((rank.send, rank.receive), []).append(rank.name)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return [
        f"{format_count(len(names), 'rank')} can send {format_bandwidth(send)}, receive {format_bandwidth(receive)}: "
        f"{_some(names)}"
        for (send, receive), names in ordered
    ]


def _imbalance(item: Imbalance, second: str) -> str:
    first = "in" if second == "out" else "forth"
    return f"{item.subject} ({format_bandwidth(item.first)} {first}, {format_bandwidth(item.second)} {second})"


def _listed(title: str, names: list[str] | tuple[str, ...]) -> list[str]:
    return [f"{title} ({len(names)}): {_some(names)}"] if names else []


def _some(names: list[str] | tuple[str, ...]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6:,} more" if len(names) > 6 else "")
