"""Small forests and schedules made by hand, which need neither the core nor lowering."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from forestsyn.ir.collective import Collective
from forestsyn.ir.forest import Direction, Forest
from forestsyn.ir.schedule import Piece, Schedule
from forestsyn.ir.topology import Topology
from tests.strategies import make_topology

Tree = tuple[int, int, Mapping[int, int], Mapping[int, int]]  # root, multiplicity, parent and route of each rank
Transfer = tuple[int, int, int, bool, Sequence[int]]  # piece, source, destination, reduce, dependencies


def small_topology() -> Topology:
    """Three ranks on one switch (vertex 3) with 2 GB/s each way, and a direct link g0 -> g1 of 1 GB/s."""
    links = {(0, 1): Fraction(1)}
    for rank in range(3):
        links[rank, 3] = links[3, rank] = Fraction(2)
    return make_topology(3, 1, links)


def small_forest() -> Forest:
    """One out-tree per root of `small_topology` in one time unit; the links of g1 -> sw0 and sw0 -> g2 are full."""
    routes = ((0, 1), (1, 3, 2), (2, 3, 0), (0, 3, 1))
    trees: list[Tree] = [
        (0, 1, {1: 0, 2: 1}, {1: 0, 2: 1}),
        (1, 1, {2: 1, 0: 2}, {2: 1, 0: 2}),
        (2, 1, {0: 2, 1: 0}, {0: 2, 1: 3}),
    ]
    return make_forest(3, routes, trees)


def make_forest(rank_count: int, routes: Sequence[tuple[int, ...]], trees: Sequence[Tree]) -> Forest:
    """A forest of out-trees in one time unit; the demand is what the trees add up to."""
    parents = np.full((len(trees), rank_count), -1, dtype=np.int32)
    edge_routes = parents.copy()
    demand = [0] * rank_count
    for number, (root, multiplicity, parent, route) in enumerate(trees):
        demand[root] += multiplicity
        for child in parent:
            parents[number, child], edge_routes[number, child] = parent[child], route[child]
    return Forest(
        direction=Direction.OUT,
        rank_count=rank_count,
        demand=tuple(demand),
        time_units=Fraction(1),
        roots=np.array([tree[0] for tree in trees], dtype=np.int32),
        multiplicities=np.array([tree[1] for tree in trees], dtype=np.int64),
        parents=parents,
        routes=tuple(routes),
        edge_routes=edge_routes,
    )


def chain_transfers(collective: Collective, root: int, piece: int, rank_count: int, start: int) -> list[Transfer]:
    """Piece `piece` along the chain root, root+1, …; inwards if it reduces, then outwards if it broadcasts.

    `start` is the number of the first of these transfers.
    """
    chain = [(root + step) % rank_count for step in range(rank_count)]
    ends: list[tuple[int, int, bool]] = []
    if collective.reduces:
        ends += [(chain[step], chain[step - 1], True) for step in range(rank_count - 1, 0, -1)]
    if collective.broadcasts:
        ends += [(chain[step - 1], chain[step], False) for step in range(1, rank_count)]
    return [
        (piece, source, destination, reduce, [start + number - 1] if number else [])
        for number, (source, destination, reduce) in enumerate(ends)
    ]


def chain_schedule(collective: Collective, rank_count: int = 3, chunks: int = 2) -> Schedule:
    """A correct schedule of one chain per root, each for one piece of `chunks` chunks."""
    roots = [1] if collective.rooted else list(range(rank_count))
    transfers: list[Transfer] = []
    for piece, root in enumerate(roots):
        transfers += chain_transfers(collective, root, piece, rank_count, len(transfers))
    pieces = tuple(Piece(first=chunks * number, count=chunks, root=root) for number, root in enumerate(roots))
    return make_schedule(collective, rank_count, pieces, transfers, root=1 if collective.rooted else None)


def make_schedule(
    collective: Collective,
    rank_count: int,
    pieces: tuple[Piece, ...],
    transfers: Sequence[Transfer],
    root: int | None = None,
) -> Schedule:
    """A schedule of `transfers`; levels follow from their dependencies, routes pass one switch."""
    routes = sorted({(source, rank_count, destination) for _, source, destination, _, _ in transfers})
    levels: list[int] = []
    for *_, dependencies in transfers:
        levels.append(max((levels[number] + 1 for number in dependencies), default=0))
    starts = np.cumsum([0, *(len(transfer[4]) for transfer in transfers)])
    return Schedule(
        collective=collective,
        rank_count=rank_count,
        chunk_count=sum(piece.count for piece in pieces),
        root=root,
        pieces=pieces,
        piece=np.array([transfer[0] for transfer in transfers], dtype=np.int32),
        source=np.array([transfer[1] for transfer in transfers], dtype=np.int32),
        destination=np.array([transfer[2] for transfer in transfers], dtype=np.int32),
        reduce=np.array([transfer[3] for transfer in transfers], dtype=np.bool_),
        level=np.array(levels, dtype=np.int32),
        route=np.array([routes.index((t[1], rank_count, t[2])) for t in transfers], dtype=np.int32),
        routes=tuple(routes),
        dependency_starts=starts.astype(np.int32),
        dependencies=np.array([number for t in transfers for number in t[4]], dtype=np.int32),
    )


def transfers_of(schedule: Schedule) -> list[Transfer]:
    """The transfers as `make_schedule` takes them."""
    return [
        (
            int(schedule.piece[number]),
            int(schedule.source[number]),
            int(schedule.destination[number]),
            bool(schedule.reduce[number]),
            schedule.dependencies_of(number).tolist(),
        )
        for number in range(schedule.transfer_count)
    ]
