"""The ranks as patterns see them: hosts, and the paths by which one rank reaches another without passing a third.

A pattern thinks of ranks that talk to each other directly. Two ranks can where a path joins them whose inner vertices
are switches, NICs, CPUs or relays; of these the ones with the fewest links count, and of these the widest. Ranks do
not forward by themselves: a pattern that needs a relay must make it a node of its tree. Two ranks of a host whose
ranks can all reach each other inside it do not talk over NICs: over two NVLinks a message is there sooner.

Costs are exact integers: a unit of data on link e costs L / bandwidth(e), where L is common to all links. The cost of
a path is that of its busiest link, and a set of transfers takes (the greatest cost of any link) / L.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import lcm
from typing import NamedTuple

from forestsyn.ir.topology import Topology

#: Equal paths between two ranks that are told apart; more add nothing that a balanced choice could use.
_PATHS_MAXIMUM = 16


class Path(NamedTuple):
    """vertices: topology indices from the sending to the receiving rank. links: numbers of the links between them."""

    vertices: tuple[int, ...]
    links: tuple[int, ...]


class Network:
    """Paths between ranks, found once each. hosts: the ranks of each host, by their first rank."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.rank_count = topology.rank_count
        self._vertex = topology.ranks
        self._rank_vertices = frozenset(topology.ranks)
        self._next: list[list[tuple[int, int]]] = [[] for _ in topology.vertices]
        for number, link in enumerate(topology.links):
            self._next[link.tail].append((link.head, number))
        self.scale = lcm(*(link.bandwidth.numerator for link in topology.links))
        self.unit_costs = tuple(int(self.scale / link.bandwidth) for link in topology.links)
        self.hosts = _hosts(topology)
        self._paths: dict[tuple[int, int], tuple[Path, ...]] = {}
        self._neighbours: dict[int, tuple[int, ...]] = {}
        self._host_of = tuple(topology.rank_host(rank) for rank in range(topology.rank_count))
        self._closed: dict[str | None, bool] = {}
        if len(self.hosts) > 1:
            self._closed = {self._host_of[ranks[0]]: self._holds_together(ranks) for ranks in self.hosts}

    def paths(self, source: int, destination: int) -> tuple[Path, ...]:
        """The shortest, then widest paths from one rank to another, at most 16; none when a third is in the way."""
        self.neighbours(source)
        return self._paths.get((source, destination), ())

    def neighbours(self, source: int) -> tuple[int, ...]:
        """The ranks that a rank reaches directly, in rising order."""
        if source not in self._neighbours:
            host = self._host_of[source]
            found = self._search(source, None)
            if self._closed.get(host):
                apart = {rank: paths for rank, paths in found.items() if self._host_of[rank] != host}
                found = apart | self._search(source, host)
            for rank, paths in found.items():
                self._paths[source, rank] = paths
            self._neighbours[source] = tuple(sorted(found))
        return self._neighbours[source]

    def joined(self, first: int, second: int) -> bool:
        """True when each of the two ranks reaches the other directly."""
        return bool(self.paths(first, second)) and bool(self.paths(second, first))

    @property
    def complete(self) -> bool:
        """True when every rank reaches every other directly."""
        return all(len(self.neighbours(rank)) == self.rank_count - 1 for rank in range(self.rank_count))

    def algbw(self, costs: list[int], chunk_count: int) -> Fraction:
        """GB/s of a message of `chunk_count` units when links are loaded by `costs`, as `Loads` counts them."""
        return Fraction(chunk_count * self.scale, max(costs))

    def _holds_together(self, ranks: tuple[int, ...]) -> bool:
        """True when the ranks of a host reach each other inside it, perhaps over one another."""
        ahead = {rank: set(self._search(rank, self._host_of[rank])) for rank in ranks}
        behind = {rank: {tail for tail in ranks if rank in ahead[tail]} for rank in ranks}
        return all(_count_reached(ranks[0], ways) == len(ranks) for ways in (ahead, behind))

    def _search(self, source: int, host: str | None) -> dict[int, tuple[Path, ...]]:
        """Paths from one rank by rank, breadth first; ranks end a path. host: only inside this one, where given."""
        start = self._vertex[source]
        vertices = self.topology.vertices
        distance = {start: 0}
        arrivals: dict[int, list[tuple[int, int]]] = {start: []}
        border = [start]
        while border:
            following: list[int] = []
            for vertex in border:
                if vertex in self._rank_vertices and vertex != start:
                    continue
                for head, number in self._next[vertex]:
                    if host is not None and vertices[head].host != host:
                        continue
                    if head not in distance:
                        distance[head] = distance[vertex] + 1
                        arrivals[head] = []
                        following.append(head)
                    if distance[head] == distance[vertex] + 1:
                        arrivals[head].append((vertex, number))
            border = following
        return {
            rank: self._widest(vertex, arrivals)
            for rank, vertex in enumerate(self._vertex)
            if vertex in arrivals and rank != source
        }

    def _widest(self, vertex: int, arrivals: dict[int, list[tuple[int, int]]]) -> tuple[Path, ...]:
        """Walks back along `arrivals`; of the paths found, those whose costliest link is the cheapest."""
        partial = [Path((vertex,), ())]
        while arrivals[partial[0].vertices[0]]:
            longer = [
                Path((tail, *path.vertices), (number, *path.links))
                for path in partial
                for tail, number in arrivals[path.vertices[0]]
            ]
            partial = sorted(longer, key=self._cost)[:_PATHS_MAXIMUM]
        best = self._cost(partial[0])[0]
        return tuple(path for path in partial if self._cost(path)[0] == best)

    def _cost(self, path: Path) -> tuple[int, tuple[int, ...]]:
        return max(self.unit_costs[number] for number in path.links), path.vertices


class Loads:
    """What the links carry so far, as costs, for choices that keep them even."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._units = network.unit_costs
        self.costs = [0] * len(self._units)
        #: How many paths join the two vertices.
        self.uses: Counter[tuple[int, int]] = Counter()

    def best(self, source: int, destination: int, amount: int = 1) -> tuple[int, Path] | None:
        """The path that is the least loaded after `amount` more units on it, with that load."""
        costs, units = self.costs, self._units
        found: tuple[int, Path] | None = None
        for path in self._network.paths(source, destination):
            cost = max([costs[number] + amount * units[number] for number in path.links])
            if found is None or cost < found[0]:
                found = cost, path
        return found

    def add(self, path: Path, amount: int = 1) -> None:
        """Put `amount` units (negative: take them away) on every link of `path`."""
        self.uses[path.vertices[0], path.vertices[-1]] += amount
        for number in path.links:
            self.costs[number] += amount * self._units[number]


def _count_reached(start: int, ways: dict[int, set[int]]) -> int:
    seen, border = {start}, [start]
    while border:
        border = sorted({head for rank in border for head in ways[rank]} - seen)
        seen.update(border)
    return len(seen)


def _hosts(topology: Topology) -> tuple[tuple[int, ...], ...]:
    groups: dict[str | None, list[int]] = {}
    for rank in range(topology.rank_count):
        groups.setdefault(topology.rank_host(rank), []).append(rank)
    return tuple(tuple(ranks) for ranks in groups.values())
