"""Forests to a schedule: cut each root's chunks into pieces, and turn every tree edge into a transfer.

Problem. An out-tree copies a run of chunks from its root to every rank, an in-tree sums the ranks' contributions at
its root; an allreduce does both to the same chunks, along two forests that may divide a root's chunks differently.
A piece is a run of chunks that follow one in-tree and one out-tree all the way.

Method. Root r owns a contiguous run, in rank order. Rows of equal multiplicity in the two forests are paired, in the
order of the forests, and the rest is divided at the boundaries of both; so an out-forest that is the reversed
in-forest divides nothing further. Each tree edge becomes one transfer, see `ir.trees`.
"""

from __future__ import annotations

from collections import defaultdict, deque

import numpy as np
import numpy.typing as npt

from forestsyn.errors import InternalError
from forestsyn.ir.collective import Collective
from forestsyn.ir.forest import Direction, Forest
from forestsyn.ir.schedule import Piece, Schedule
from forestsyn.ir.trees import Phase, assemble_schedule

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
    phases: list[Phase] = []
    route: list[_Integers] = []
    base = np.zeros(len(pieces), dtype=np.int64)
    routes: tuple[tuple[int, ...], ...] = ()
    for own, rows in ((reducing, in_rows), (copying, out_rows)):
        if own is None:
            continue
        phase = Phase(own.parents[rows].astype(np.int64), base, reduce=own.direction is Direction.IN)
        route.append(own.edge_routes[rows].astype(np.int64)[phase.piece, phase.child] + len(routes))
        phases.append(phase)
        base = phase.heights
        routes += own.routes
    return assemble_schedule(
        collective,
        rank_count=forest.rank_count,
        chunk_count=forest.chunk_count,
        root=root,
        pieces=pieces,
        phases=phases,
        route=np.concatenate(route),
        routes=routes,
    )


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
