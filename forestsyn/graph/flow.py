"""Maximum flows behind one small interface.

Problem: many s–t flows on one arc structure whose capacities change little between calls.
Guarantee: exact integers. OR-Tools' push-relabel (Goldberg & Tarjan 1988, `SimpleMaxFlow`) works in int64 and is
used while no sum of capacities at a vertex can leave that range; beyond it networkx computes with Python's
unbounded integers, slower but equally exact. Nothing wraps round silently: the range is checked before each solve
and OR-Tools' own overflow status is an InternalError.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from ortools.graph.python.max_flow import SimpleMaxFlow

from forestsyn.errors import InternalError

#: Sums of capacities at or above this are left to the unbounded solver.
INT64_SAFE = 1 << 62


class FlowSolver:
    """Max flows on arcs (tails[i], heads[i]); `capacities` may be changed between calls.

    Vertices are 0..vertex_count−1. Capacities are non-negative integers of any size.
    """

    def __init__(
        self, vertex_count: int, tails: Sequence[int], heads: Sequence[int], capacities: Sequence[int]
    ) -> None:
        self._vertex_count = vertex_count
        self._tails = list(tails)
        self._heads = list(heads)
        self._capacities = [int(capacity) for capacity in capacities]
        self._total = sum(self._capacities)
        self._fast: SimpleMaxFlow | None = None
        self._source_side: list[int] = []

    def set_capacity(self, arc: int, capacity: int) -> None:
        """Give one arc another capacity."""
        self._total += capacity - self._capacities[arc]
        self._capacities[arc] = capacity
        if self._fast is not None and self._total < INT64_SAFE:
            self._fast.set_arc_capacity(arc, capacity)
        else:
            self._fast = None

    def capacity(self, arc: int) -> int:
        """The present capacity of an arc."""
        return self._capacities[arc]

    def set_capacities(self, capacities: Sequence[int]) -> None:
        """Give every arc another capacity, in arc order."""
        self._capacities = [int(capacity) for capacity in capacities]
        self._total = sum(self._capacities)
        if self._fast is not None and self._total < INT64_SAFE:
            arcs = np.arange(len(self._capacities), dtype=np.int32)
            self._fast.set_arcs_capacity(arcs, self._array())
        else:
            self._fast = None

    def max_flow(self, source: int, sink: int) -> int:
        """The value of a maximum flow."""
        if self._total >= INT64_SAFE:
            return self._solve_unbounded(source, sink)
        if self._fast is None:
            self._fast = self._build()
        status = self._fast.solve(source, sink)
        if status != SimpleMaxFlow.OPTIMAL:
            raise InternalError(f"max flow {source} -> {sink} ended with {status}")
        self._source_side = []
        return int(self._fast.optimal_flow())

    def source_side(self) -> list[int]:
        """The vertices on the source's side of a minimum cut of the last flow: the smallest such set, sorted."""
        if self._source_side:
            return self._source_side
        if self._fast is None:
            raise InternalError("a minimum cut was asked for before any flow")
        return sorted(self._fast.get_source_side_min_cut())

    def _array(self) -> npt.NDArray[np.int64]:
        # The dummy arc of `_build` is the last one and keeps capacity 0.
        return np.array(self._capacities, dtype=np.int64)

    def _build(self) -> SimpleMaxFlow:
        solver = SimpleMaxFlow()
        solver.add_arcs_with_capacity(
            np.array(self._tails, dtype=np.int32), np.array(self._heads, dtype=np.int32), self._array()
        )
        # OR-Tools knows only the vertices that arcs name; this one makes it know all of them.
        solver.add_arc_with_capacity(self._vertex_count - 1, 0, 0)
        return solver

    def _solve_unbounded(self, source: int, sink: int) -> int:
        import networkx

        graph: networkx.DiGraph[int] = networkx.DiGraph()
        graph.add_nodes_from(range(self._vertex_count))
        for tail, head, capacity in zip(self._tails, self._heads, self._capacities, strict=True):
            present = graph.get_edge_data(tail, head, {"capacity": 0})["capacity"]
            graph.add_edge(tail, head, capacity=present + capacity)
        value, (inside, _) = networkx.minimum_cut(graph, source, sink)
        self._source_side = sorted(inside)
        return int(value)
