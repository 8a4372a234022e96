"""Shares for two unlike phases: a linear program over cuts, and its exact solution.

Problem. Minimize a + b over shares w ≥ 0, Σ w = 1, and the times a, b of the two phases, such that

    w(V − X) ≤ a · ρ(X) in the first network,     w(V − X) ≤ b · ρ(X) in the second,

for every set X that holds some of the ranks. The dual prices these sets: the certificate of `shares`.

Method. Begin with the sets of given families and add those that maximum flows find violated (Dantzig, Fulkerson &
Johnson 1954). HiGHS solves each program in floats. Once no set is violated by more than the floats can tell, the
rows that hold with equality are solved as linear equations in fractions, for the shares and for the prices; sets
that are violated exactly are added too. Where the equations have no single solution, the floats are rounded to
fractions.

Guarantee. None: a proposal, which the caller measures exactly. Complexity: 2 flows per rank and one program a round;
the equations take cubic time and are left out beyond `EXACT_UNKNOWNS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import lcm

from forestsyn.core.equations import solve_equations
from forestsyn.core.filling import Entrances, Family
from forestsyn.core.rooted import RootedFlows
from forestsyn.ir.network import FlowNetwork

Networks = tuple[FlowNetwork, FlowNetwork]
#: (number of the network, X, price) of each cut.
Prices = list[tuple[int, tuple[int, ...], Fraction]]

#: Values and prices of this size may be 0 in truth, rows of this slack may hold with equality.
TINY = 1e-9
#: What floats say of shares and times is believed in multiples of 1 / GRID, and cuts are missed up to SLACK.
GRID = 10**7
SLACK = Fraction(1, 10**6)
#: Denominators of shares and prices that could not be made exact.
ROUNDING = 10**4
#: Beyond this many unknowns the equations take too long.
EXACT_UNKNOWNS = 100


def solve_duplex(networks: Networks, families: tuple[Family, Family]) -> tuple[list[Fraction], Prices] | None:
    """Proposed shares, of any sum, and prices of cuts that bound the times of all shares; None where floats fail.

    networks: one the reverse of the other. families: of each, any sets to begin with, at least one.
    """
    program = _Program(networks)
    for phase, family in enumerate(families):
        for part in family:
            program.add(phase, part)
    while True:
        if not program.solve():
            return None
        if program.add_violated(*program.proposal()):
            continue
        exact = program.exact_proposal()
        if exact is None or not program.add_violated(*exact):
            return exact[0] if exact is not None else program.rounded_shares(), program.prices()


class _Program:
    """The program over the cuts so far. Times are in units in which the largest capacity of a network is 1."""

    def __init__(self, networks: Networks) -> None:
        self._networks = networks
        self._ranks = networks[0].rank_count
        self._entrances = [Entrances(network) for network in networks]
        self._largest = max(networks[0].capacities)
        self._cuts: dict[tuple[int, tuple[int, ...]], Fraction] = {}
        self._values: list[float] = []
        self._prices: list[float] = []

    def add(self, phase: int, part: tuple[int, ...]) -> bool:
        """Add a cut; False where it is there already."""
        if (phase, part) in self._cuts:
            return False
        self._cuts[phase, part] = Fraction(self._entrances[phase].capacity(part), self._largest)
        return True

    def solve(self) -> bool:
        """Solve in floats; False where the solver fails. A cut demands w(X) + time · ρ(X) ≥ 1."""
        # The solver and the library under it are needed for networks of unlike directions only.
        from forestsyn.graph.program import minimize_linear

        costs = [0] * self._ranks + [1, 1]
        whole: dict[int, Fraction] = dict.fromkeys(range(self._ranks), Fraction(1))
        solution = minimize_linear(costs, at_least=self._rows(), equal=[(whole, 1)])
        if solution is not None:
            self._values, self._prices = solution
        return solution is not None

    def proposal(self) -> tuple[list[Fraction], list[Fraction]]:
        """Shares and times of the floats; the times a little generous."""
        values = [Fraction(max(round(value * GRID), 0), GRID) for value in self._values]
        return values[: self._ranks], [time * (1 + SLACK) for time in values[self._ranks :]]

    def exact_proposal(self) -> tuple[list[Fraction], list[Fraction]] | None:
        """Shares and times with which exactly those rows are equations that nearly are in floats."""
        unknowns = [index for index, value in enumerate(self._values) if value > TINY]
        if len(unknowns) > EXACT_UNKNOWNS:
            return None
        rows: list[tuple[dict[int, Fraction], Fraction]] = []
        for row, need in self._rows():
            reached = sum(float(coefficient) * self._values[index] for index, coefficient in row.items())
            if reached - need < TINY:
                rows.append((row, Fraction(need)))
        rows.append((dict.fromkeys(range(self._ranks), Fraction(1)), Fraction(1)))
        solution = solve_equations(rows, unknowns)
        if solution is None or min(solution.values()) < 0:
            return None
        values = [solution.get(index, Fraction(0)) for index in range(self._ranks + 2)]
        return values[: self._ranks], values[self._ranks :]

    def rounded_shares(self) -> list[Fraction]:
        """Shares near those of the floats."""
        return [Fraction(max(value, 0.0)).limit_denominator(ROUNDING) for value in self._values[: self._ranks]]

    def prices(self) -> Prices:
        """The prices of the cuts: exact where the equations tell them, else near those of the floats."""
        cuts = [(*cut, price) for cut, price in zip(self._cuts, self._prices, strict=True) if price > TINY]
        exact = self._exact_prices([(phase, part) for phase, part, _ in cuts])
        if exact is None or min(exact) < 0:
            exact = [Fraction(price).limit_denominator(ROUNDING) for _, _, price in cuts]
        return [(phase, part, price) for (phase, part, _), price in zip(cuts, exact, strict=True)]

    def _exact_prices(self, cuts: Sequence[tuple[int, tuple[int, ...]]]) -> list[Fraction] | None:
        """Prices for which the cuts round every rank that nearly has the most of them are worth the same."""
        if len(cuts) >= EXACT_UNKNOWNS:
            return None
        prices = dict(zip(self._cuts, self._prices, strict=True))
        missed = [[index for index, (_, part) in enumerate(cuts) if rank in set(part)] for rank in range(self._ranks)]
        worth = [sum(prices[cuts[index]] for index in indices) for indices in missed]
        most, level = max(worth), len(cuts)
        rows: list[tuple[dict[int, Fraction], Fraction]] = []
        for phase in (0, 1):
            spent = {index: self._cuts[cut] for index, cut in enumerate(cuts) if cut[0] == phase}
            rows.append((spent, Fraction(1)))
        for indices, value in zip(missed, worth, strict=True):
            if most - value < TINY:
                rows.append(({**dict.fromkeys(indices, Fraction(1)), level: Fraction(-1)}, Fraction(0)))
        solution = solve_equations(rows, range(level + 1))
        return None if solution is None else [solution[index] for index in range(level)]

    def add_violated(self, shares: Sequence[Fraction], times: Sequence[Fraction]) -> bool:
        """Add for each rank and phase a cut that these shares violate; whether any was new."""
        found = False
        for phase, (network, time) in enumerate(zip(self._networks, times, strict=True)):
            scale = lcm(time.denominator, *(share.denominator for share in shares))
            flows = RootedFlows(
                network,
                [capacity * int(time * scale) for capacity in network.capacities],
                [int(share * scale) * self._largest for share in shares],
            )
            for rank in range(self._ranks):
                inside = flows.violated_set(rank)
                if inside is not None:
                    outside = set(range(network.vertex_count)) - set(inside)
                    found |= self.add(phase, tuple(sorted(outside)))
        return found

    def _rows(self) -> list[tuple[dict[int, Fraction], int]]:
        return [
            (
                {
                    **{vertex: Fraction(1) for vertex in part if vertex < self._ranks},
                    self._ranks + phase: bandwidth,
                },
                1,
            )
            for (phase, part), bandwidth in self._cuts.items()
        ]
