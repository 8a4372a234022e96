"""Trees to a schedule: every edge of every tree becomes a transfer.

A `Tree` says how one piece of the message travels: contributions towards its root along `inward`, copies away from it
along `outward`. Both hold, for each rank, the rank next to it towards the root, −1 at the root. Transfers are
numbered by level, hence topologically; a transfer depends on those of the same piece that bring its source what it
sends: for a contribution all that arrive from below, for a copy the one from above, and at the root of an
allreduce all contributions.

Edges of a tree with a lane use the paths of that lane; all others take the least loaded of their paths, in
the order of ranks, counting every tree that uses the edge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from forestsyn.ir.collective import Collective
from forestsyn.ir.schedule import Piece, Schedule
from forestsyn.patterns.network import Loads, Network, Path

Parents = Sequence[int]
Lane = Mapping[tuple[int, int], Path]
_Integers = npt.NDArray[np.int64]


class Tree(NamedTuple):
    """The way of one chunk rooted at `root`. lane: index into the lanes, −1 for the least loaded paths."""

    root: int
    outward: Parents
    inward: Parents
    lane: int = -1


def schedule_trees(
    network: Network, collective: Collective, root: int | None, trees: Sequence[Tree], lanes: Sequence[Lane] = ()
) -> Schedule:
    """The schedule in which each tree carries a chunk of its own; chunks are in the order of their roots.

    Every edge must have a path, see `joinable`. A sharded collective needs equally many trees at every root.
    """
    trees = sorted(trees, key=lambda tree: tree.root)
    phases = []
    heights = np.zeros(len(trees), dtype=np.int64)
    if collective.reduces:
        phases.append(_Phase([tree.inward for tree in trees], heights, reduce=True))
        heights = phases[0].heights
    if collective.broadcasts:
        phases.append(_Phase([tree.outward for tree in trees], heights, reduce=False))
    routes, tables = _routes(network, trees, phases, lanes)
    lane = np.array([tree.lane for tree in trees], dtype=np.int64)
    return _assemble(network.rank_count, collective, root, _pieces(trees), phases, routes, tables, lane)


def joinable(network: Network, collective: Collective, trees: Sequence[Tree]) -> bool:
    """True when every edge that `collective` uses has a path."""
    for tree in trees:
        for rank in range(network.rank_count):
            if collective.broadcasts and tree.outward[rank] >= 0 and not network.paths(tree.outward[rank], rank):
                return False
            if collective.reduces and tree.inward[rank] >= 0 and not network.paths(rank, tree.inward[rank]):
                return False
    return True


def _pieces(trees: Sequence[Tree]) -> tuple[Piece, ...]:
    return tuple(Piece(first=first, count=1, root=tree.root) for first, tree in enumerate(trees))


class _Phase:
    """The transfers of all trees in one direction; arrays of one entry per transfer, and `ids` to find them."""

    def __init__(self, parents: Sequence[Parents], base: _Integers, *, reduce: bool) -> None:
        self.reduce = reduce
        self.parents = np.array(parents, dtype=np.int64)
        depths = _depths(self.parents)
        self.piece, self.child = np.nonzero(self.parents >= 0)
        self.parent = self.parents[self.piece, self.child]
        self.heights = depths.max(axis=1)
        levels = _heights(self.parents, depths) if reduce else depths - 1 + base[:, None]
        self.level = levels[self.piece, self.child]
        self.source = self.child if reduce else self.parent
        self.destination = self.parent if reduce else self.child
        #: int64[P, N], the number of the transfer at each rank of each tree, −1 at the root.
        self.ids = np.full(self.parents.shape, -1, dtype=np.int64)


def _depths(parents: _Integers) -> _Integers:
    """int64[P, N]: edges between each rank and the root of each tree."""
    rows = np.arange(len(parents))[:, None]
    position = np.broadcast_to(np.arange(parents.shape[1]), parents.shape)
    depths = np.zeros(parents.shape, dtype=np.int64)
    while True:
        above = parents[rows, position]
        if (above < 0).all():
            return depths
        depths += above >= 0
        position = np.where(above >= 0, above, position)


def _heights(parents: _Integers, depths: _Integers) -> _Integers:
    """int64[P, N]: edges of the longest chain below each rank of each tree."""
    heights = np.zeros(parents.shape, dtype=np.int64)
    for depth in range(int(depths.max()), 0, -1):
        piece, rank = np.nonzero(depths == depth)
        np.maximum.at(heights, (piece, parents[piece, rank]), heights[piece, rank] + 1)
    return heights


def _routes(
    network: Network, trees: Sequence[Tree], phases: list[_Phase], lanes: Sequence[Lane]
) -> tuple[tuple[tuple[int, ...], ...], npt.NDArray[np.int32]]:
    """All routes in use; int32[lanes + 1, N, N], the number of the route of each edge. The last table has no lane."""
    numbers: dict[tuple[int, ...], int] = {}
    count = network.rank_count
    tables = np.full((len(lanes) + 1, count, count), -1, dtype=np.int32)
    for lane, paths in enumerate(lanes):
        for (source, destination), path in paths.items():
            tables[lane, source, destination] = numbers.setdefault(path.vertices, len(numbers))
    free = np.array([tree.lane < 0 for tree in trees])
    uses: Counter[tuple[int, int]] = Counter()
    for phase in phases:
        mask = free[phase.piece]
        uses.update(zip(phase.source[mask].tolist(), phase.destination[mask].tolist(), strict=True))
    loads = Loads(network)
    for (source, destination), amount in sorted(uses.items()):
        best = loads.best(source, destination, amount)
        assert best is not None, "a tree has an edge without a path"
        loads.add(best[1], amount)
        tables[-1, source, destination] = numbers.setdefault(best[1].vertices, len(numbers))
    return tuple(numbers), tables


def _assemble(
    rank_count: int,
    collective: Collective,
    root: int | None,
    pieces: tuple[Piece, ...],
    phases: list[_Phase],
    routes: tuple[tuple[int, ...], ...],
    tables: npt.NDArray[np.int32],
    lane: _Integers,
) -> Schedule:
    piece, source, destination, level = (
        np.concatenate([getattr(phase, field) for phase in phases])
        for field in ("piece", "source", "destination", "level")
    )
    reduce = np.concatenate([np.full(len(phase.piece), phase.reduce) for phase in phases])
    order = np.lexsort((source, destination, piece, level))
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    begin = 0
    for phase in phases:
        phase.ids[phase.piece, phase.child] = number[begin : begin + len(phase.piece)]
        begin += len(phase.piece)
    starts, dependencies = _dependencies(phases, [piece.root for piece in pieces], len(order))
    route = tables[lane[piece], source, destination]
    return Schedule(
        collective=collective,
        rank_count=rank_count,
        chunk_count=len(pieces),
        root=root,
        pieces=pieces,
        piece=piece[order].astype(np.int32),
        source=source[order].astype(np.int32),
        destination=destination[order].astype(np.int32),
        reduce=reduce[order],
        level=level[order].astype(np.int32),
        route=route[order],
        routes=routes,
        dependency_starts=starts,
        dependencies=dependencies,
    )


def _dependencies(
    phases: list[_Phase], roots: list[int], count: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Compressed rows: what each transfer waits for, in rising order."""
    waiting, needed = [], []
    for phase in phases:
        here, above = phase.ids[phase.piece, phase.child], phase.ids[phase.piece, phase.parent]
        inner = above >= 0
        first, second = (here, above) if phase.reduce else (above, here)
        waiting.append(second[inner])
        needed.append(first[inner])
    if len(phases) == 2:
        for piece, root in enumerate(roots):
            arriving, leaving = (phase.ids[piece][phase.parents[piece] == root] for phase in phases)
            waiting.append(np.repeat(leaving, len(arriving)))
            needed.append(np.tile(arriving, len(leaving)))
    after, before = np.concatenate(waiting), np.concatenate(needed)
    order = np.lexsort((before, after))
    starts = np.searchsorted(after[order], np.arange(count + 1))
    return starts.astype(np.int32), before[order].astype(np.int32)
