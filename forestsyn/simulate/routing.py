"""Routes: the links that the messages of a connection pass.

A program names ranks and channels, not links. As a runtime would, a message takes a way with the fewest links that
passes no other rank's GPU, among these one with the greatest bandwidth at its narrowest link. Equal ways (a GPU with
two NICs, a fabric with two spines) are taken in turn by channel, beginning further on for higher ranks, as NCCL
spreads GPUs over NICs. Where no such way exists, messages pass other ranks' GPUs, as with NCCL the NIC of a
neighbour, and the pair is reported.

Method. Breadth-first search from each source; the ways of a pair are enumerated backwards through its levels.

References. ncclTopoGetLocalNet in NVIDIA/nccl src/graph/topo.cc.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise

from forestsyn.errors import InputError
from forestsyn.ir.profile import LinkClass
from forestsyn.ir.topology import Topology, VertexKind

#: Ways of a pair that are looked at before the widest are chosen.
_ENUMERATED = 256
#: GB/s from which on a way between hosts that passes no NIC is a scale-up fabric (NVLink over trays), not a network.
_SCALE_UP = 150

#: Vertex paths by (source rank, destination rank).
Routes = Mapping[tuple[int, int], Sequence[tuple[int, ...]]]


class Router:
    """Finds and keeps routes. routes: given ones take precedence, several of a pair in turn by channel."""

    def __init__(self, topology: Topology, routes: Routes | None = None) -> None:
        self.topology = topology
        self.rerouted: set[tuple[int, int]] = set()
        self._given = routes or {}
        self._found: dict[tuple[int, int], list[tuple[int, ...]]] = {}
        self._levels: dict[tuple[int, bool], list[int]] = {}
        self._link = {(link.tail, link.head): number for number, link in enumerate(topology.links)}
        self._ranks = set(topology.ranks)
        self._heads: list[list[int]] = [[] for _ in topology.vertices]
        self._tails: list[list[int]] = [[] for _ in topology.vertices]
        for link in topology.links:
            self._heads[link.tail].append(link.head)
            self._tails[link.head].append(link.tail)

    def links(self, source: int, destination: int, channel: int) -> tuple[int, ...]:
        """The links from one rank to another on a channel, as positions in `topology.links`.

        Raises InputError when there is no way at all, or a given one is none.
        """
        pair = (source, destination)
        if pair not in self._found:
            given = self._given.get(pair)
            self._found[pair] = self._checked(pair, given) if given else self._search(pair)
        paths = self._found[pair]
        turn = channel if self._given.get(pair) else channel + source + destination
        path = paths[turn % len(paths)]
        return tuple(self._link[step] for step in pairwise(path))

    def _checked(self, pair: tuple[int, int], paths: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        ends = tuple(self.topology.ranks[rank] for rank in pair)
        for path in paths:
            if (path[0], path[-1]) != ends or any(step not in self._link for step in pairwise(path)):
                raise InputError(
                    f"the route {path} given for rank {pair[0]} to rank {pair[1]} is no way between them",
                    where=self.topology.name,
                )
        return list(paths)

    def _search(self, pair: tuple[int, int]) -> list[tuple[int, ...]]:
        start, end = (self.topology.ranks[rank] for rank in pair)
        for through_ranks in (False, True):
            levels = self._levels_from(start, through_ranks)
            if levels[end] >= 0:
                if through_ranks:
                    self.rerouted.add(pair)
                return self._widest(start, end, through_ranks)
        names = [f"rank {rank} ({self.topology.rank_name(rank)})" for rank in pair]
        raise InputError(
            f"no way leads from {names[0]} to {names[1]}",
            where=self.topology.name,
            hint="choose the topology that the program was made for",
        )

    def _levels_from(self, start: int, through_ranks: bool) -> list[int]:
        """Links from `start` to each vertex, −1 where there is no way."""
        key = (start, through_ranks)
        if key not in self._levels:
            levels = [-1] * len(self.topology.vertices)
            levels[start] = 0
            queue = deque([start])
            while queue:
                vertex = queue.popleft()
                if vertex != start and vertex in self._ranks and not through_ranks:
                    continue
                for head in self._heads[vertex]:
                    if levels[head] < 0:
                        levels[head] = levels[vertex] + 1
                        queue.append(head)
            self._levels[key] = levels
        return self._levels[key]

    def _widest(self, start: int, end: int, through_ranks: bool) -> list[tuple[int, ...]]:
        """The widest of the shortest ways, sorted."""
        levels = self._levels_from(start, through_ranks)
        paths: list[tuple[int, ...]] = []
        stack: list[tuple[int, ...]] = [(end,)]
        while stack and len(paths) < _ENUMERATED:
            path = stack.pop()
            if path[0] == start:
                paths.append(path)
                continue
            for tail in self._tails[path[0]]:
                passable = through_ranks or tail == start or tail not in self._ranks
                if passable and levels[tail] == levels[path[0]] - 1:
                    stack.append((tail, *path))
        widths = [self._width(path) for path in paths]
        return sorted(path for path, width in zip(paths, widths, strict=True) if width == max(widths))

    def _width(self, path: tuple[int, ...]) -> Fraction:
        return min(self.topology.links[self._link[step]].bandwidth for step in pairwise(path))


def link_class(topology: Topology, links: Sequence[int]) -> LinkClass:
    """The slowest class of link that a message passes on its way over `links`."""
    ends = [topology.links[number] for number in links]
    vertices = [topology.vertices[ends[0].tail], *(topology.vertices[link.head] for link in ends)]
    kinds = {vertex.kind for vertex in vertices}
    leaves_host = vertices[0].host != vertices[-1].host and VertexKind.SWITCH in kinds
    if VertexKind.NIC in kinds or (leaves_host and min(link.bandwidth for link in ends) < _SCALE_UP):
        return LinkClass.NETWORK
    return LinkClass.HOST if VertexKind.CPU in kinds else LinkClass.PEER
