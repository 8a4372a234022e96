"""Layered packing: all trees at once, one transportation problem per rank.

Problem. As in `packing`: root r needs d_r out-trees within the arc capacities. Here they shall also be shallow.

Theory. Give every batch b of unit trees (root r, m_b units) a label ℓ_b(v) per rank with ℓ_b(r) = 0, and let a unit
of b enter v only from a rank u with ℓ_b(u) < ℓ_b(v). Whatever parents the units of b then choose, one per rank
other than the root, the arcs of a unit form a tree: labels fall towards the root, so there is no cycle and no other
end. Its depth is at most the largest label. The only thing left is capacity, and an arc (u, v) is shared only by
trees that enter v: for fixed labels the whole packing falls apart into one transportation problem per rank v,
batches with m_b units against arcs (u, v) with c(u, v).

Method. Start with ℓ = distance from the root: if every transportation problem is solvable, all trees are shortest-
path trees and the depth is the least that is possible. If one at v is not, a minimum cut names batches that ask for
too few arcs (Hall). Raise ℓ_b(v) for one of them, the one that gains another arc at the least label; only as many
units as are missing are raised, the batch being divided. Ranks whose parents a raise took away are solved again.

Guarantee. A result is exact and within the capacities; it is shortest-path where no label was raised. Labels only
rise, so it ends; but it may end without a result (None) on graphs with many tight sets, where growth by flows
(`packing`) still works.

Complexity: one small flow per rank and round; symmetric networks (torus, mesh, hypercube, switched hosts) need one
round. Exactness: integers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from forestsyn.core.packing import Arc, PackedTree
from forestsyn.graph.transport import Transport, solve_transport

#: Transportation problems solved per rank, on average, before the attempt is given up.
ROUNDS = 12
#: The largest label, in multiples of the largest distance.
STRETCH = 2


def pack_layers(rank_count: int, arcs: Sequence[Arc], demand: Sequence[int]) -> list[PackedTree] | None:
    """demand[v] out-trees rooted at every rank v within the capacities of `arcs`, or None where this way fails."""
    return _Layers(rank_count, arcs, demand).run()


class _Layers:
    """Batches with their labels, and what each rank's last transportation problem gave."""

    def __init__(self, rank_count: int, arcs: Sequence[Arc], demand: Sequence[int]) -> None:
        self._count = rank_count
        self._sources: list[list[int]] = [[] for _ in range(rank_count)]
        self._room: list[list[int]] = [[] for _ in range(rank_count)]
        self._followers: list[list[int]] = [[] for _ in range(rank_count)]
        for tail, head, units in sorted(arcs):
            self._sources[head].append(tail)
            self._room[head].append(units)
            self._followers[tail].append(head)
        self._roots = [root for root in range(rank_count) if demand[root]]
        self._units = [demand[root] for root in self._roots]
        self._labels = np.array([self._distances(root) for root in self._roots], dtype=np.int64)
        self._limit = STRETCH * int(self._labels.max())
        self._parents: list[list[list[tuple[int, int]]]] = [[] for _ in range(rank_count)]

    def run(self) -> list[PackedTree] | None:
        pending = dict.fromkeys(range(self._count))
        for _ in range(ROUNDS * self._count):
            if not pending:
                return self._trees()
            rank = next(iter(pending))
            del pending[rank]
            again = self._settle(rank)
            if again is None:
                return None
            pending.update(dict.fromkeys(again))
        return None

    def _settle(self, rank: int) -> list[int] | None:
        """Solve the problem of `rank`, or raise one label; returns the ranks to solve (again), None to give up."""
        batches = [batch for batch, root in enumerate(self._roots) if root != rank]
        sources = self._sources[rank]
        allowed = self._labels[np.ix_(batches, sources)] < self._labels[batches, rank][:, None]
        supplies = [self._units[batch] for batch in batches]
        solution = solve_transport(supplies, self._room[rank], allowed)
        if solution.short == 0:
            shares: list[list[tuple[int, int]]] = [[] for _ in self._roots]
            for line, batch in enumerate(batches):
                row = solution.amounts[line]
                shares[batch] = [(sources[arc], int(row[arc])) for arc in np.flatnonzero(row)]
            self._parents[rank] = shares
            return []
        return self._raise(rank, [batches[line] for line in solution.starved], solution)

    def _raise(self, rank: int, starved: list[int], solution: Transport) -> list[int] | None:
        """Raise the label at `rank` of the starved batch that gains an arc outside the full ones most cheaply."""
        others = [source for arc, source in enumerate(self._sources[rank]) if arc not in solution.full]
        if not others:
            return None
        gains = self._labels[np.ix_(starved, others)] + 1
        batch = starved[int(gains.min(axis=1).argmin())]
        label = int(gains.min())
        if label > self._limit:
            return None
        again = [rank]
        if self._units[batch] > solution.short:
            self._divide(batch, solution.short)
            again = list(range(self._count))
        self._labels[batch, rank] = label
        again.extend(head for head in self._followers[rank] if self._labels[batch, head] <= label)
        return again

    def _divide(self, batch: int, units: int) -> None:
        """Leave `units` in the batch; the rest becomes a new batch with the same labels."""
        self._roots.append(self._roots[batch])
        self._units.append(self._units[batch] - units)
        self._units[batch] = units
        self._labels = np.vstack([self._labels, self._labels[batch]])

    def _distances(self, root: int) -> list[int]:
        """Arcs on a shortest path from `root` to each rank."""
        distance = [-1] * self._count
        distance[root] = 0
        queue = [root]
        for tail in queue:
            for head in self._followers[tail]:
                if distance[head] < 0:
                    distance[head] = distance[tail] + 1
                    queue.append(head)
        return distance

    def _trees(self) -> list[PackedTree]:
        """Each batch, divided where the parents of its units differ."""
        trees: list[PackedTree] = []
        for batch, root in enumerate(self._roots):
            shares = [self._parents[rank][batch] if rank != root else [] for rank in range(self._count)]
            ends = sorted({end for share in shares for end in _ends(share)})
            start = 0
            for end in ends:
                parents = [_at(share, start) for share in shares]
                trees.append(
                    PackedTree(root=root, multiplicity=end - start, parents=tuple(parents), depth=_depth(parents))
                )
                start = end
        return trees


def _ends(share: list[tuple[int, int]]) -> npt.NDArray[np.int64]:
    return np.cumsum([units for _, units in share], dtype=np.int64)


def _at(share: list[tuple[int, int]], unit: int) -> int:
    for source, units in share:
        if unit < units:
            return source
        unit -= units
    return -1


def _depth(parents: Sequence[int]) -> int:
    depth = [-1] * len(parents)
    for rank in range(len(parents)):
        path = []
        while depth[rank] < 0 and parents[rank] >= 0:
            path.append(rank)
            rank = parents[rank]
        base = max(depth[rank], 0)
        depth[rank] = base
        for steps, passed in enumerate(reversed(path), 1):
            depth[passed] = base + steps
    return max(depth)
