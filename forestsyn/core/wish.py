"""Wishes: fewer transfers in a chain, or fewer peers, for a share of the throughput.

Problem. Among exact forests the core already prefers shallow ones of few peers, but a bound on depth or peers may
need more time than the optimum.

Method. Try longer and longer times: spare capacity lets more trees be shortest-path trees, and lets a port keep to
fewer partners. For each time try the usual number of partners first, then fewer. The first forest that keeps to the
wish is taken; what it gives up is counted from its real loads, like any forest's. Where the roots of an allreduce are
unequal, equal ones are tried as well, for they need more time but less depth, and the faster of both is taken. Last,
for a wish for few peers, comes a ring.

Guarantee. None on how little is given up: the steps of time are coarse, and no forest is proved to be the best one
that keeps to a wish. A wish that no step meets is an UnsupportedError that says what was reached; it is no proof that
no trees keep to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import msgspec

from forestsyn.core.choice import Choice
from forestsyn.core.forest import build_forests
from forestsyn.core.ring import busiest_time, ring_forest
from forestsyn.errors import UnsupportedError
from forestsyn.ir.forest import Forest
from forestsyn.ir.topology import Topology
from forestsyn.ir.turns import peers_per_rank

#: Multiples of the least time that are tried, in order.
STRETCHES = tuple(
    Fraction(*pair)
    for pair in ((1, 1), (41, 40), (21, 20), (11, 10), (6, 5), (4, 3), (3, 2), (2, 1), (3, 1), (4, 1), (8, 1))
)


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """max_depth: transfers in a chain, over all phases. max_peers: distinct peers of a rank, over all phases."""

    max_depth: int | None = None
    max_peers: int | None = None

    def order(self, figures: tuple[int, int]) -> tuple[int, ...]:
        """(depth, peers) with what is wished for first."""
        return figures if self.max_depth is not None else figures[::-1]

    def is_met(self, forests: Sequence[Forest]) -> bool:
        """True when the forests of all phases together keep to it."""
        depth, peers = _figures(forests)
        return (self.max_depth is None or depth <= self.max_depth) and (
            self.max_peers is None or peers <= self.max_peers
        )

    def words(self) -> str:
        """The wish, for people."""
        parts = [
            f"at most {value} {noun if value == 1 else noun + 's'} {place}"
            for value, noun, place in (
                (self.max_depth, "transfer", "in a chain"),
                (self.max_peers, "peer", "per rank"),
            )
            if value is not None
        ]
        return " and ".join(parts)


def build_wished(topology: Topology, choices: Sequence[Choice], wish: Wish) -> tuple[Choice, tuple[Forest, ...]]:
    """Forests of all phases that keep to `wish`, the fastest that the `choices` led to, and what their choice costs.

    choices: numbers of trees with the least time of each phase; the first one counts as the optimum of all. Raises
    UnsupportedError when no time tried allows the wish with any of them.
    """
    found: list[tuple[Choice, tuple[Forest, ...]]] = []
    closest: list[tuple[int, int]] = []
    for choice in choices:
        forests = _within(topology, choice, wish, closest)
        if forests is not None:
            time = sum((busiest_time(topology, forest) for forest in forests), Fraction(0))
            found.append((choice.paying(time, choices[0].optima, wish.words()), forests))
    if found:
        return min(found, key=lambda one: one[0].loss)
    depth, peers = min(closest, key=wish.order)
    raise UnsupportedError(
        f"the search, which is no proof, found no trees with {wish.words()}; the nearest have depth {depth} and"
        f" {peers} peers",
        limit="max_depth" if wish.max_depth is not None else "max_peers",
        value=depth if wish.max_depth is not None else peers,
        where=topology.name,
        hint="allow more depth or more peers",
    )


def _within(
    topology: Topology, choice: Choice, wish: Wish, closest: list[tuple[int, int]]
) -> tuple[Forest, ...] | None:
    """The first forests that keep to the wish; the figures of those that do not go to `closest`."""
    for forests in _candidates(topology, choice, wish):
        if wish.is_met(forests):
            return forests
        closest.append(_figures(forests))
    return None


def _candidates(topology: Topology, choice: Choice, wish: Wish) -> Iterator[tuple[Forest, ...]]:
    """In more and more time, then a ring."""
    times = [(optimum.direction, time) for optimum, time in zip(choice.optima, choice.time_units, strict=True)]
    for stretch in STRETCHES:
        for partners in _partner_limits(wish):
            stretched = [(direction, time * stretch) for direction, time in times]
            yield build_forests(topology, choice.demand, stretched, partners)
    if wish.max_peers is not None:
        rings = [ring_forest(topology, choice.demand, direction) for direction, _ in times]
        whole = tuple(ring for ring in rings if ring is not None)
        if len(whole) == len(rings):
            yield whole


def _figures(forests: Sequence[Forest]) -> tuple[int, int]:
    return sum(forest.depth for forest in forests), int(peers_per_rank(forests).max())


def _partner_limits(wish: Wish) -> list[int | None]:
    """None for the usual, then fewer and fewer partners per port where few peers are wished."""
    if wish.max_peers is None:
        return [None]
    limits = [wish.max_peers >> shift for shift in range(wish.max_peers.bit_length())]
    return [None, *limits]
