"""Rooted connectivity: can every rank be reached by all root demand at once?

Problem. Ranks v hold demand d_v ≥ 0, D = Σ d_v. Out-trees with d_v roots at every v exist in a network without
switches exactly when, for every vertex set S that misses a rank,

    Σ_{v ∈ S} d_v ≤ capacity of the arcs that leave S                                  (Edmonds 1973)

With Eulerian switches the same condition is enough (Bang-Jensen, Frank & Jackson 1995).

Method. Add a source s with an arc of capacity d_v to every rank; the condition is maxflow(s → r) ≥ D for every
rank r. A violated condition hands back its set S, the source's side of a minimum cut.
"""

from __future__ import annotations

from collections.abc import Sequence

from forestsyn.graph.flow import FlowSolver
from forestsyn.ir.network import FlowNetwork


class RootedFlows:
    """The flows s → r on a network whose capacities and demand may be changed."""

    def __init__(self, network: FlowNetwork, capacities: Sequence[int], demand: Sequence[int]) -> None:
        self.network = network
        self.source = network.vertex_count
        self.demand = tuple(demand)
        self.total = sum(demand)
        self._solver = FlowSolver(
            network.vertex_count + 1,
            [*network.tails, *([self.source] * network.rank_count)],
            [*network.heads, *range(network.rank_count)],
            [*capacities, *demand],
        )

    def update(self, capacities: Sequence[int], demand: Sequence[int]) -> None:
        """Replace all capacities and the demand."""
        self.demand = tuple(demand)
        self.total = sum(demand)
        self._solver.set_capacities([*capacities, *demand])

    def violated_set(self, rank: int) -> list[int] | None:
        """None when all demand reaches `rank`, else the vertices of a set that cannot send enough."""
        if self._solver.max_flow(self.source, rank) >= self.total:
            return None
        return [vertex for vertex in self._solver.source_side() if vertex != self.source]

    def first_violation(self, first: int = 0) -> tuple[int, list[int]] | None:
        """The first rank, counting cyclically from `first`, that is not reached by all demand, and its set."""
        count = self.network.rank_count
        for offset in range(count):
            rank = (first + offset) % count
            violated = self.violated_set(rank)
            if violated is not None:
                return rank, violated
        return None


def leaving_arcs(network: FlowNetwork, inside: Sequence[int]) -> list[int]:
    """The arcs from `inside` to the rest."""
    member = bytearray(network.vertex_count)
    for vertex in inside:
        member[vertex] = 1
    return [
        arc
        for arc, (tail, head) in enumerate(zip(network.tails, network.heads, strict=True))
        if member[tail] and not member[head]
    ]
