"""Trees to transfers: every edge of every tree becomes one, in an order that respects what it waits for.

A tree holds, for each rank, the rank next to it towards the root, −1 at the root. Of trees that reduce, the transfer
out of v has as level the height of the subtree below v; of trees that copy, the one into v has its depth less one,
plus a base: the height of the tree that reduced the same piece before. Transfers are sorted by level, hence
topologically.

Invariant. A dependency of a transfer carries the same piece and arrives at the transfer's source: for a contribution
all that come from below, for a copy the one from above, and at the root of an allreduce all contributions.

Complexity. O(M log M) for M transfers, in numpy.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from forestsyn.ir.collective import Collective
from forestsyn.ir.schedule import Piece, Schedule

_Integers = npt.NDArray[np.int64]


def tree_depths(parents: npt.NDArray[np.integer]) -> npt.NDArray[np.int32]:
    """int32[P, N]: edges between each rank and the root of each tree. Raises ValueError where one holds a cycle."""
    rows = np.arange(len(parents))[:, None]
    position = np.broadcast_to(np.arange(parents.shape[1]), parents.shape)
    depths = np.zeros(parents.shape, dtype=np.int32)
    for _ in range(parents.shape[1]):
        above = parents[rows, position]
        if (above < 0).all():
            return depths
        depths += above >= 0
        position = np.where(above >= 0, above, position)
    raise ValueError("a tree holds a cycle")


def tree_heights(parents: npt.NDArray[np.integer], depths: npt.NDArray[np.integer]) -> _Integers:
    """int64[P, N]: edges of the longest chain below each rank of each tree."""
    heights = np.zeros(parents.shape, dtype=np.int64)
    for depth in range(int(depths.max(initial=0)), 0, -1):
        piece, rank = np.nonzero(depths == depth)
        np.maximum.at(heights, (piece, parents[piece, rank]), heights[piece, rank] + 1)
    return heights


class Phase:
    """The transfers of all pieces in one direction; arrays of one entry per transfer.

    parents: int64[P, N], the tree of each piece. base: int64[P], levels before the first of a piece's copies.
    piece, source, destination, level: int64[M]. heights: int64[P], of the trees.
    """

    def __init__(self, parents: _Integers, base: _Integers, *, reduce: bool) -> None:
        self.reduce = reduce
        self.parents = parents
        depths = tree_depths(parents).astype(np.int64)
        self.heights: _Integers = depths.max(axis=1, initial=0)
        self.piece, self.child = np.nonzero(parents >= 0)
        self.parent = parents[self.piece, self.child]
        levels = tree_heights(parents, depths) if reduce else depths - 1 + base[:, None]
        self.level = levels[self.piece, self.child]
        self.source = self.child if reduce else self.parent
        self.destination = self.parent if reduce else self.child


def assemble_schedule(
    collective: Collective,
    *,
    rank_count: int,
    chunk_count: int,
    root: int | None,
    pieces: tuple[Piece, ...],
    phases: Sequence[Phase],
    route: npt.NDArray[np.integer],
    routes: tuple[tuple[int, ...], ...],
) -> Schedule:
    """The schedule of `phases`, first those that reduce. route: int[M], of the transfers, phase after phase."""
    piece, source, destination, level = (
        np.concatenate([getattr(phase, field) for phase in phases])
        for field in ("piece", "source", "destination", "level")
    )
    reduce = np.concatenate([np.full(len(phase.piece), phase.reduce) for phase in phases])
    order = np.lexsort((source, destination, piece, level))
    starts, dependencies = _dependencies(phases, order)
    return Schedule(
        collective=collective,
        rank_count=rank_count,
        chunk_count=chunk_count,
        root=root,
        pieces=pieces,
        piece=piece[order].astype(np.int32),
        source=source[order].astype(np.int32),
        destination=destination[order].astype(np.int32),
        reduce=reduce[order],
        level=level[order].astype(np.int32),
        route=route[order].astype(np.int32),
        routes=routes,
        dependency_starts=starts,
        dependencies=dependencies,
    )


def _dependencies(
    phases: Sequence[Phase], order: npt.NDArray[np.intp]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Compressed rows: what each transfer waits for, in rising order."""
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    tables, waiting, needed = [], [], []
    begin = 0
    for phase in phases:
        ids = np.full(phase.parents.shape, -1, dtype=np.int64)
        ids[phase.piece, phase.child] = place[begin : begin + len(phase.piece)]
        begin += len(phase.piece)
        tables.append(ids)
        below, above = ids[phase.piece, phase.child], ids[phase.piece, phase.parent]
        inner = above >= 0
        waiting.append((above if phase.reduce else below)[inner])
        needed.append((below if phase.reduce else above)[inner])
    if len(phases) == 2:
        for row in range(len(tables[0])):
            arriving, leaving = (
                ids[row][_children_of_root(phase.parents[row])] for phase, ids in zip(phases, tables, strict=True)
            )
            waiting.append(np.repeat(leaving, len(arriving)))
            needed.append(np.tile(arriving, len(leaving)))
    after, before = np.concatenate(waiting), np.concatenate(needed)
    ranking = np.lexsort((before, after))
    starts = np.searchsorted(after[ranking], np.arange(len(order) + 1))
    return starts.astype(np.int32), before[ranking].astype(np.int32)


def _children_of_root(parents: _Integers) -> npt.NDArray[np.intp]:
    root = int(np.flatnonzero(parents < 0)[0])
    return np.flatnonzero(parents == root)
