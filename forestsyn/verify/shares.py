"""The certificate of an allreduce's shares: priced cuts, added up on the physical links.

Whatever shares the roots take, what is rooted outside a set X has to enter it in the second phase, and to leave it
in the first. With Σ price × bandwidth of each phase at most 1, the prices of the sets that miss rank v add up to the
time that a GB rooted at v costs at least; the least of these sums over all ranks bounds the time of every allreduce
that reduces and then gathers.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol

from forestsyn.ir.forest import Direction
from forestsyn.ir.topology import Topology
from forestsyn.verify.certificate import reject_if_any


class PricedCut(Protocol):
    """A set of ids, which number the ranks first, then the others in the order of the topology, and its price."""

    @property
    def direction(self) -> Direction:
        """OUT: its members are entered. IN: they are left."""

    @property
    def part(self) -> tuple[int, ...]:
        """The ids."""

    @property
    def price(self) -> Fraction:
        """At least 0, s per GB."""


class ClaimedShares(Protocol):
    """What is claimed of the shares; the trees prove the rate itself."""

    @property
    def least_inverse_rate(self) -> Fraction:
        """No shares take less, s per GB."""

    @property
    def certificate(self) -> tuple[PricedCut, ...]:
        """What proves it."""


def verify_shares(topology: Topology, shares: ClaimedShares) -> None:
    """Check that the certificate of `shares` proves its least inverse rate; raises VerificationError where not."""
    spent = dict.fromkeys(Direction, Fraction(0))
    worth = [sum((cut.price for cut in shares.certificate), Fraction(0))] * topology.rank_count
    violations = []
    borders = _Borders(topology)
    for number, cut in enumerate(shares.certificate):
        if cut.price < 0 or not set(cut.part) <= set(range(len(topology.vertices))):
            violations.append(f"cut {number} has the price {cut.price} or a vertex out of range")
            continue
        spent[cut.direction] += cut.price * borders.bandwidth(cut)
        inside = [id_ for id_ in set(cut.part) if id_ < topology.rank_count]
        if not inside:
            violations.append(f"cut {number} holds no rank, so nothing has to cross it")
        for rank in inside:
            worth[rank] -= cut.price
    violations += [
        f"the prices of direction {way} spend {sum_}, at most 1" for way, sum_ in spent.items() if sum_ > 1
    ]
    if min(worth) < shares.least_inverse_rate:
        violations.append(f"the cuts prove {min(worth)} s per GB, claimed are {shares.least_inverse_rate}")
    reject_if_any("the shares", violations)


class _Borders:
    """The links at each vertex, to add up borders by the vertices of a set alone."""

    def __init__(self, topology: Topology) -> None:
        ranks = set(topology.ranks)
        self._order = [*topology.ranks, *(v for v in range(len(topology.vertices)) if v not in ranks)]
        self._links: dict[Direction, list[list[tuple[int, Fraction]]]] = {
            direction: [[] for _ in topology.vertices] for direction in Direction
        }
        for link in topology.links:
            self._links[Direction.OUT][link.head].append((link.tail, link.bandwidth))
            self._links[Direction.IN][link.tail].append((link.head, link.bandwidth))

    def bandwidth(self, cut: PricedCut) -> Fraction:
        """GB/s that enter (OUT) or leave (IN) the set."""
        members = {self._order[id_] for id_ in cut.part}
        links = self._links[cut.direction]
        return sum(
            (speed for member in members for other, speed in links[member] if other not in members), Fraction(0)
        )
