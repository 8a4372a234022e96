"""Inside one host: where trees come in, and how each goes on to the host's other ranks.

Problem. A tight host is entered exactly once by every tree rooted elsewhere (see `hierarchy`). Given how many trees
would like to enter by each port, choose counts that the ports and the host's own links can carry, and pack the
host's trees: one that enters at rank v, or is rooted there, spans the host from v.

Method. Trees that find their port full go to ports with room. The inner problem is a packing problem of its own, with
as many roots at v as trees start there; when it has a violated set S, too many start in S, and the ports of S are
limited by the shortfall. Hosts that differ in names only share one solution (`Insides` keeps it).

Exactness: integers; the inner packing is proved by its flows.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import msgspec

from forestsyn.core.cluster import Host
from forestsyn.core.logical import LogicalGraph, Route
from forestsyn.core.rooted import RootedFlows, leaving_arcs
from forestsyn.core.routing import route_trees
from forestsyn.core.splitting import split_switches
from forestsyn.core.trees import pack_shallow_trees
from forestsyn.ir.network import FlowNetwork

#: Rounds of limiting ports before the host is taken as one that cannot be entered just once by every tree.
_ROUNDS = 200


class InnerTree(msgspec.Struct, frozen=True):
    """`units` unit trees of one host, in positions of `Host.vertices`: parents and routes per rank of the host."""

    start: int
    units: int
    parents: tuple[int, ...]
    routes: tuple[Route | None, ...]


class Inside(msgspec.Struct, frozen=True):
    """entries: trees that enter by each ingress port. trees: how they go on, sorted by start."""

    entries: tuple[int, ...]
    trees: tuple[InnerTree, ...]


class Insides:
    """Solutions of inner problems, one for all hosts of the same shape and the same wishes."""

    def __init__(self, partners: int | None = None) -> None:
        """partners: how many partners a port of a switch should have at most; None for the usual number."""
        self._partners = partners
        self._known: dict[tuple[object, ...], Inside | None] = {}

    def solve(self, host: Host, own: Sequence[int], wanted: Sequence[int]) -> Inside | None:
        """own: trees rooted at each rank of the host. wanted: trees that would like to enter by each port.

        None when no counts were found that the host can carry.
        """
        key = (host.shape(), tuple(own), tuple(wanted))
        if key not in self._known:
            self._known[key] = _solve(host, own, wanted, self._partners)
        return self._known[key]


def _solve(host: Host, own: Sequence[int], wanted: Sequence[int], partners: int | None) -> Inside | None:
    if len(host.ranks) == 1:
        entries = _with_room(wanted, [port.units for port in host.ingress])
        if entries is None:
            return None
        return Inside(tuple(entries), (InnerTree(0, own[0] + sum(entries), (-1,), (None,)),))
    network = _network(host)
    limits = [port.units for port in host.ingress]
    for _ in range(_ROUNDS):
        entries = _with_room(wanted, limits)
        if entries is None:
            return None
        starts = _starts(host, own, entries)
        flows = RootedFlows(network, network.capacities, starts)
        violation = flows.first_violation()
        if violation is None:
            return Inside(tuple(entries), tuple(_pack(host, network, starts, partners)))
        limits = _limited(host, network, starts, entries, limits, violation[1])
    return None


def _network(host: Host) -> FlowNetwork:
    return FlowNetwork(
        rank_count=len(host.ranks),
        vertex_count=len(host.vertices),
        tails=tuple(arc[0] for arc in host.arcs),
        heads=tuple(arc[1] for arc in host.arcs),
        capacities=tuple(arc[2] for arc in host.arcs),
        unit=Fraction(1),
    )


def _with_room(wanted: Sequence[int], limits: Sequence[int]) -> list[int] | None:
    """Counts ≤ limits of the same sum as `wanted`; what finds no room is spread over the ports that have some."""
    counts = [min(want, limit) for want, limit in zip(wanted, limits, strict=True)]
    left = sum(wanted) - sum(counts)
    while left:
        open_ports = [port for port, limit in enumerate(limits) if counts[port] < limit]
        if not open_ports:
            return None
        share = max(1, left // len(open_ports))
        for port in open_ports:
            more = min(share, left, limits[port] - counts[port])
            counts[port] += more
            left -= more
    return counts


def _starts(host: Host, own: Sequence[int], entries: Sequence[int]) -> list[int]:
    starts = list(own)
    for port, count in zip(host.ingress, entries, strict=True):
        starts[port.place] += count
    return starts


def _limited(
    host: Host,
    network: FlowNetwork,
    starts: Sequence[int],
    entries: Sequence[int],
    limits: Sequence[int],
    violated: Sequence[int],
) -> list[int]:
    """Lower the limits of the ports of a violated set by what its links are short of."""
    leaving = sum(network.capacities[arc] for arc in leaving_arcs(network, violated))
    short = sum(starts[place] for place in violated if place < network.rank_count) - leaving
    ports = [number for number, port in enumerate(host.ingress) if port.place in violated and entries[number]]
    lowered = list(limits)
    while short > 0 and ports:
        share = max(1, short // len(ports))
        for number in list(ports):
            lowered[number] = min(lowered[number], entries[number])
            less = min(share, short, lowered[number])
            lowered[number] -= less
            short -= less
            if lowered[number] == 0:
                ports.remove(number)
    if short > 0:
        return [0] * len(limits)  # no port left to lower: `_with_room` then refuses
    return lowered


def _pack(host: Host, network: FlowNetwork, starts: Sequence[int], partners: int | None) -> list[InnerTree]:
    graph = LogicalGraph(network, network.capacities)
    split_switches(graph, starts, [""] * network.vertex_count, partners)
    trees = pack_shallow_trees(network.rank_count, graph.arcs(), starts)
    return sorted(
        (InnerTree(row.root, row.units, row.parents, row.routes) for row in route_trees(graph, trees)),
        key=lambda tree: (tree.start, -tree.units, tree.parents),
    )
