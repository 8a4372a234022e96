"""Tree packing: from a rank-only network to the trees.

Problem. Root v needs d_v out-trees that span all N ranks; arc (x, y) may be used by c(x, y) of them.

Guarantee. If Σ_{v∈S} d_v ≤ c⁺(S) for every S that misses a rank, the packing exists (Edmonds 1973) and this
finds it. Trees come in batches: m identical unit trees are one batch with vertex set V while it grows.

Method (Bérczi & Frank 2010; ForestColl §5.4). For X ⊂ ranks let p(X) = Σ m over the batches with V ∩ X = ∅.
The rest can be packed iff c⁻(X) ≥ p(X) for all X. Growing a batch by the arc (x, y), x ∈ V, y ∉ V, for µ of its
units keeps this iff µ ≤ m, µ ≤ c(x, y), and

    µ ≤ min over X ∋ y, X ∌ x of  c⁻(X) − p'(X)  =  maxflow(x → y) − Σ' m

where ' leaves the grown batch out, and the flow may also leave x towards the root of every batch that has not
started, m units each. One batch is grown to the end before the next. If µ < m, the other m − µ units go back to the
root and give back what they used: undoing growth cannot make the rest unpackable, so every batch but the grown
one is always just its root, and the flow network never needs a vertex per batch.

A set X with c⁻(X) = p(X) is *tight*: batches outside enter it exactly once, and one that has entered may not enter
again. Growth keeps tight sets tight, so those that flows find are remembered and spare later flows. (Units that go
back to the root can loosen a set; those are forgotten.)

Order. Depth is latency: a batch grows breadth first, and gives units back rather than go one level deeper.

Complexity: at most one flow per arc and batch. Exactness: integers.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from forestsyn.errors import InternalError
from forestsyn.graph.flow import FlowSolver


class PackedTree(msgspec.Struct, frozen=True, kw_only=True):
    """`multiplicity` identical out-trees: parents[v] is the rank before v, −1 at the root."""

    root: int
    multiplicity: int
    parents: tuple[int, ...]
    depth: int


Arc = tuple[int, int, int]


def pack_trees(
    rank_count: int, arcs: Sequence[Arc], demand: Sequence[int], root_order: Sequence[int]
) -> list[PackedTree]:
    """demand[v] out-trees rooted at every rank v within the capacities of `arcs` (tail, head, units).

    root_order: the roots in the order in which they are served, over and over until all demand is met.
    Raises InternalError when the arcs cannot carry the demand; the caller proves that they can.
    """
    packing = _Packing(rank_count, arcs, demand)
    trees: list[PackedTree] = []
    while packing.waiting:
        trees.extend(packing.grow(root) for root in root_order if packing.demand[root])
    return trees


class _Packing:
    """What is left to pack: capacities, the demand that has not started, and the tight sets found so far."""

    def __init__(self, rank_count: int, arcs: Sequence[Arc], demand: Sequence[int]) -> None:
        self.count = rank_count
        self.demand = list(demand)
        self.waiting = sum(demand)
        self.capacity: list[dict[int, int]] = [{} for _ in range(rank_count)]
        for tail, head, units in arcs:
            self.capacity[tail][head] = units
        self._unlimited = sum(arc[2] for arc in arcs) + self.waiting
        self._tight: list[int] = []
        pairs = [(tail, head) for tail, head, _ in arcs] + [(rank_count, rank) for rank in range(rank_count)]
        self._index = {pair: position for position, pair in enumerate(pairs)}
        self._solver = FlowSolver(
            rank_count + 1,
            [pair[0] for pair in pairs],
            [pair[1] for pair in pairs],
            [arc[2] for arc in arcs] + list(demand),
        )

    def grow(self, root: int) -> PackedTree:
        """Take a batch from `root`'s demand and grow it to a spanning tree; what does not fit goes back."""
        batch = _Batch(root, self.demand[root], self.count)
        self._set_demand(root, 0)
        level = 0
        while len(batch.order) < self.count:
            choice = self._best_arc(batch, level)
            if choice is None:
                level += 1
                if level >= self.count:
                    raise InternalError(f"no arc can grow the tree of rank {root}; the demand was not proved")
                continue
            units, tail, head = choice
            if units < batch.units:
                self._give_back(batch, batch.units - units)
                level = 0
            batch.add(tail, head)
            self._set_capacity(tail, head, self.capacity[tail][head] - batch.units)
        return PackedTree(root=root, multiplicity=batch.units, parents=tuple(batch.parents), depth=max(batch.level))

    def _best_arc(self, batch: _Batch, level: int) -> tuple[int, int, int] | None:
        """The arc from depth `level` that takes the most units of the batch: (units, tail, head)."""
        best: tuple[int, int, int] | None = None
        for tail, head in self._candidates(batch, level):
            limit = min(batch.units, self.capacity[tail][head])
            if best is not None and limit <= best[0]:
                continue
            units = 0 if self._is_blocked(batch, tail, head) else self._margin(tail, head, limit)
            if units == 0:
                batch.refused.add((tail, head))
            elif best is None or units > best[0]:
                best = (units, tail, head)
                if units == batch.units:
                    break
        return best

    def _candidates(self, batch: _Batch, level: int) -> list[tuple[int, int]]:
        """Usable arcs from depth `level`, those with most capacity left first, then in rotation."""
        found = [
            (-units, (head - tail) % self.count, tail, head)
            for tail in batch.order
            if batch.level[tail] == level
            for head, units in self.capacity[tail].items()
            if units and not batch.covered >> head & 1 and (tail, head) not in batch.refused
        ]
        return [(tail, head) for _, _, tail, head in sorted(found)]

    def _is_blocked(self, batch: _Batch, tail: int, head: int) -> bool:
        return any(tight >> head & 1 and not tight >> tail & 1 and tight & batch.covered for tight in self._tight)

    def _margin(self, tail: int, head: int, limit: int) -> int:
        """How many units, up to `limit`, may use the arc."""
        feed = self._index[self.count, tail]
        self._solver.set_capacity(feed, self._unlimited)
        margin = self._solver.max_flow(self.count, head) - self.waiting
        if margin <= 0:
            inside = sum(1 << vertex for vertex in self._solver.source_side() if vertex < self.count)
            self._tight.append((1 << self.count) - 1 - inside)
        self._solver.set_capacity(feed, self.demand[tail])
        return max(0, min(limit, margin))

    def _give_back(self, batch: _Batch, units: int) -> None:
        """Return `units` of the batch to its root, and their capacity to the arcs."""
        self._set_demand(batch.root, self.demand[batch.root] + units)
        for tail, head in batch.arcs():
            self._set_capacity(tail, head, self.capacity[tail][head] + units)
        batch.units -= units
        batch.refused.clear()
        self._tight = [tight for tight in self._tight if batch.keeps_tight(tight)]

    def _set_demand(self, root: int, units: int) -> None:
        self.waiting += units - self.demand[root]
        self.demand[root] = units
        self._solver.set_capacity(self._index[self.count, root], units)

    def _set_capacity(self, tail: int, head: int, units: int) -> None:
        self.capacity[tail][head] = units
        self._solver.set_capacity(self._index[tail, head], units)


class _Batch:
    """A partly grown tree of `units` identical unit trees."""

    def __init__(self, root: int, units: int, count: int) -> None:
        self.root = root
        self.units = units
        self.parents = [-1] * count
        self.level = [0] * count
        self.order = [root]
        self.covered = 1 << root
        self.refused: set[tuple[int, int]] = set()

    def add(self, tail: int, head: int) -> None:
        """Hang `head` below `tail`."""
        self.parents[head] = tail
        self.level[head] = self.level[tail] + 1
        self.order.append(head)
        self.covered |= 1 << head

    def arcs(self) -> list[tuple[int, int]]:
        """The arcs grown so far."""
        return [(self.parents[head], head) for head in self.order[1:]]

    def keeps_tight(self, tight: int) -> bool:
        """True when units that go back to the root leave the set tight: they had entered it as often as they must."""
        entered = sum(tight >> head & 1 and not tight >> tail & 1 for tail, head in self.arcs())
        must = bool(tight & self.covered) and not tight >> self.root & 1
        return entered == must
