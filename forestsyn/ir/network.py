"""Flow networks: the integer view of a topology on which all exact algorithms work.

Vertices are dense ids. The ranks come first: vertex r is rank r for r < rank_count, every other vertex forwards.
Arcs are sorted by (tail, head) without parallels; `capacity × unit` is the bandwidth in GB/s, exactly.
"""

from __future__ import annotations

from fractions import Fraction

import msgspec

from forestsyn.errors import InternalError


class Cut(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A vertex set that data must leave (or, for reductions, enter).

    inside: ids of its vertices, sorted. demand: root weight inside the set. bandwidth: GB/s across, exact.
    """

    inside: tuple[int, ...]
    demand: Fraction
    bandwidth: Fraction

    @property
    def inverse_rate(self) -> Fraction:
        """demand / bandwidth: the time per unit of root weight that the cut forces, in s per GB."""
        return self.demand / self.bandwidth


class FlowNetwork(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arcs (tails[i], heads[i]) with integer capacities[i] > 0 in multiples of `unit` GB/s."""

    rank_count: int
    vertex_count: int
    tails: tuple[int, ...]
    heads: tuple[int, ...]
    capacities: tuple[int, ...]
    unit: Fraction

    def __post_init__(self) -> None:
        if not 0 < self.rank_count <= self.vertex_count:
            raise InternalError(f"{self.rank_count} ranks among {self.vertex_count} vertices")
        previous = (-1, -1)
        for tail, head, capacity in zip(self.tails, self.heads, self.capacities, strict=True):
            arc = (tail, head)
            if arc <= previous or tail == head or not (0 <= tail < self.vertex_count > head >= 0):
                raise InternalError(f"arc {arc} after {previous} is out of order, a loop or out of range")
            if capacity <= 0:
                raise InternalError(f"arc {arc} has capacity {capacity}")
            previous = arc

    @property
    def arc_count(self) -> int:
        """The number of arcs."""
        return len(self.tails)

    def reversed(self) -> FlowNetwork:
        """The network with every arc turned round; reductions run on it."""
        arcs = sorted(zip(self.heads, self.tails, self.capacities, strict=True))
        return FlowNetwork(
            rank_count=self.rank_count,
            vertex_count=self.vertex_count,
            tails=tuple(arc[0] for arc in arcs),
            heads=tuple(arc[1] for arc in arcs),
            capacities=tuple(arc[2] for arc in arcs),
            unit=self.unit,
        )
