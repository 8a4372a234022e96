"""Rings: the trees of fewest peers.

Every root sends both ways round one ring of all ranks, half of the way each, so a rank has two peers whatever the
number of ranks, and the deepest chain has N / 2 transfers. Ring neighbours are joined by a shortest route through
switches. The ring follows the order of the ranks; where two neighbours are not joined there is none.

Guarantee. The trees are spanning trees on physical routes, in the time that their busiest link takes; nothing is said
about how far that is from the optimum. Complexity: one breadth-first search for each pair of neighbours and way.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import msgspec
import numpy as np

from forestsyn.ir.forest import Direction, Forest
from forestsyn.ir.topology import Topology


def ring_forest(topology: Topology, demand: Sequence[int], direction: Direction) -> Forest | None:
    """demand[v] unit trees at every root v along the ring of ranks in their order, or None where there is no ring."""
    ranks = topology.rank_count
    following = _following(topology)
    routes: list[tuple[int, ...]] = []
    for step in (1, -1):  # the edges to ranks that are reached forwards, then those to ranks reached backwards
        for rank in range(ranks):
            ends = (topology.ranks[(rank - step) % ranks], topology.ranks[rank])
            route = _route(topology, following, *(ends if direction is Direction.OUT else ends[::-1]))
            if route is None:
                return None
            routes.append(route)
    roots = np.flatnonzero(np.array(demand))
    distance = (np.arange(ranks)[None, :] - roots[:, None]) % ranks
    forwards = distance <= ranks // 2
    parents = (np.arange(ranks)[None, :] + np.where(forwards, -1, 1)) % ranks
    edge_routes = np.where(forwards, 0, ranks) + np.arange(ranks)[None, :]
    parents[distance == 0] = edge_routes[distance == 0] = -1
    used, numbers = np.unique(edge_routes[edge_routes >= 0], return_inverse=True)
    edge_routes[edge_routes >= 0] = numbers
    forest = Forest(
        direction=direction,
        rank_count=ranks,
        demand=tuple(demand),
        time_units=Fraction(0),
        roots=roots.astype(np.int32),
        multiplicities=np.array([demand[root] for root in roots.tolist()], dtype=np.int64),
        parents=parents.astype(np.int32),
        routes=tuple(routes[route] for route in used.tolist()),
        edge_routes=edge_routes.astype(np.int32),
    )
    return msgspec.structs.replace(forest, time_units=busiest_time(topology, forest))


def busiest_time(topology: Topology, forest: Forest) -> Fraction:
    """The time that the busiest link takes, s per GB of chunk; of a base and its turns, the time that it was made
    for."""
    if forest.turn is not None:
        return forest.time_units
    per_route = np.zeros(len(forest.routes), dtype=np.int64)
    rows, heads = np.nonzero(forest.edge_routes >= 0)
    np.add.at(per_route, forest.edge_routes[rows, heads], forest.multiplicities[rows])
    units: dict[tuple[int, int], int] = {}
    for route, count in zip(forest.routes, per_route.tolist(), strict=True):
        for ends in pairwise(route):
            units[ends] = units.get(ends, 0) + count
    bandwidth = {(link.tail, link.head): link.bandwidth for link in topology.links}
    return max((count / bandwidth[ends] for ends, count in units.items()), default=Fraction(0))


def _following(topology: Topology) -> list[list[int]]:
    following: list[list[int]] = [[] for _ in topology.vertices]
    for link in topology.links:
        following[link.tail].append(link.head)
    return [sorted(heads) for heads in following]


def _route(topology: Topology, following: Sequence[Sequence[int]], start: int, end: int) -> tuple[int, ...] | None:
    """A shortest path that passes through no rank."""
    ranks = set(topology.ranks)
    before: dict[int, int] = {start: start}
    border = [start]
    while border and end not in before:
        reached: list[int] = []
        for vertex in border:
            for other in following[vertex]:
                if other not in before and (other == end or other not in ranks):
                    before[other] = vertex
                    reached.append(other)
        border = reached
    if end not in before:
        return None
    path = [end]
    while path[-1] != start:
        path.append(before[path[-1]])
    return tuple(path[::-1])
