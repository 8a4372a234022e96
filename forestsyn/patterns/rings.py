"""Ring patterns: c rings through all ranks, each with one c-th of the data.

Along a ring o₀ → o₁ → … the chunk rooted at oᵢ is gathered by the chain oᵢ → oᵢ₊₁ → … and reduced by the chain
oᵢ₊₁ → … → oᵢ that ends where the other begins. An allreduce does one after the other; broadcast and reduce use the
chain at their root alone. Every link of a ring carries N − 1 of its N chunks, so rings are good for large
messages, and bad for small ones: a chain of N − 1 transfers.
"""

from __future__ import annotations

from fractions import Fraction

from forestsyn.ir.collective import Collective
from forestsyn.patterns.network import Network
from forestsyn.patterns.pattern import Pattern
from forestsyn.patterns.ring_search import Ring, RingSet, find_rings
from forestsyn.patterns.trees import Lane, Tree, schedule_trees


def ring_patterns(network: Network, collective: Collective, root: int | None) -> list[Pattern]:
    """`ring` for one and `ring xC` for C rings: powers of two that gain bandwidth, and the best C; may be empty."""
    found = find_rings(network)
    if found is None:
        return []
    return [_pattern(network, collective, root, found.rings[:count]) for count in _counts(found)]


def _counts(found: RingSet) -> list[int]:
    counts, reached = [1], found.rates[0]
    for count in (2, 4, 8, 16):
        if count <= len(found.rates) and found.rates[count - 1] > reached:
            counts.append(count)
            reached = found.rates[count - 1]
    best = max(range(len(found.rates)), key=lambda number: (found.rates[number], -number))
    if found.rates[best] > max(reached, Fraction(0)):
        counts.append(best + 1)
    return sorted(counts)


def _pattern(network: Network, collective: Collective, root: int | None, rings: tuple[Ring, ...]) -> Pattern:
    lanes = [_lane(ring) for ring in rings]
    roots = range(network.rank_count) if root is None else (root,)
    trees = [_chain(ring, end, lane) for end in roots for lane, ring in enumerate(rings)]
    name = "ring" if len(rings) == 1 else f"ring x{len(rings)}"
    return Pattern(name=name, schedule=schedule_trees(network, collective, root, trees, lanes))


def _lane(ring: Ring) -> Lane:
    following = (*ring.order[1:], ring.order[0])
    return dict(zip(zip(ring.order, following, strict=True), ring.paths, strict=True))


def _chain(ring: Ring, root: int, lane: int) -> Tree:
    before, after = [0] * len(ring.order), [0] * len(ring.order)
    for position, rank in enumerate(ring.order):
        before[rank] = ring.order[position - 1]
        after[rank] = ring.order[(position + 1) % len(ring.order)]
    before[root] = after[root] = -1
    return Tree(root=root, outward=before, inward=after, lane=lane)
