"""Brute force: slow, obvious and exact. Every oracle enumerates all vertex sets; use it below about 12 vertices.

Vertices are those of the topology. A *cut* here is the set S with its links counted in the direction of the data:
those that leave S for OUT, those that enter it for IN.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from heapq import merge
from itertools import count, islice
from math import floor

from forestsyn.ir.forest import Direction
from forestsyn.ir.topology import Topology


def cuts(topology: Topology, direction: Direction) -> Iterator[tuple[list[int], list[Fraction]]]:
    """All sets that hold a rank and miss one: the ranks inside and the bandwidths across."""
    for members in range(1, 2 ** len(topology.vertices)):
        inside = [rank for rank, vertex in enumerate(topology.ranks) if members >> vertex & 1]
        if inside and len(inside) < topology.rank_count:
            yield inside, _across(topology, members, direction)


def optimum(topology: Topology, weights: Sequence[int], direction: Direction) -> Fraction | None:
    """The largest weight inside / bandwidth across of all cuts; None when some weight cannot get out."""
    worst = Fraction(0)
    for inside, across in cuts(topology, direction):
        weight, bandwidth = sum(weights[rank] for rank in inside), sum(across)
        if weight and not bandwidth:
            return None
        if weight > worst * bandwidth:
            worst = weight / bandwidth
    return worst


def time_units(topology: Topology, demand: Sequence[int], direction: Direction) -> Fraction:
    """The least U at which Σ ⌊b·U⌋ across every cut is at least the demand inside it.

    For one cut it is the demand-th smallest of all j / b, j = 1, 2, …, over the bandwidths b across. Without
    switches it is the least U of a forest (Edmonds); with switches a lower bound of it.
    """
    least = Fraction(0)
    for inside, across in cuts(topology, direction):
        wanted = sum(demand[rank] for rank in inside)
        if sum(floor(bandwidth * least) for bandwidth in across) < wanted:
            breakpoints = merge(*(_multiples(1 / bandwidth) for bandwidth in across))
            least = next(islice(breakpoints, wanted - 1, None))
    return least


def rank_cut(topology: Topology, direction: Direction = Direction.OUT) -> Fraction:
    """The least bandwidth that separates any two ranks."""
    return min(Fraction(sum(across)) for _, across in cuts(topology, direction))


def trees_per_root(topology: Topology, weights: Sequence[int], direction: Direction, maximum: int) -> int | None:
    """The smallest k ≤ `maximum` whose k trees per unit of weight reach the optimum, by cuts alone; else None."""
    inverse_rate = optimum(topology, weights, direction)
    assert inverse_rate is not None
    for k in range(1, maximum + 1):
        if time_units(topology, [k * weight for weight in weights], direction) == k * inverse_rate:
            return k
    return None


def _across(topology: Topology, members: int, direction: Direction) -> list[Fraction]:
    across = []
    for link in topology.links:
        ends = (link.tail, link.head) if direction is Direction.OUT else (link.head, link.tail)
        if members >> ends[0] & 1 and not members >> ends[1] & 1:
            across.append(link.bandwidth)
    return across


def _multiples(step: Fraction) -> Iterator[Fraction]:
    return (number * step for number in count(1))
