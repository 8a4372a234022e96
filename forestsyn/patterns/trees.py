"""Trees to a schedule: every edge of every tree becomes a transfer.

A `Tree` says how one piece of the message travels: contributions towards its root along `inward`, copies away from it
along `outward`. Both hold, for each rank, the rank next to it towards the root, −1 at the root; `ir.trees` makes
transfers of them.

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
from forestsyn.ir.trees import Phase, assemble_schedule
from forestsyn.patterns.network import Loads, Network, Path

Parents = Sequence[int]
Lane = Mapping[tuple[int, int], Path]


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
    phases: list[Phase] = []
    base = np.zeros(len(trees), dtype=np.int64)
    if collective.reduces:
        phases.append(Phase(_parents([tree.inward for tree in trees]), base, reduce=True))
        base = phases[0].heights
    if collective.broadcasts:
        phases.append(Phase(_parents([tree.outward for tree in trees]), base, reduce=False))
    routes, tables = _routes(network, trees, phases, lanes)
    lane = np.array([tree.lane for tree in trees], dtype=np.int64)
    return assemble_schedule(
        collective,
        rank_count=network.rank_count,
        chunk_count=len(trees),
        root=root,
        pieces=_pieces(trees),
        phases=phases,
        route=np.concatenate([tables[lane[phase.piece], phase.source, phase.destination] for phase in phases]),
        routes=routes,
    )


def _parents(rows: Sequence[Parents]) -> npt.NDArray[np.int64]:
    return np.array(rows, dtype=np.int64)


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


def _routes(
    network: Network, trees: Sequence[Tree], phases: Sequence[Phase], lanes: Sequence[Lane]
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
