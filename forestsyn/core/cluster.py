"""Clusters: hosts of ranks around a fabric of non-blocking switches, as the hierarchical packing sees them.

A network is a cluster here when every way out of a host starts at a rank (possibly through a NIC or a bridge) and
ends at a fabric switch. A *port* is one such way: a rank, a switch, the physical route between them and its whole
units. A *plane* is a set of fabric switches that are joined with each other: a port that sends into a plane can
reach any port that receives from it, within the capacities of the links between its switches (see `fabric`).

What is given up: a NIC shared by several ranks is divided between them in fixed parts. That can only make the later
packing fail, never make it wrong: its loads are counted against all capacities.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from forestsyn.core.logical import Route
from forestsyn.ir.network import FlowNetwork

#: Strengths of links that are tried to see hosts in a network whose names show none.
STRENGTHS = 2


class Port(msgspec.Struct, frozen=True):
    """One way between a rank and a fabric switch. `route` runs in the direction of the data. `place` is the rank's
    index within its host, `plane` the least switch of the plane."""

    rank: int
    place: int
    plane: int
    switch: int
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
    """Hosts, those on the same switches next to each other, and the host of every rank.

    links: units of the links between fabric switches.
    """

    hosts: tuple[Host, ...]
    host_of: tuple[int, ...]
    links: dict[tuple[int, int], int]


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
    links: dict[tuple[int, int], int] = {}
    for tail, head, units in zip(network.tails, network.heads, capacities, strict=True):
        if units:
            outgoing[tail][head] = units
            incoming[head][tail] = units
            if owner[tail] < 0 and owner[head] < 0:
                links[tail, head] = units
    members: list[list[int]] = [[] for _ in distinct]
    for vertex, host in enumerate(owner):
        if host >= 0:
            members[host].append(vertex)
    planes = _planes(network.vertex_count, links)
    hosts: list[Host] = []
    for host, vertices in enumerate(members):
        found = _host(host, vertices, owner, outgoing, incoming, network.rank_count, planes)
        if found is None:
            return None
        hosts.append(found)
    hosts.sort(key=lambda machine: ([port.switch for port in machine.egress], machine.ranks))
    host_of = [0] * network.rank_count
    for number, machine in enumerate(hosts):
        for rank in machine.ranks:
            host_of[rank] = number
    return Cluster(tuple(hosts), tuple(host_of), links)


def groupings(
    network: FlowNetwork, capacities: Sequence[int], host_names: Sequence[str | None]
) -> Iterator[list[str | None]]:
    """Ways to see hosts in a network: the named ones first, then what strong links hold together.

    A rank without a host is one of its own. Strong links are those of at least some capacity that leave between two
    and half as many parts as there are ranks; a part without ranks is fabric.
    """
    yield [name if name or vertex >= network.rank_count else f"\0{vertex}" for vertex, name in enumerate(host_names)]
    tried = 0
    for strong in sorted(set(capacities), reverse=True):
        links = {
            (tail, head): units
            for tail, head, units in zip(network.tails, network.heads, capacities, strict=True)
            if units >= strong
        }
        parts = _planes(network.vertex_count, links)
        inhabited = set(parts[: network.rank_count])
        if 2 <= len(inhabited) <= network.rank_count // 2 and tried < STRENGTHS:
            tried += 1
            yield [f"\0{part}" if part in inhabited else None for part in parts]


def _planes(vertex_count: int, links: dict[tuple[int, int], int]) -> list[int]:
    """The least vertex of the plane of each fabric switch."""
    least = list(range(vertex_count))

    def find(vertex: int) -> int:
        while least[vertex] != vertex:
            least[vertex] = least[least[vertex]]
            vertex = least[vertex]
        return vertex

    for tail, head in links:
        one, other = sorted((find(tail), find(head)))
        least[other] = one
    return [find(vertex) for vertex in range(vertex_count)]


def _host(
    host: int,
    members: list[int],
    owner: list[int],
    outgoing: list[dict[int, int]],
    incoming: list[dict[int, int]],
    rank_count: int,
    planes: list[int],
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
        _sorted_ports([(rank, place, route[::-1], units) for rank, place, route, units in ingress], planes),
        _sorted_ports(egress, planes),
    )


def _ports(
    ranks: list[int], gates: set[int], owner: list[int], following: list[dict[int, int]]
) -> list[tuple[int, int, Route, int]] | None:
    """(rank, place, route away from the rank, units) for every way from a rank to a fabric switch.

    `following` holds outgoing arcs for egress and incoming ones for ingress, which turns the routes round.
    """
    ports: list[tuple[int, int, Route, int]] = []
    through: dict[int, list[int]] = {gate: [] for gate in gates}
    for place, rank in enumerate(ranks):
        for other, units in sorted(following[rank].items()):
            if owner[other] < 0:
                ports.append((rank, place, (rank, other), units))
            elif other in through:
                through[other].append(place)
    for gate in sorted(gates):
        users = through[gate]
        switches = [(switch, units) for switch, units in sorted(following[gate].items()) if owner[switch] < 0]
        if len(switches) + sum(rank in following[gate] for rank in ranks) < len(following[gate]):
            return None  # the gate leads to another switch of the host: more than a port
        for switch, units in switches:
            for order, place in enumerate(users):
                rank = ranks[place]
                part = units * (order + 1) // len(users) - units * order // len(users)
                part = min(part, following[rank][gate] // len(switches))
                if part:
                    ports.append((rank, place, (rank, gate, switch), part))
    return ports


def _sorted_ports(found: list[tuple[int, int, Route, int]], planes: list[int]) -> tuple[Port, ...]:
    ports = []
    for rank, place, route, units in found:
        switch = route[-1] if route[0] == rank else route[0]
        ports.append(Port(rank, place, planes[switch], switch, route, units))
    return tuple(sorted(ports, key=lambda port: (port.plane, port.place, port.route)))
