"""Free roots in one direction: the largest total of the roots' shares, and the most even shares that reach it.

Problem. Root v gets a share x_v ≥ 0 of the rate k = Σ x. Trees of rate x_v from every root v fit exactly when for
every vertex set X that holds a rank

    x(X) ≥ k − ρ(X),        ρ(X) = the bandwidth that enters X,

because the roots outside X must get in. Find the largest k that some x reaches.

Theory (Frank 1978, free roots; Edmonds 1973). k is the least Σ ρ(X_i) / (t − 1) over all families of t ≥ 2 sets of
which no two hold a common rank: add up the conditions of such a family, k ≥ Σ x(X_i) ≥ t·k − Σ ρ(X_i).

Method. For a fixed k the sets with the condition form a contra-polymatroid, so every x that cannot be lowered
anywhere has the same, least sum. The most even one comes from filling: find the lowest level that all free ranks can
share (Newton on the sets that maximum flows find violated), fix the ranks that then lie in a tight set, and go on
with the others, whose level is lower. Tight sets that meet in a rank have a tight union; the unions share no rank,
and their conditions add up to the sum of x. If that is more than k, they are a family that proves a smaller k: Newton
again, from above. If it is k, the family that gave k proves that no x does better.

Symmetry. Sets and levels are those of all images under a symmetry of the network too, so one rank of each orbit is
asked, and its tight set moved to the others.

Guarantee. Exact; equal shares come out wherever they are optimal. Complexity: two flows per orbit of ranks for each
level and Newton step; levels are as many as there are different shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import lcm

import msgspec

from forestsyn.core.symmetry import Orbits
from forestsyn.graph.flow import FlowSolver
from forestsyn.ir.network import FlowNetwork

Family = tuple[tuple[int, ...], ...]


class Filling(msgspec.Struct, frozen=True, kw_only=True):
    """total: k in units of the network. shares: x, of sum k. family: the sets that prove that k is largest."""

    total: Fraction
    shares: tuple[Fraction, ...]
    family: Family


def fill_shares(network: FlowNetwork, family: Family, orbits: Orbits | None = None) -> Filling:
    """The largest k. family: any sets of which no two hold a common rank, at least two; good ones save time.

    orbits: of a symmetry of the network; the shares are equal within an orbit in any case, being the most even ones.
    Every rank must be within reach of every other.
    """
    while True:
        total = family_bound(network, family)
        flows = _ShareFlows(network, total, orbits or Orbits(network.rank_count, None))
        shares = _least_shares(flows)
        if sum(shares) == total:
            return Filling(total=total, shares=tuple(shares), family=family)
        family = _tight_family(flows, shares)


def family_bound(network: FlowNetwork, family: Family) -> Fraction:
    """Σ ρ(X_i) / (t − 1), which no k exceeds, in units of the network."""
    entrances = Entrances(network)
    return Fraction(sum(entrances.capacity(part) for part in family), len(family) - 1)


class Entrances:
    """Σ capacity of the arcs that enter a set, by its own vertices only."""

    def __init__(self, network: FlowNetwork) -> None:
        self._incoming: list[list[tuple[int, int]]] = [[] for _ in range(network.vertex_count)]
        for tail, head, capacity in zip(network.tails, network.heads, network.capacities, strict=True):
            self._incoming[head].append((tail, capacity))

    def capacity(self, part: Sequence[int]) -> int:
        """ρ(part), in units of the network."""
        inside = set(part)
        return sum(capacity for head in part for tail, capacity in self._incoming[head] if tail not in inside)


def _least_shares(flows: _ShareFlows) -> list[Fraction]:
    """Shares of the least sum for k = `flows.total`, as even as they can be."""
    shares = [Fraction(0)] * flows.network.rank_count
    free = list(range(flows.network.rank_count))
    while free:
        _raise_to_level(flows, shares, free)
        if shares[free[0]] == 0:
            break
        fixed: set[int] = set()
        for rank in flows.asked(free):
            if rank not in fixed and flows.is_tight(rank):
                fixed |= flows.orbits.images(flows.set_around())
        free = [rank for rank in free if rank not in fixed]
    return shares


def _tight_family(flows: _ShareFlows, shares: list[Fraction]) -> Family:
    """Tight sets that hold all ranks with a share, and no rank twice: the union of two that meet in one is tight."""
    family: dict[int, set[int]] = {}
    number: dict[int, int] = {}
    around: dict[int, tuple[int, ...]] = {}
    for rank in range(flows.network.rank_count):
        if shares[rank] == 0 or rank in number:
            continue
        first = flows.orbits.of[rank]
        if first not in around:
            assert flows.is_tight(first), "a rank is fixed only inside a tight set"
            around[first] = flows.set_around()
        union = set(flows.orbits.moved(around[first], rank))
        for met in sorted({number[vertex] for vertex in union if vertex in number}):
            union |= family.pop(met)
        family[rank] = union
        number.update(dict.fromkeys((vertex for vertex in union if vertex < flows.network.rank_count), rank))
    return tuple(tuple(sorted(part)) for part in family.values())


def _raise_to_level(flows: _ShareFlows, shares: list[Fraction], free: list[int]) -> None:
    """Give all free ranks the lowest common share with which no set is violated."""
    # A set that the higher level before did not violate can only be violated now if it holds a free rank.
    open_ranks, ranks = set(free), range(flows.network.rank_count)

    def set_level(level: Fraction) -> None:
        for rank in free:
            shares[rank] = level
        flows.update(shares)

    set_level(Fraction(0))
    for rank in flows.asked(free):
        while flows.is_short(rank):
            part = flows.set_around()
            fixed = sum((shares[v] for v in part if v in ranks and v not in open_ranks), Fraction(0))
            missing = flows.total - fixed - flows.entrances.capacity(part)
            set_level(missing / sum(vertex in open_ranks for vertex in part))


class _ShareFlows:
    """Maximum flows from a source that feeds every rank its share."""

    def __init__(self, network: FlowNetwork, total: Fraction, orbits: Orbits) -> None:
        self.network = network
        self.orbits = orbits
        self.total = total
        self.entrances = Entrances(network)
        self._source = network.vertex_count
        self._scale = 1
        self._solver = FlowSolver(
            network.vertex_count + 1,
            [*network.tails, *([self._source] * network.rank_count)],
            [*network.heads, *range(network.rank_count)],
            [*network.capacities, *([0] * network.rank_count)],
        )

    def update(self, shares: Sequence[Fraction]) -> None:
        self._scale = lcm(self.total.denominator, *(share.denominator for share in set(shares)))
        scaled = [capacity * self._scale for capacity in self.network.capacities]
        self._solver.set_capacities([*scaled, *(int(share * self._scale) for share in shares)])

    def asked(self, free: Sequence[int]) -> list[int]:
        """Of ranks that are whole orbits those that stand for the others, as long as shares are alike in an orbit."""
        return [rank for rank in free if self.orbits.of[rank] == rank]

    def is_short(self, rank: int) -> bool:
        return self._solver.max_flow(self._source, rank) < self.total * self._scale

    def is_tight(self, rank: int) -> bool:
        return self._solver.max_flow(self._source, rank) == self.total * self._scale

    def set_around(self) -> tuple[int, ...]:
        """A set round the last rank whose condition is met worst."""
        outside = set(self._solver.source_side())
        return tuple(vertex for vertex in range(self.network.vertex_count) if vertex not in outside)
