"""The work sheet of hierarchical packing: every unit tree of a cluster, by host.

Arrays are int[units, hosts]: the port by which a unit enters each host, the inner tree that it follows there, and the
port by which the edge into that host leaves another. Only the last step writes trees rank by rank. The theory is in
`hierarchy`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from forestsyn.core.cluster import Cluster, Host, Port
from forestsyn.core.crossing import Edges, Exits, Integers, Shape, circle_shape, hung_from, spread_centers
from forestsyn.core.fabric import Fabric
from forestsyn.core.inside import Inside, Insides
from forestsyn.core.logical import Route
from forestsyn.core.rehanging import rehung
from forestsyn.core.symmetry import Turn

#: Edges between hosts up to which unequal roots are tried both with and without centres.
BOTH_WAYS = 200_000


class Rows(msgspec.Struct, frozen=True):
    """Trees as arrays, in network vertex ids; see `ir.forest.Forest` for the meaning of each."""

    roots: npt.NDArray[np.int32]
    units: npt.NDArray[np.int64]
    parents: npt.NDArray[np.int32]
    routes: tuple[Route, ...]
    edge_routes: npt.NDArray[np.int32]
    turn: Turn | None = None
    turns: int = 1


class Layout:
    """The work sheet: all trees of a cluster by unit and host."""

    def __init__(self, cluster: Cluster, demand: Sequence[int]) -> None:
        self._cluster = cluster
        self._hosts = cluster.hosts
        self._host_of = np.array(cluster.host_of, dtype=np.int64)
        self._demand = np.array(demand, dtype=np.int64)
        self._roots = np.repeat(np.arange(len(demand)), self._demand)
        self._places = np.zeros(len(demand), dtype=np.int64)
        for host in cluster.hosts:
            self._places[list(host.ranks)] = np.arange(len(host.ranks))
        self._entries_from = _starts([host.ingress for host in cluster.hosts])
        self._ingress = [port for host in cluster.hosts for port in host.ingress]
        self._egress = [port for host in cluster.hosts for port in host.egress]
        self._insides: list[Inside] = []
        self._entries = self._inner = np.zeros((0, 0), dtype=np.int64)

    def enter(self, solver: Insides) -> bool:
        """Settle where every tree enters every host and how it goes on inside; False where a host cannot take it."""
        wishes = self._wishes()
        insides = self._solve_insides(wishes, solver)
        if insides is None:
            return False
        self._insides = insides
        self._entries = np.full((len(self._roots), len(self._hosts)), -1, dtype=np.int64)
        self._inner = np.empty_like(self._entries)
        for number, inside in enumerate(insides):
            self._enter(self._entries, number, wishes[number], inside)
            self._inner[:, number] = self._go_on(self._entries[:, number], number, inside)
        return True

    def rows(self, peer_limits: Sequence[int]) -> Rows | None:
        """The forest, or None; shapes of fewer peers, which cross the fabric less, are for planes too narrow."""
        for peers in peer_limits:
            edges = self._leave(self._entries, circle_shape(len(self._hosts), peers))
            if edges is not None:
                crossings = self._cross(edges)
                if crossings is not None:
                    return self._joined(edges, crossings)
        return None

    def _wishes(self) -> list[Integers]:
        """Per host: the ingress port (within the host) that each rank's trees would like to enter by."""
        signatures, kinds = self._signatures()
        known: dict[tuple[object, ...], Integers] = {}
        wishes: list[Integers] = []
        for host in self._hosts:
            ports = tuple((port.plane, port.place) for port in host.ingress)
            if ports not in known:
                wish = np.array([_liked_port(host.ingress, signature) for signature in signatures])
                known[ports] = wish[kinds] if len(host.ingress) else np.full(len(kinds), -1)
            wishes.append(known[ports])
        return wishes

    def _signatures(self) -> tuple[list[tuple[int, int, int]], Integers]:
        """Distinct (plane, order within the plane, place) of ranks, and which one each rank has."""
        index: dict[tuple[int, int, int], int] = {}
        kinds = np.zeros(len(self._demand), dtype=np.int64)
        for host in self._hosts:
            order: dict[int, int] = {}
            own: dict[int, tuple[int, int]] = {}
            for port in host.egress:
                own.setdefault(port.rank, (port.plane, order.get(port.plane, 0)))
                order[port.plane] = order.get(port.plane, 0) + 1
            for place, rank in enumerate(host.ranks):
                plane, position = own.get(rank, (-1, place))
                kinds[rank] = index.setdefault((plane, position, place), len(index))
        return list(index), kinds

    def _solve_insides(self, wishes: list[Integers], solver: Insides) -> list[Inside] | None:
        insides: list[Inside] = []
        everything: dict[int, Integers] = {}
        for number, host in enumerate(self._hosts):
            wish, ranks = wishes[number], list(host.ranks)
            own = self._demand[ranks]
            if not host.ingress or not host.egress:
                return None
            if id(wish) not in everything:
                everything[id(wish)] = _count(wish, self._demand, len(host.ingress))
            wanted = everything[id(wish)] - _count(wish[ranks], own, len(host.ingress))
            inside = solver.solve(host, own.tolist(), wanted.tolist())
            if inside is None:
                return None
            insides.append(inside)
        return insides

    def _enter(self, entries: Integers, number: int, wish: Integers, inside: Inside) -> None:
        """Give every tree rooted elsewhere its port into host `number`, by global number."""
        outside = np.flatnonzero(self._host_of[self._roots] != number)
        entries[outside, number] = _moved(wish[self._roots[outside]], inside) + self._entries_from[number]

    def _leave(self, entries: Integers, shape: Shape) -> Edges | None:
        """Where each edge from host to host leaves."""
        return self._leave_by(Exits([list(host.egress) for host in self._hosts]), entries, shape)

    def _leave_by(self, exits: Exits, entries: Integers, shape: Shape) -> Edges | None:
        """The same by the ports of `exits`, which lists all hosts, or the first one standing for all."""
        hosts = len(self._hosts)
        planes = sorted({port.plane for port in self._ingress})
        plane_of = np.array([planes.index(port.plane) for port in self._ingress] + [-1])
        place_of = np.array([port.place for port in self._ingress] + [-1])
        widest = max(len(host.ranks) for host in self._hosts)
        table = exits.table(planes, widest)
        root_hosts = self._host_of[self._roots]
        entered = place_of[entries]
        entered[np.arange(len(self._roots)), root_hosts] = self._places[self._roots]

        vertices = np.array([*planes, -1])[plane_of[entries]]

        def hung(centers: Integers) -> Edges | None:
            parents = hung_from(centers, root_hosts, shape)
            at_parent = np.take_along_axis(entered, parents, axis=1)
            chosen = table[parents % len(table), at_parent, plane_of[entries], place_of[entries]]
            chosen[np.arange(len(self._roots)), root_hosts] = -1
            return rehung(exits, Edges(chosen, parents), vertices, entered, root_hosts)

        if len(table) == 1 or len(set(np.bincount(root_hosts, minlength=hosts).tolist())) == 1:
            return hung(root_hosts)
        limits = np.array([sum(port.units for port in host.egress) for host in self._hosts], dtype=np.int64)
        found = [hung(spread_centers(root_hosts, limits, shape))]
        if found[0] is None or entries.size <= BOTH_WAYS:
            found.append(hung(root_hosts))
        return min(
            (edges for edges in found if edges is not None), key=lambda edges: edges.levels().max(), default=None
        )

    def _go_on(self, entries: Integers, number: int, inside: Inside) -> Integers:
        """The inner tree of host `number` that each unit follows."""
        place_of = np.array([port.place for port in self._ingress] + [-1])
        start = place_of[entries]
        own = np.flatnonzero(self._host_of[self._roots] == number)
        start[own] = self._places[self._roots[own]]
        return _followed(start, inside)

    def _cross(self, edges: Edges) -> tuple[Integers, list[Route]] | None:
        """The route of every edge between hosts, as int[units, hosts] and a list of routes; None without room."""
        unit, host = np.nonzero(edges.exits >= 0)
        size = len(self._ingress)
        codes = edges.exits[unit, host] * size + self._entries[unit, host]
        order = np.argsort(codes, kind="stable")
        distinct, counts = np.unique(codes, return_counts=True)
        fabric = Fabric(self._links())
        routes: list[Route] = []
        units: list[int] = []
        for code, count in zip(distinct.tolist(), counts.tolist(), strict=True):
            leaving, entering = self._egress[code // size], self._ingress[code % size]
            found = fabric.routes(leaving.switch, entering.switch, count)
            if found is None:
                return None
            for path, part in found:
                routes.append(leaving.route[:-1] + path + entering.route[1:])
                units.append(part)
        chosen = np.full(edges.exits.shape, -1, dtype=np.int64)
        chosen[unit[order], host[order]] = np.repeat(np.arange(len(routes)), units)
        return chosen, routes

    def _links(self) -> dict[tuple[int, int], int]:
        """Units of the links between fabric switches that these trees may use."""
        return self._cluster.links

    def _joined(self, edges: Edges, crossings: tuple[Integers, list[Route]]) -> Rows:
        """Merge equal units and write the trees rank by rank."""
        key = np.concatenate([self._roots[:, None], crossings[0], self._inner], axis=1).astype(np.int32)
        order = np.lexsort(key.T[::-1])
        key = key[order]
        new = np.concatenate([[True], (key[1:] != key[:-1]).any(axis=1)])
        first = order[new]
        units = np.diff(np.append(np.flatnonzero(new), len(key)))
        parents = np.full((len(first), len(self._demand)), -1, dtype=np.int32)
        edge_routes = np.full_like(parents, -1)
        routes = list(crossings[1])
        for number, (host, inside) in enumerate(zip(self._hosts, self._insides, strict=True)):
            table, route_table = _tables(host, inside, routes)
            ranks = list(host.ranks)
            inner = self._inner[first, number]
            parents[:, ranks] = table[inner]
            edge_routes[:, ranks] = route_table[inner]
        row, column = np.nonzero(edges.exits[first] >= 0)
        head = np.array([port.rank for port in self._ingress])[self._entries[first][row, column]]
        parents[row, head] = np.array([port.rank for port in self._egress])[edges.exits[first][row, column]]
        edge_routes[row, head] = crossings[0][first][row, column]
        return Rows(self._roots[first].astype(np.int32), units, parents, tuple(routes), edge_routes)


class Circle(Layout):
    """A cluster whose hosts are equal under a turn: the trees of the first host, standing for those of all.

    Every pair of a tree and another host, seen from that host, is a tree that enters the first host;
    so the counts of the first host's ports and inner trees are those of all pairs together.
    """

    def __init__(self, cluster: Cluster, demand: Sequence[int]) -> None:
        super().__init__(cluster, demand)
        ranks = list(cluster.hosts[0].ranks)
        self._roots = np.repeat(np.array(ranks), self._demand[ranks])

    def enter(self, solver: Insides) -> bool:
        """As for all hosts, with the first standing for each."""
        first, count = self._hosts[0], len(self._hosts)
        wish = self._wishes()[0]
        own = self._demand[list(first.ranks)]
        if not first.ingress or not first.egress:
            return False
        wanted = _count(wish[self._roots], np.ones_like(self._roots), len(first.ingress)) * (count - 1)
        inside = solver.solve(first, own.tolist(), wanted.tolist())
        if inside is None:
            return False
        self._insides = [inside] * count
        entered = _moved(np.repeat(wish[self._roots], count - 1), inside).reshape(-1, count - 1)
        self._entries = np.full((len(self._roots), count), -1, dtype=np.int64)
        self._entries[:, 1:] = entered + np.arange(1, count) * len(first.ingress)
        start = np.empty_like(self._entries)
        start[:, 0] = self._places[self._roots]
        start[:, 1:] = np.array([port.place for port in first.ingress])[entered]
        self._inner = _followed(start.ravel(), inside).reshape(start.shape)
        return True

    def _leave(self, entries: Integers, shape: Shape) -> Edges | None:
        first = self._hosts[0]
        local = np.where(entries >= 0, entries % len(first.ingress), -1)
        edges = self._leave_by(Exits([list(first.egress)]), local, shape)
        if edges is None:
            return None
        exits = np.where(edges.exits >= 0, edges.exits + edges.parents * len(first.egress), -1)
        return Edges(exits, edges.parents)

    def _links(self) -> dict[tuple[int, int], int]:
        # The turn leaves the fabric where it is, so every image of a tree loads the same links once more.
        return {ends: units // len(self._hosts) for ends, units in self._cluster.links.items()}


def _moved(liked: Integers, inside: Inside) -> Integers:
    """Ports such that each gets what `inside` says: those that are liked too much give their last trees away."""
    chosen = liked.copy()
    counts = np.bincount(liked, minlength=len(inside.entries))
    room = np.array(inside.entries, dtype=np.int64)
    if (counts != room).any():
        surplus = [np.flatnonzero(liked == port)[room[port] :] for port in np.flatnonzero(counts > room).tolist()]
        moved = np.sort(np.concatenate(surplus))
        chosen[moved] = np.repeat(np.arange(len(room)), np.maximum(room - counts, 0))
    return chosen


def _followed(start: Integers, inside: Inside) -> Integers:
    """The inner tree that each unit follows from the place where it starts."""
    inner = np.empty(len(start), dtype=np.int64)
    for place in sorted({tree.start for tree in inside.trees}):
        trees = [index for index, tree in enumerate(inside.trees) if tree.start == place]
        inner[start == place] = np.repeat(trees, [inside.trees[index].units for index in trees])
    return inner


def _count(ports: Integers, units: Integers, size: int) -> Integers:
    """Units per port; integers throughout, unlike a weighted bincount."""
    counts = np.zeros(size, dtype=np.int64)
    np.add.at(counts, ports, units)
    return counts


def _starts(ports_of_hosts: Sequence[tuple[Port, ...]]) -> list[int]:
    starts = [0]
    for ports in ports_of_hosts:
        starts.append(starts[-1] + len(ports))
    return starts


def _liked_port(ports: Sequence[Port], signature: tuple[int, int, int]) -> int:
    """The port in the root's plane with its order there, else one by its place."""
    plane, order, place = signature
    same = [number for number, port in enumerate(ports) if port.plane == plane]
    if same:
        return same[order % len(same)]
    return place % len(ports) if ports else -1


def _tables(host: Host, inside: Inside, routes: list[Route]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Global parents and route numbers of each inner tree; new routes are appended to `routes`."""
    index: dict[Route, int] = {}
    parents = np.full((len(inside.trees), len(host.ranks)), -1, dtype=np.int32)
    numbers = np.full_like(parents, -1)
    for row, tree in enumerate(inside.trees):
        for place, (parent, route) in enumerate(zip(tree.parents, tree.routes, strict=True)):
            if route is not None:
                parents[row, place] = host.ranks[parent]
                numbers[row, place] = index.setdefault(route, len(routes) + len(index))
    routes.extend(tuple(host.vertices[vertex] for vertex in route) for route in index)
    return parents, numbers
