"""Wishes: fewer transfers in a chain, or fewer peers, for a share of the throughput.

Problem. Among exact forests the core already prefers shallow ones of few peers, but a bound on depth or peers may
need more time than the optimum.

Method. Try longer and longer times: spare capacity lets more trees be shortest-path trees, and lets a port keep to
fewer partners. For each time try the usual number of partners first, then fewer. The first forest that keeps to the
wish is taken; what it gives up is counted from its real loads, like any forest's.

Guarantee. None on how little is given up: the steps of time are coarse, and no forest is proved to be the best one
that keeps to a wish. A wish that no step meets is an UnsupportedError that says what was reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import msgspec

from forestsyn.core.forest import build_forests
from forestsyn.errors import UnsupportedError
from forestsyn.ir.forest import Direction, Forest
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


def build_wished(
    topology: Topology, demand: Sequence[int], times: Sequence[tuple[Direction, Fraction]], wish: Wish
) -> tuple[Forest, ...]:
    """Forests of all phases that keep to `wish`, in the first time tried that allows it.

    times: the least time of each phase. Raises UnsupportedError when no time tried does.
    """
    closest: tuple[int, int] | None = None
    for stretch in STRETCHES:
        stretched = [(direction, time * stretch) for direction, time in times]
        for partners in _partner_limits(wish):
            forests = build_forests(topology, demand, stretched, partners)
            if wish.is_met(forests):
                return forests
            found = _figures(forests)
            closest = found if closest is None else min(closest, found, key=wish.order)
    assert closest is not None, "there is at least one stretch"
    raise UnsupportedError(
        f"no trees were found with {_words(wish)}; the nearest have depth {closest[0]} and {closest[1]} peers",
        limit="max_depth" if wish.max_depth is not None else "max_peers",
        value=closest[0] if wish.max_depth is not None else closest[1],
        where=topology.name,
        hint="allow more depth or more peers",
    )


def _figures(forests: Sequence[Forest]) -> tuple[int, int]:
    return sum(forest.depth for forest in forests), int(peers_per_rank(forests).max())


def _partner_limits(wish: Wish) -> list[int | None]:
    """None for the usual, then fewer and fewer partners per port where few peers are wished."""
    if wish.max_peers is None:
        return [None]
    limits = [wish.max_peers >> shift for shift in range(wish.max_peers.bit_length())]
    return [None, *limits]


def _words(wish: Wish) -> str:
    parts = [
        f"at most {value} {noun}"
        for value, noun in ((wish.max_depth, "transfers in a chain"), (wish.max_peers, "peers per rank"))
        if value is not None
    ]
    return " and ".join(parts)
