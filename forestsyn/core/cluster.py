"""Clusters: hosts of ranks around a fabric of non-blocking switches, as the hierarchical packing sees them.

A network is a cluster here when every way out of a host starts at a rank (possibly through a NIC or a bridge) and
ends at a fabric switch, a *plane*. A *port* is one such way: a rank, a plane, the physical route between them and its
whole units. Planes do not block: a route may join any port that sends into a plane with any that receives from it.

What is given up: links between fabric switches are left aside, and a NIC shared by several ranks is divided between
them in fixed parts. That can only make the later packing fail, never make it wrong: its loads are counted against
all capacities.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from forestsyn.core.logical import Route
from forestsyn.ir.network import FlowNetwork


class Port(msgspec.Struct, frozen=True):
    """One way between a rank and a plane. `route` runs in the direction of the data. `place` is the rank's index
    within its host."""

    rank: int
    place: int
    plane: int
    route: Route
    units: int


class Host(msgspec.Struct, frozen=True):
    """A machine. ranks: its ranks. vertices: ranks first, then what forwards inside. arcs: (tail, head, units)
    between positions in `vertices`. ingress, egress: its ports, sorted by (plane, place)."""

    ranks: tuple[int, ...]
    vertices: tuple[int, ...]
    arcs: tuple[tuple[int, int, int], ...]
    ingress: tuple[Port, ...]
    egress: tuple[Port, ...]

    def shape(self) -> tuple[object, ...]:
        """Equal for hosts that differ in names only."""
        return (
            len(self.ranks),
            self.arcs,
            tuple((port.place, port.plane, port.units) for port in self.ingress),
            tuple((port.place, port.plane, port.units) for port in self.egress),
        )


class Cluster(msgspec.Struct, frozen=True):
    """Hosts in the order of their first rank, and the host of every rank."""

    hosts: tuple[Host, ...]
    host_of: tuple[int, ...]


def find_cluster(network: FlowNetwork, capacities: Sequence[int], host_names: Sequence[str | None]) -> Cluster | None:
    """The cluster structure of a network, or None where it has another one.

    host_names: per network vertex, None for the fabric.
    """
    names = [host_names[rank] for rank in range(network.rank_count)]
    distinct = list(dict.fromkeys(names))
    if len(distinct) < 2 or None in distinct:
        return None
    index = {name: position for position, name in enumerate(distinct)}
    owner = [-1 if name is None or name not in index else index[name] for name in host_names]
    outgoing: list[dict[int, int]] = [{} for _ in range(network.vertex_count)]
    incoming: list[dict[int, int]] = [{} for _ in range(network.vertex_count)]
    for tail, head, units in zip(network.tails, network.heads, capacities, strict=True):
        if units:
            outgoing[tail][head] = units
            incoming[head][tail] = units
    members: list[list[int]] = [[] for _ in distinct]
    for vertex, host in enumerate(owner):
        if host >= 0:
            members[host].append(vertex)
    hosts: list[Host] = []
    for host, vertices in enumerate(members):
        found = _host(host, vertices, owner, outgoing, incoming, network.rank_count)
        if found is None:
            return None
        hosts.append(found)
    return Cluster(tuple(hosts), tuple(owner[: network.rank_count]))


def _host(
    host: int,
    members: list[int],
    owner: list[int],
    outgoing: list[dict[int, int]],
    incoming: list[dict[int, int]],
    rank_count: int,
) -> Host | None:
    ranks = [vertex for vertex in members if vertex < rank_count]
    gates = {
        vertex
        for vertex in members
        if vertex >= rank_count and any(owner[other] < 0 for other in (*outgoing[vertex], *incoming[vertex]))
    }
    inside = ranks + [vertex for vertex in members if vertex >= rank_count and vertex not in gates]
    for vertex in members:
        for other in (*outgoing[vertex], *incoming[vertex]):
            if owner[other] not in (host, -1) or (owner[other] < 0 and other < rank_count):
                return None
    egress = _ports(ranks, gates, owner, outgoing)
    ingress = _ports(ranks, gates, owner, incoming)
    if egress is None or ingress is None:
        return None
    position = {vertex: place for place, vertex in enumerate(inside)}
    arcs = sorted(
        (position[tail], position[head], units)
        for tail in inside
        for head, units in outgoing[tail].items()
        if head in position
    )
    return Host(
        tuple(ranks),
        tuple(inside),
        tuple(arcs),
        tuple(Port(*port[:3], port[3][::-1], port[4]) for port in ingress),
        tuple(Port(*port) for port in egress),
    )


def _ports(
    ranks: list[int], gates: set[int], owner: list[int], following: list[dict[int, int]]
) -> list[tuple[int, int, int, Route, int]] | None:
    """(rank, place, plane, route away from the rank, units) for every way from a rank to a plane.

    `following` holds outgoing arcs for egress and incoming ones for ingress, which turns the routes round.
    """
    ports: list[tuple[int, int, int, Route, int]] = []
    through: dict[int, list[int]] = {gate: [] for gate in gates}
    for place, rank in enumerate(ranks):
        for other, units in sorted(following[rank].items()):
            if owner[other] < 0:
                ports.append((rank, place, other, (rank, other), units))
            elif other in through:
                through[other].append(place)
    for gate in sorted(gates):
        users = through[gate]
        planes = [(plane, units) for plane, units in sorted(following[gate].items()) if owner[plane] < 0]
        if len(planes) + sum(following[gate].get(rank, 0) > 0 for rank in ranks) < len(following[gate]):
            return None  # the gate leads to another switch of the host: more than a port
        for plane, units in planes:
            for order, place in enumerate(users):
                rank = ranks[place]
                part = units * (order + 1) // len(users) - units * order // len(users)
                part = min(part, following[rank][gate] // len(planes))
                if part:
                    ports.append((rank, place, plane, (rank, gate, plane), part))
    return sorted(ports, key=lambda port: (port[2], port[1], port[3]))
