"""Forests to a schedule: cut each root's chunks into pieces, and turn every tree edge into a transfer.

Problem. An out-tree copies a run of chunks from its root to every rank, an in-tree sums the ranks' contributions at
its root; an allreduce does both to the same chunks, along two forests that may divide a root's chunks differently.
A piece is a run of chunks that follow one in-tree and one out-tree all the way.

Method. Root r owns a contiguous run, in rank order. Rows of equal multiplicity in the two forests are paired, in the
order of the forests, and the rest is divided at the boundaries of both; so an out-forest that is the reversed
in-forest divides nothing further. Each tree edge becomes one transfer. The transfer out of v in an in-tree has as
level the height of the subtree below v; the one into v in an out-tree has its depth less one, plus the height of the
piece's in-tree. Transfers are sorted by level, hence topologically.

Invariant. A dependency d of a transfer t carries the same piece and arrives at the source of t: for an in-tree all
contributions from below, for an out-tree the copy from above, and at the root of an allreduce all contributions.

Complexity. O(M log M) for M transfers, in numpy.
"""

from __future__ import annotations

from collections import defaultdict, deque

import numpy as np
import numpy.typing as npt

from forestsyn.errors import InternalError
from forestsyn.ir.collective import Collective
from forestsyn.ir.forest import Direction, Forest
from forestsyn.ir.schedule import Piece, Schedule

_Integers = npt.NDArray[np.int64]


def lower_forests(
    collective: Collective, *, out_forest: Forest | None, in_forest: Forest | None, root: int | None
) -> Schedule:
    """The schedule of `collective` along `in_forest` (when it reduces) and `out_forest` (when it broadcasts).

    root: the distinguished rank of broadcast and reduce, else None.
    Raises InternalError when a forest is missing or does not fit the collective or the other forest.
    """
    reducing = in_forest if collective.reduces else None
    copying = out_forest if collective.broadcasts else None
    forest = _check(collective, reducing, copying, root)
    pieces, in_rows, out_rows = _divide(forest.demand, reducing, copying)
    phases = []
    base = np.zeros(len(pieces), dtype=np.int64)
    routes: tuple[tuple[int, ...], ...] = ()
    if reducing is not None:
        phases.append(_Phase(reducing, in_rows, base, first_route=0))
        base = phases[0].heights
        routes = reducing.routes
    if copying is not None:
        phases.append(_Phase(copying, out_rows, base, first_route=len(routes)))
        routes += copying.routes
    return _assemble(collective, forest, root, pieces, phases, routes)


def _check(collective: Collective, reducing: Forest | None, copying: Forest | None, root: int | None) -> Forest:
    if (collective.reduces and reducing is None) or (collective.broadcasts and copying is None):
        raise InternalError(f"{collective} lacks a forest")
    for forest, direction in ((reducing, Direction.IN), (copying, Direction.OUT)):
        if forest is not None and forest.direction is not direction:
            raise InternalError(f"{collective} was given a forest of direction {forest.direction} as {direction}")
    if reducing is not None and copying is not None and reducing.demand != copying.demand:
        raise InternalError(f"the in-forest has demand {reducing.demand}, the out-forest {copying.demand}")
    forest = reducing or copying
    assert forest is not None
    if collective.shards and len(set(forest.demand)) != 1:
        raise InternalError(f"{collective} needs as many trees at every root, found {forest.demand}")
    rooted_at = {rank for rank, trees in enumerate(forest.demand) if trees}
    if collective.rooted != (root is not None) or (root is not None and rooted_at != {root}):
        raise InternalError(f"{collective} with root {root} was given trees at {sorted(rooted_at)}")
    return forest


def _divide(
    demand: tuple[int, ...], reducing: Forest | None, copying: Forest | None
) -> tuple[tuple[Piece, ...], list[int], list[int]]:
    """Pieces in chunk order, and of each the row of its in-tree and out-tree (−1 without such a forest)."""
    pieces, in_rows, out_rows = [], [], []
    first = 0
    in_rows_of = _rows_by_root(reducing)
    out_rows_of = _rows_by_root(copying)
    for root, trees in enumerate(demand):
        start = first
        for in_row, out_row, count in _common_parts(in_rows_of[root], out_rows_of[root]):
            pieces.append(Piece(first=first, count=count, root=root))
            in_rows.append(in_row)
            out_rows.append(out_row)
            first += count
        if first - start != trees:
            raise InternalError(f"root {root} has {first - start} unit trees, its demand is {trees}")
    return tuple(pieces), in_rows, out_rows


def _rows_by_root(forest: Forest | None) -> dict[int, list[tuple[int, int]]]:
    """(multiplicity, row) of every tree, by root, in the order of the forest."""
    rows: dict[int, list[tuple[int, int]]] = defaultdict(list)
    if forest is not None:
        for row, root in enumerate(forest.roots.tolist()):
            rows[root].append((int(forest.multiplicities[row]), row))
    return rows


def _common_parts(in_trees: list[tuple[int, int]], out_trees: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """(in row, out row, chunks) of each piece of one root."""
    if not in_trees or not out_trees:
        return [(row, -1, chunks) for chunks, row in in_trees] + [(-1, row, chunks) for chunks, row in out_trees]
    same: dict[int, deque[int]] = defaultdict(deque)
    for chunks, row in out_trees:
        same[chunks].append(row)
    parts, rest_in = [], deque[tuple[int, int]]()
    for chunks, row in in_trees:
        if same[chunks]:
            parts.append((row, same[chunks].popleft(), chunks))
        else:
            rest_in.append((chunks, row))
    rest_out = deque((chunks, row) for chunks, rows in same.items() for row in rows)
    while rest_in and rest_out:
        (in_chunks, in_row), (out_chunks, out_row) = rest_in.popleft(), rest_out.popleft()
        chunks = min(in_chunks, out_chunks)
        parts.append((in_row, out_row, chunks))
        if in_chunks > chunks:
            rest_in.appendleft((in_chunks - chunks, in_row))
        if out_chunks > chunks:
            rest_out.appendleft((out_chunks - chunks, out_row))
    return parts


class _Phase:
    """The transfers of all pieces along one forest; arrays of one entry per transfer, and `ids` to find them."""

    def __init__(self, forest: Forest, rows: list[int], base: _Integers, *, first_route: int) -> None:
        self.reduce = forest.direction is Direction.IN
        self.parents = forest.parents[rows].astype(np.int64)
        depths = forest.depths()[rows].astype(np.int64)
        below = _heights(self.parents, depths)
        self.piece, self.child = np.nonzero(self.parents >= 0)
        self.parent = self.parents[self.piece, self.child]
        self.heights = depths.max(axis=1, initial=0)
        levels = below if self.reduce else depths - 1 + base[:, None]
        self.level = levels[self.piece, self.child]
        self.route = forest.edge_routes[rows].astype(np.int64)[self.piece, self.child] + first_route
        self.source = self.child if self.reduce else self.parent
        self.destination = self.parent if self.reduce else self.child
        #: int64[P, N], the transfer of the edge at v; filled in once the order is known.
        self.ids = np.full(self.parents.shape, -1, dtype=np.int64)


def _heights(parents: _Integers, depths: _Integers) -> _Integers:
    """int64[P, N]: the longest chain of edges below each rank."""
    heights = np.zeros(parents.shape, dtype=np.int64)
    for depth in range(int(depths.max(initial=0)), 0, -1):
        row, rank = np.nonzero(depths == depth)
        np.maximum.at(heights, (row, parents[row, rank]), heights[row, rank] + 1)
    return heights


def _assemble(
    collective: Collective,
    forest: Forest,
    root: int | None,
    pieces: tuple[Piece, ...],
    phases: list[_Phase],
    routes: tuple[tuple[int, ...], ...],
) -> Schedule:
    piece = np.concatenate([phase.piece for phase in phases])
    source = np.concatenate([phase.source for phase in phases])
    destination = np.concatenate([phase.destination for phase in phases])
    level = np.concatenate([phase.level for phase in phases])
    reduce = np.concatenate([np.full(len(phase.piece), phase.reduce) for phase in phases])
    order = np.lexsort((source, destination, piece, level))
    position = np.empty_like(order)
    position[order] = np.arange(len(order))
    begin = 0
    for phase in phases:
        end = begin + len(phase.piece)
        phase.ids[phase.piece, phase.child] = position[begin:end]
        begin = end
    starts, dependencies = _dependencies(phases, len(order))
    return Schedule(
        collective=collective,
        rank_count=forest.rank_count,
        chunk_count=forest.chunk_count,
        root=root,
        pieces=pieces,
        piece=piece[order].astype(np.int32),
        source=source[order].astype(np.int32),
        destination=destination[order].astype(np.int32),
        reduce=reduce[order],
        level=level[order].astype(np.int32),
        route=np.concatenate([phase.route for phase in phases])[order].astype(np.int32),
        routes=routes,
        dependency_starts=starts,
        dependencies=dependencies,
    )


def _dependencies(phases: list[_Phase], count: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Compressed rows: the dependencies of each transfer, sorted."""
    waiting, needed = [], []
    for phase in phases:
        below = phase.ids[phase.piece, phase.child]
        above = phase.ids[phase.piece, phase.parent]
        inner = above >= 0
        waiting.append((above if phase.reduce else below)[inner])
        needed.append((below if phase.reduce else above)[inner])
    if len(phases) == 2:
        for row in range(len(phases[0].ids)):
            arriving, leaving = (phase.ids[row][_children_of_root(phase.parents[row])] for phase in phases)
            waiting.append(np.repeat(leaving, len(arriving)))
            needed.append(np.tile(arriving, len(leaving)))
    after, before = np.concatenate(waiting), np.concatenate(needed)
    order = np.lexsort((before, after))
    starts = np.searchsorted(after[order], np.arange(count + 1))
    return starts.astype(np.int32), before[order].astype(np.int32)


def _children_of_root(parents: _Integers) -> _Integers:
    root = int(np.flatnonzero(parents < 0)[0])
    return np.flatnonzero(parents == root)
