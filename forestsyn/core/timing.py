"""The least time for a given number of unit trees per root.

Problem. Root v needs d_v unit trees, D in all. In the time U link e carries ⌊b(e)·U⌋ of them. Find the least U for
which the trees exist.

Guarantee. The least U, exactly, where every switch stays balanced under rounding down (which it does when its links
come in pairs of equal bandwidth each way). Elsewhere rounded capacities must be balanced by giving some up (see
`balance`); the U returned is then the first one tried for which that succeeded, and never below the cut bound.

Method. The dual of the Newton iteration of `optimum`. Start from the cut bound max d(S)/B⁺(S). While the flow to a
rank falls short, the minimum cut S proves that U must grow until Σ ⌊b(e)·U⌋ over the links leaving S reaches d(S);
the least such U is a breakpoint j/b(e) and is found exactly. U only grows, so a rank that passed keeps passing: one
sweep.

The rate is not monotone in the number of trees per root (MI250: 266.7, 320, 342.9, 320 GB/s for 1 … 4), so callers
that look for a good number must try them all.

Complexity: one flow for each orbit of ranks and one for each breakpoint passed. Exactness: integers and fractions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from forestsyn.core.balance import balanced_capacities
from forestsyn.core.network import host_names
from forestsyn.core.optimum import directed_network, worst_cut
from forestsyn.core.rooted import RootedFlows, leaving_arcs
from forestsyn.core.symmetry import orbit_ranks
from forestsyn.errors import UnsupportedError
from forestsyn.ir.forest import Direction
from forestsyn.ir.network import FlowNetwork
from forestsyn.ir.topology import Topology

#: For a network whose switches do not stay balanced under rounding down: breakpoints tried in turn, and then
#: times that grow faster and faster, since rounding matters less the longer the time.
BREAKPOINT_TRIES = 8
GROWTHS = tuple(1 + Fraction(1 << step, 64) for step in range(12))


def solve_time_units(topology: Topology, demand: Sequence[int], direction: Direction) -> Fraction:
    """The least U (in s per GB of chunk) in which demand[v] unit trees per root v fit; see the module.

    Raises InfeasibleError when a rank cannot be reached.
    """
    network = directed_network(topology, direction)
    time_units, _ = carrying_capacities(topology, network, tuple(demand))
    return time_units


def carrying_capacities(
    topology: Topology,
    network: FlowNetwork,
    demand: tuple[int, ...],
    at_least: Fraction = Fraction(0),
) -> tuple[Fraction, list[int]]:
    """(U, units per arc): balanced capacities within U that carry `demand`, for the least U ≥ `at_least` found.

    `network` is directed already.
    """
    bound = _cut_bound(network, demand, worst_cut(topology, network, demand))
    scaled = max(at_least * network.unit, bound)
    ranks = orbit_ranks(network, host_names(topology), demand)
    for growth in (*([Fraction(1)] * BREAKPOINT_TRIES), *GROWTHS):
        scaled = _least_time(network, demand, scaled * growth, ranks)
        capacities = balanced_capacities(network, rounded_capacities(network, scaled), demand)
        if capacities is not None:
            return scaled / network.unit, capacities
        scaled = _next_breakpoint(network, scaled)
    raise UnsupportedError(
        f"no balanced capacities were found for {sum(demand)} trees; some switch receives more than it sends",
        limit="balance",
        where=topology.name,
        hint="make the bandwidth into and out of each switch equal, or try another --trees",
    )


def _cut_bound(network: FlowNetwork, demand: Sequence[int], inside: Sequence[int]) -> Fraction:
    capacity = sum(network.capacities[arc] for arc in leaving_arcs(network, inside))
    return Fraction(_demand_of(network, demand, inside), capacity)


def _least_time(network: FlowNetwork, demand: Sequence[int], scaled: Fraction, ranks: Sequence[int]) -> Fraction:
    flows = RootedFlows(network, rounded_capacities(network, scaled), demand)
    for rank in ranks:
        while (violated := flows.violated_set(rank)) is not None:
            scaled = _time_for_cut(network, demand, violated, scaled)
            flows.update(rounded_capacities(network, scaled), demand)
    return scaled


def rounded_capacities(network: FlowNetwork, scaled: Fraction) -> list[int]:
    """Whole units of each arc in the time `scaled`, which is U × the unit of the network."""
    numerator, denominator = scaled.numerator, scaled.denominator
    return [capacity * numerator // denominator for capacity in network.capacities]


def _time_for_cut(network: FlowNetwork, demand: Sequence[int], inside: Sequence[int], scaled: Fraction) -> Fraction:
    """The least time ≥ `scaled` at which the arcs leaving `inside` carry its demand in whole units."""
    counts = Counter(network.capacities[arc] for arc in leaving_arcs(network, inside))
    need = _demand_of(network, demand, inside)
    total = sum(capacity * count for capacity, count in counts.items())
    time = max(scaled, Fraction(need, total))
    units = {capacity: int(capacity * time) for capacity in counts}
    carried = sum(units[capacity] * count for capacity, count in counts.items())
    while carried < need:
        time, capacity = min((Fraction(units[capacity] + 1, capacity), capacity) for capacity in counts)
        units[capacity] += 1
        carried += counts[capacity]
    return time


def _demand_of(network: FlowNetwork, demand: Sequence[int], inside: Sequence[int]) -> int:
    return sum(demand[vertex] for vertex in inside if vertex < network.rank_count)


def _next_breakpoint(network: FlowNetwork, scaled: Fraction) -> Fraction:
    return min(Fraction(int(capacity * scaled) + 1, capacity) for capacity in set(network.capacities))
