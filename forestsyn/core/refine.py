"""Shallower trees at the same congestion: choose the parents of one rank in all trees at once.

Problem. Growth by flows (see `packing`) finishes one tree after the other, so late trees take what is left and
become deep. The forest is exact already; only its depth is to fall.

Theory. Take a rank v and leave all trees alone but for the arc that enters v. In a tree t, v may hang below any
rank u that is not in the subtree of v; the subtree then reaches down to depth(u) + 1 + height(v). The arcs into v
are shared by nothing else, so the best choice for all trees together is one transportation problem: trees with
their multiplicities against arcs (u, v) with their capacities, at a cost that grows with the depth reached. The
choice in force is feasible, so the sum of the costs never rises.

Method. Coordinate descent: solve that problem for one rank after the other until a pass over all ranks leaves the
greatest depth as it was. A unit at depth d costs 4^d; keeping the present parent breaks ties. A
tree whose units get different parents is divided.

Guarantee. Every tree stays a spanning tree of its root, no arc carries more than its capacity, and the
cost never rises. Exactness: integers; costs are cut off far below the deepest trees, which changes preferences
only.

Complexity: one minimum-cost flow of (trees × in-degree) arcs per rank and pass.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from forestsyn.core.packing import Arc, PackedTree
from forestsyn.graph.transport import cheapest_transport
from forestsyn.ir.trees import tree_depths, tree_heights

#: Passes over all ranks at most.
PASSES = 8
#: Trees at most, in multiples of those that came in: divided trees cost steps in a program.
GROWTH = 3
#: Depths that are told apart, counted from the deepest.
RANGE = 12

Integers = npt.NDArray[np.int64]


def refine_depth(rank_count: int, arcs: Sequence[Arc], trees: Sequence[PackedTree]) -> list[PackedTree]:
    """The same demand on the same arcs, with fewer transfers in a chain where that was found."""
    descent = _Descent(rank_count, arcs, trees)
    deepest = descent.deepest()
    for _ in range(PASSES):
        for rank in range(rank_count):
            descent.settle(rank)
            if len(descent.roots) > GROWTH * len(trees):
                return descent.packed()
        before, deepest = deepest, descent.deepest()
        if deepest == before:
            break
    return descent.packed()


class _Descent:
    """All trees as arrays: roots[T], units[T], parents[T, N]."""

    def __init__(self, rank_count: int, arcs: Sequence[Arc], trees: Sequence[PackedTree]) -> None:
        self.roots = np.array([tree.root for tree in trees], dtype=np.int64)
        self._units = np.array([tree.multiplicity for tree in trees], dtype=np.int64)
        self._parents = np.array([tree.parents for tree in trees], dtype=np.int64)
        self._sources: list[list[int]] = [[] for _ in range(rank_count)]
        self._rooms: list[list[int]] = [[] for _ in range(rank_count)]
        for tail, head, units in sorted(arcs):
            self._sources[head].append(tail)
            self._rooms[head].append(units)

    def deepest(self) -> int:
        """The greatest depth of any tree."""
        return int(tree_depths(self._parents).max())

    def settle(self, rank: int) -> None:
        """Give every tree its best parent of `rank`."""
        trees = np.flatnonzero(self.roots != rank)
        if not len(trees):
            return
        sources = np.array(self._sources[rank], dtype=np.int64)
        depths = tree_depths(self._parents)
        reach = depths[np.ix_(trees, sources)] + 1 + tree_heights(self._parents, depths)[trees, rank][:, None]
        steps = np.clip(reach - int(depths.max()) + RANGE, 0, RANGE + 2)
        change = sources[None, :] != self._parents[trees, rank][:, None]
        amounts = cheapest_transport(
            self._units[trees].tolist(),
            self._rooms[rank],
            (np.int64(8) << 2 * steps) + change,
            ~self._below(rank, trees, sources),
        )
        if amounts is not None:
            self._hang(rank, trees, sources, amounts)

    def packed(self) -> list[PackedTree]:
        """The trees, equal ones merged."""
        rows: dict[tuple[int, ...], int] = {}
        depth: dict[tuple[int, ...], int] = {}
        deepest = tree_depths(self._parents).max(axis=1).tolist()
        lines = np.concatenate([self.roots[:, None], self._parents], axis=1).tolist()
        for line, units, reached in zip(lines, self._units.tolist(), deepest, strict=True):
            rows[tuple(line)] = rows.get(tuple(line), 0) + units
            depth[tuple(line)] = reached
        return [
            PackedTree(root=row[0], multiplicity=units, parents=row[1:], depth=depth[row])
            for row, units in rows.items()
        ]

    def _hang(self, rank: int, trees: Integers, sources: Integers, amounts: Integers) -> None:
        """Take over the parents; a tree with several is divided."""
        line, column = np.nonzero(amounts)
        first = np.concatenate([[True], line[1:] != line[:-1]])
        self._parents[trees[line[first]], rank] = sources[column[first]]
        self._units[trees[line[first]]] = amounts[line[first], column[first]]
        line, column = line[~first], column[~first]
        if len(line):
            copies = self._parents[trees[line]].copy()
            copies[:, rank] = sources[column]
            self._parents = np.concatenate([self._parents, copies])
            self.roots = np.concatenate([self.roots, self.roots[trees[line]]])
            self._units = np.concatenate([self._units, amounts[line, column]])

    def _below(self, rank: int, trees: Integers, sources: Integers) -> npt.NDArray[np.bool_]:
        """bool[trees, sources]: the source lies in the subtree of `rank`."""
        position = np.broadcast_to(sources, (len(trees), len(sources)))
        below: npt.NDArray[np.bool_] = position == rank
        while True:
            parent = self._parents[trees[:, None], position]
            if (parent < 0).all():
                return below
            position = np.where(parent >= 0, parent, position)
            below = below | (position == rank)
