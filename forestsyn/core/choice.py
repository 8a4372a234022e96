"""How many trees: chunks per root, for people and for runtimes.

Problem. The optimum needs k trees per root, and k can be large (83 for two MI250 hosts, thousands where a rate is
23.7). People want few trees; runtimes silently ignore a program whose chunk count does not divide the element
count, and people send powers of two. So `auto` gives up at most a tolerance of the optimum:

- for a forest: the smallest k within the tolerance. The rate is not monotone in k, so every k is tried in turn.
- for a program: the smallest power of two within the tolerance (k for allgather, reduce-scatter, broadcast and
  reduce; the total for allreduce, whose chunks can be handed out to the roots unevenly), else the smallest k as
  above.

Where unequal roots make an allreduce faster (see `shares`), the optimum is theirs, and trees are counted in all and
handed out in proportion to the weights. Beyond `UNEQUAL_RANKS` ranks roots are equal, and the loss tells what that
costs.

Guarantee. The times are those of `timing`: exact, and shown against the optimum in `loss`. `exact` loses nothing
where every switch is balanced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from math import lcm
from typing import TypeVar

import msgspec

from forestsyn.core.optimum import directed_network, solve_optimum
from forestsyn.core.shares import solve_shares
from forestsyn.core.timing import solve_time_units
from forestsyn.errors import InputError
from forestsyn.ir.collective import Collective
from forestsyn.ir.forest import Direction, Optimum
from forestsyn.ir.topology import Topology
from forestsyn.units import format_count

_Solved = TypeVar("_Solved")

#: The largest number of trees per root that `auto` tries.
SCAN_LIMIT = 64
#: The largest number of chunks that `auto` tries for an allreduce, unless there are more ranks.
CHUNK_LIMIT = 1024
#: An uneven power-of-two allreduce may lose this much before `auto` prefers equal roots.
UNEVEN_LIMIT = Fraction(1, 20)
#: Beyond this many ranks roots are equal: trees of unequal ones have no turn and would take memory with N².
UNEQUAL_RANKS = 8192
#: `--trees K` beyond this is a slip.
TREES_LIMIT = 1 << 31


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """demand: unit trees per root. time_units: U of each phase, in the order of `phases`, s per GB of chunk.

    optima: the optimum of each phase, for unequal weights where they make an allreduce faster. loss: achieved time /
    optimal time − 1, exact. why: this number of trees, in words. wish: what some of the loss was given up for, in
    words, or nothing.
    """

    demand: tuple[int, ...]
    time_units: tuple[Fraction, ...]
    optima: tuple[Optimum, ...]
    loss: Fraction
    why: str
    wish: str = ""

    @property
    def reason(self) -> str:
        """Why this number of trees, and what it costs, for people."""
        cost = _lost(self.loss)
        return f"{self.why}, {cost} with {self.wish}" if self.wish else f"{self.why}, {cost}"

    def paying(self, time: Fraction, optima: tuple[Optimum, ...], wish: str = "") -> Choice:
        """The same trees, taking `time` in all phases, s per GB of chunk, against `optima`, because of `wish`."""
        choice = msgspec.structs.replace(self, optima=optima, wish=wish)
        return msgspec.structs.replace(choice, loss=time / (sum(self.demand) * choice.optimal_time) - 1)

    @property
    def optimal_time(self) -> Fraction:
        """Of all phases, s per GB of the data."""
        return sum((optimum.inverse_rate / sum(optimum.weights) for optimum in self.optima), Fraction(0))


def phases(collective: Collective) -> tuple[Direction, ...]:
    """The directions of the phases of a collective, in the order in which they run."""
    reduce = (Direction.IN,) if collective.reduces else ()
    return (*reduce, Direction.OUT) if collective.broadcasts else reduce


def root_weights(collective: Collective, ranks: int, root: int | None) -> tuple[int, ...]:
    """1 at every rank, or 1 at the root only for broadcast and reduce."""
    if not collective.rooted:
        return (1,) * ranks
    return tuple(int(rank == root) for rank in range(ranks))


def best_weights(topology: Topology, collective: Collective, root: int | None) -> tuple[int, ...]:
    """The root weights of the best optimum: unequal ones where they make an allreduce faster."""
    if collective is Collective.ALLREDUCE:
        return solve_shares(topology).weights
    return root_weights(collective, topology.rank_count, root)


def choose_demand(
    topology: Topology,
    collective: Collective,
    root: int | None,
    trees: str | int,
    tolerance: Fraction,
    chunked: bool,
    optima: tuple[Optimum, ...] | None = None,
) -> Choice:
    """The number of unit trees per root.

    trees: "auto", "exact" or k. tolerance: what `auto` may give up of the optimal time. chunked: the trees become a
    program, so counts that divide powers of two are preferred. optima: of each phase for `best_weights`, if known.
    Raises InputError for a k out of range and what `timing` raises.
    """
    chooser = _Chooser(topology, collective, root, optima)
    if chooser.unequal and topology.rank_count > UNEQUAL_RANKS:
        equal = choose_equal(topology, trees, tolerance, chunked, chooser.optima)
        why = f"equal roots, as always beyond {UNEQUAL_RANKS:,} ranks; {equal.why} of their optimum"
        return msgspec.structs.replace(equal, why=why)
    if trees == "exact":
        return chooser.exact()
    if trees == "auto":
        return chooser.chunked(tolerance) if chunked else chooser.smallest(tolerance)
    if not isinstance(trees, int) or not 1 <= trees <= TREES_LIMIT:
        raise InputError(
            f"found {trees!r}, expected auto, exact or a number from 1 to {TREES_LIMIT}", where="--trees"
        )
    return chooser.asked(trees)


def choose_equal(
    topology: Topology, trees: str | int, tolerance: Fraction, chunked: bool, optima: tuple[Optimum, ...]
) -> Choice:
    """The number of unit trees of an allreduce whose roots are equal, where those of `optima` are not; the loss is
    against `optima`. Arguments as for `choose_demand`."""
    weights = (1,) * topology.rank_count
    own = tuple(solve_optimum(topology, weights, optimum.direction) for optimum in optima)
    equal = choose_demand(topology, Collective.ALLREDUCE, None, trees, tolerance, chunked, own)
    return equal.paying(sum(equal.time_units, Fraction(0)), optima)


class _Chooser:
    def __init__(
        self, topology: Topology, collective: Collective, root: int | None, optima: tuple[Optimum, ...] | None
    ) -> None:
        self._topology = topology
        self._collective = collective
        self._directions = phases(collective)
        self._alike = directed_network(topology, Direction.IN) == directed_network(topology, Direction.OUT)
        if optima is None:
            weights = best_weights(topology, collective, root)
            optima = self._per_phase(lambda direction: solve_optimum(topology, weights, direction))
        self.optima = optima
        self._weights = optima[0].weights
        self._roots = 1 if collective.rooted else topology.rank_count
        self.unequal = len(set(self._weights)) > 1 and not collective.rooted

    def asked(self, k: int) -> Choice:
        """k trees per root; per root on average where unequal roots are better."""
        total = k * self._roots
        choice = self._best_of(total, f"{self._counted(total)} as asked", Fraction(0))
        if not self.unequal:
            return choice
        parts = "in equal parts" if len(set(choice.demand)) == 1 else "by their shares, not equally"
        why = f"{k} per root on average as asked, {total} in all, handed out to the roots {parts}"
        return msgspec.structs.replace(choice, why=why)

    def at(self, demand: tuple[int, ...], reason: str) -> Choice:
        if self._alike:
            times = (solve_time_units(self._topology, demand, Direction.OUT),) * len(self._directions)
        else:
            times = self._per_phase(lambda direction: solve_time_units(self._topology, demand, direction))
        choice = Choice(demand=demand, time_units=times, optima=self.optima, loss=Fraction(0), why=reason)
        return choice.paying(sum(times, Fraction(0)), self.optima)

    def exact(self) -> Choice:
        total = self._exact_total()
        choice = self.at(
            hand_out(total, self._weights), f"{self._counted(total)} is the smallest found that can reach the optimum"
        )
        if choice.loss == 0:
            return choice
        why = f"{self._counted(total)}; a switch that receives more than it sends keeps trees from the cut bound"
        return msgspec.structs.replace(choice, why=why)

    def smallest(self, tolerance: Fraction) -> Choice:
        """The fewest trees within the tolerance; all are tried because the rate is not monotone in their number."""
        exact = self._exact_total()
        even = range(self._roots, min(exact, self._roots * SCAN_LIMIT) + 1, self._roots)
        totals = sorted({*even, exact})[:SCAN_LIMIT]
        return self._first(
            ((total, f"{self._counted(total)} is the smallest within {_percent(tolerance)}") for total in totals),
            tolerance,
            f"no k up to {totals[-1] // self._roots} is within {_percent(tolerance)}; this is the best of them",
        )

    def _exact_total(self) -> int:
        return lcm(*(optimum.trees_per_root for optimum in self.optima)) * sum(self._weights)

    def _counted(self, total: int) -> str:
        return f"{format_count(total, 'tree')} in all" if self.unequal else f"k = {total // self._roots}"

    def chunked(self, tolerance: Fraction) -> Choice:
        """Prefer counts that divide the element counts people send."""
        if self._collective is Collective.ALLREDUCE:
            choice = self._first(
                self._powers_in_all(), tolerance, "the best power of two, which serves power-of-two element counts"
            )
            if choice.loss <= max(tolerance, UNEVEN_LIMIT):
                return choice
        else:
            most = CHUNK_LIMIT if self._collective.rooted else SCAN_LIMIT
            powers = (
                (self._roots << bit, f"k = {1 << bit} divides power-of-two element counts")
                for bit in range(most.bit_length())
            )
            choice = self._first(powers, tolerance, "")
            if choice.loss <= tolerance:
                return choice
        return self.smallest(tolerance)

    def _powers_in_all(self) -> Iterator[tuple[int, str]]:
        ranks = self._topology.rank_count
        total = 1 << (ranks - 1).bit_length()
        while total <= max(CHUNK_LIMIT, 4 * ranks):
            yield total, f"{format_count(total, 'chunk')} in all, which serves power-of-two element counts"
            total *= 2

    def _first(self, totals: Iterator[tuple[int, str]], tolerance: Fraction, otherwise: str) -> Choice:
        best: Choice | None = None
        for total, reason in totals:
            choice = self._best_of(total, reason, tolerance)
            if choice.loss <= tolerance:
                return choice
            if best is None or choice.loss < best.loss:
                best = choice
        assert best is not None, "every caller offers a candidate"
        return msgspec.structs.replace(best, why=otherwise)

    def _best_of(self, total: int, reason: str, tolerance: Fraction) -> Choice:
        """`total` unit trees in proportion to the weights, or as evenly as they go where rounding spoils that."""
        choice = self.at(hand_out(total, self._weights), reason)
        if choice.loss <= tolerance or not self.unequal:
            return choice
        even = self.at(hand_out(total, (1,) * self._roots), reason)
        return min(choice, even, key=lambda one: one.loss)

    def _per_phase(self, solve: Callable[[Direction], _Solved]) -> tuple[_Solved, ...]:
        return tuple(solve(direction) for direction in self._directions)


def hand_out(total: int, weights: Sequence[int]) -> tuple[int, ...]:
    """`total` chunks to the roots in proportion to their weights.

    Every root, and every run of neighbouring ranks such as a host, gets its exact share rounded up or down.
    """
    weight = sum(weights)
    ends = [total * reached // weight for reached in accumulate(weights, initial=0)]
    return tuple(after - before for before, after in pairwise(ends))


def _lost(loss: Fraction) -> str:
    return "nothing given up" if loss == 0 else f"{_percent(loss)} above the optimal time"


def _percent(value: Fraction) -> str:
    return f"{float(100 * value):.3g} %"
