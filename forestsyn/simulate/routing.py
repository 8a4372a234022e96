"""Routes: the links that the messages of a connection pass.

A program names ranks and channels, not links. As a runtime would, a message takes the way with the fewest links
that passes no rank's GPU, among these one with the greatest bandwidth at its narrowest link; where several are equal
(a GPU with two NICs), channels take them in turn. Where no such way exists, messages pass other ranks' GPUs, as with
NCCL the NIC of a neighbour, and the pair is reported.

Method. Breadth-first search from each source; the ways of a pair are enumerated through the levels of the search, the
widest first, at most `_ALTERNATIVES` of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise

from forestsyn.errors import InputError
from forestsyn.ir.profile import LinkClass
from forestsyn.ir.topology import Topology, VertexKind

#: Ways of one pair that are told apart: the NICs of a GPU, at most.
_ALTERNATIVES = 8
#: Ways that are looked at before the widest are chosen.
_ENUMERATED = 256

Routes = Mapping[tuple[int, int], Sequence[tuple[int, ...]]]


class Router:
    """Finds and keeps routes. routes: vertex paths by (source rank, destination rank) that take precedence."""

    def __init__(self, topology: Topology, routes: Routes | None = None) -> None:
        self.topology = topology
        self.rerouted: set[tuple[int, int]] = set()
        self._given = routes or {}
        self._found: dict[tuple[int, int], list[tuple[int, ...]]] = {}
        self._trees: dict[tuple[int, bool], list[int]] = {}
        self._link = {(link.tail, link.head): number for number, link in enumerate(topology.links)}
        self._ranks = set(topology.ranks)
        self._next: list[list[int]] = [[] for _ in topology.vertices]
        self._previous: list[list[int]] = [[] for _ in topology.vertices]
        for link in topology.links:
            self._next[link.tail].append(link.head)
            self._previous[link.head].append(link.tail)

    def links(self, source: int, destination: int, channel: int) -> tuple[int, ...]:
        """The links from one rank to another on a channel, as positions in `topology.links`.

        Raises InputError when there is no way at all.
        """
        pair = (source, destination)
        if pair not in self._found:
            self._found[pair] = list(self._given.get(pair, ())) or self._search(source, destination)
        paths = self._found[pair]
        path = paths[channel % len(paths)]
        return tuple(self._link[step] for step in pairwise(path))

    def _search(self, source: int, destination: int) -> list[tuple[int, ...]]:
        start, end = self.topology.ranks[source], self.topology.ranks[destination]
        for through_ranks in (False, True):
            levels = self._levels(start, through_ranks)
            if levels[end] >= 0:
                if through_ranks:
                    self.rerouted.add((source, destination))
                return self._widest(start, end, levels)
        names = self.topology.rank_name(source), self.topology.rank_name(destination)
        raise InputError(
            f"no way leads from rank {source} ({names[0]}) to rank {destination} ({names[1]})",
            where=self.topology.name,
            hint="the program and the topology do not belong together",
        )

    def _levels(self, start: int, through_ranks: bool) -> list[int]:
        """Links from `start` to each vertex, −1 where there is no way."""
        key = (start, through_ranks)
        if key not in self._trees:
            levels = [-1] * len(self.topology.vertices)
            levels[start] = 0
            queue = deque([start])
            while queue:
                vertex = queue.popleft()
                if vertex != start and vertex in self._ranks and not through_ranks:
                    continue
                for head in self._next[vertex]:
                    if levels[head] < 0:
                        levels[head] = levels[vertex] + 1
                        queue.append(head)
            self._trees[key] = levels
        return self._trees[key]

    def _widest(self, start: int, end: int, levels: list[int]) -> list[tuple[int, ...]]:
        before: dict[int, list[int]] = {}
        layer = {end}
        while layer != {start}:
            for head in layer:
                before[head] = [tail for tail in self._tails(head) if levels[tail] == levels[head] - 1]
            layer = {tail for head in layer for tail in before[head]}
        paths: list[tuple[int, ...]] = []
        stack: list[tuple[int, ...]] = [(end,)]
        while stack and len(paths) < _ENUMERATED:
            path = stack.pop()
            if path[0] == start:
                paths.append(path)
            else:
                stack += [(tail, *path) for tail in reversed(before[path[0]])]
        width = [self._width(path) for path in paths]
        return [path for path, own in zip(paths, width, strict=True) if own == max(width)][:_ALTERNATIVES]

    def _tails(self, head: int) -> list[int]:
        return self._previous[head]

    def _width(self, path: tuple[int, ...]) -> Fraction:
        return min(self.topology.links[self._link[step]].bandwidth for step in pairwise(path))


def link_class(topology: Topology, links: Sequence[int]) -> LinkClass:
    """The slowest class of link that a message passes."""
    kinds = {
        topology.vertices[end].kind
        for number in links
        for end in (topology.links[number].tail, topology.links[number].head)
    }
    hosts = {
        topology.vertices[end].host
        for number in links
        for end in (topology.links[number].tail, topology.links[number].head)
    }
    if VertexKind.NIC in kinds or len(hosts) > 1:
        return LinkClass.NETWORK
    return LinkClass.HOST if VertexKind.CPU in kinds else LinkClass.PEER
