"""The optimum: the best rate at which all roots can broadcast at once.

Problem. Rank v has root weight w_v (1 each for allgather, 1 at the root only for broadcast), W = Σ w_v. Every set
S that misses a rank must send its weight out through the bandwidth B⁺(S) that leaves it, so a unit of weight
takes at least

    1/x* = max over S of w(S) / B⁺(S)        [s per GB]

Guarantee. The returned cut attains 1/x* exactly; that no cut is worse was shown by one maximum flow to each rank.

Method (ForestColl, arXiv 2402.06787 §4, with Newton's iteration on cuts in place of its binary search). x is feasible
iff maxflow(s → r) ≥ W·x for every rank r when s feeds each rank w_v·x. Start from the worst single-rank
ingress cut. Take one rank after the other: while the flow to it falls short, the minimum cut is a worse cut; set x to
its ratio and try again. x only falls, and a rank that passed at a larger x still passes: one sweep is enough.

Complexity: one flow for each orbit of ranks (see `symmetry`) and one for each improvement. Exactness: x is kept as
a fraction p/q of integers; capacities are scaled by p and weights by q.

Reductions (Direction.IN) are the same on the network with every arc turned round.

How many trees. With k trees per unit of weight in the time U = k/x*, link e can carry ⌊b(e)·U⌋ unit trees. The k
for which every b(e)·U is whole always works; links that are not critical may be rounded down, so smaller k that keep
the links of the bottleneck cut whole are tried first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from math import lcm

from forestsyn.core.network import build_network, host_names, vertex_order
from forestsyn.core.rooted import RootedFlows, leaving_arcs
from forestsyn.core.symmetry import orbit_ranks
from forestsyn.errors import InfeasibleError
from forestsyn.graph.flow import FlowSolver
from forestsyn.ir.forest import Direction, Optimum
from forestsyn.ir.network import Cut, FlowNetwork
from forestsyn.ir.topology import Topology

#: How many multiples of the smallest conceivable k are tried before the one that always works is taken.
SMALL_K_TRIES = 24
#: The least rank-separating cut takes two flows per rank; beyond this many ranks natural cuts stand in for it.
EXACT_CUT_RANKS = 1024


def solve_optimum(topology: Topology, weights: tuple[int, ...], direction: Direction) -> Optimum:
    """The best rate for root weights `weights`, with its bottleneck cut and the smallest exact k found.

    Raises InfeasibleError, naming both sides, when some rank cannot be reached.
    """
    network = directed_network(topology, direction)
    inside = worst_cut(topology, network, weights)
    arcs = leaving_arcs(network, inside)
    weight = sum(weights[vertex] for vertex in inside if vertex < network.rank_count)
    capacity = sum(network.capacities[arc] for arc in arcs)
    inverse_rate = Fraction(weight, capacity)
    return Optimum(
        direction=direction,
        weights=weights,
        inverse_rate=inverse_rate / network.unit,
        trees_per_root=_smallest_k(topology, network, weights, inverse_rate, arcs),
        cut=Cut(inside=tuple(inside), demand=Fraction(weight), bandwidth=capacity * network.unit),
    )


def directed_network(topology: Topology, direction: Direction) -> FlowNetwork:
    """The network on which `direction`'s trees are out-trees."""
    network = build_network(topology)
    return network if direction is Direction.OUT else network.reversed()


def worst_cut(topology: Topology, network: FlowNetwork, weights: tuple[int, ...]) -> list[int]:
    """The vertices of the set S with the largest w(S) / B⁺(S); `network` is already directed.

    Raises InfeasibleError when some rank cannot be reached.
    """
    inside = _worst_single_rank(network, weights)
    ratio = _ratio(topology, network, weights, inside)
    flows = RootedFlows(network, *_scaled(network, weights, ratio))
    for rank in orbit_ranks(network, host_names(topology), weights):
        while (violated := flows.violated_set(rank)) is not None:
            inside = violated
            ratio = _ratio(topology, network, weights, inside)
            flows.update(*_scaled(network, weights, ratio))
    return inside


def rank_cut(topology: Topology) -> Cut:
    """A set of little leaving bandwidth among those that hold a rank and miss a rank.

    Every Hamiltonian ring crosses it, and an allreduce must pass its whole message through it, so it bounds both from
    above. `demand` is 1: the cut is taken as passing the message once. It is the least such cut for up to
    `EXACT_CUT_RANKS` ranks, found by flows; beyond, the least around one rank or one host.
    """
    network = build_network(topology)
    if network.rank_count > EXACT_CUT_RANKS:
        value, inside = _natural_cut(network, host_names(topology))
    else:
        value, inside = _least_cut(network)
    return Cut(inside=tuple(inside), demand=Fraction(1), bandwidth=value * network.unit)


def _least_cut(network: FlowNetwork) -> tuple[int, list[int]]:
    solver = FlowSolver(network.vertex_count, network.tails, network.heads, network.capacities)
    best, inside = -1, [0]
    for rank in range(1, network.rank_count):
        for source, sink in ((0, rank), (rank, 0)):
            value = solver.max_flow(source, sink)
            if best < 0 or value < best:
                best, inside = value, solver.source_side()
    return best, inside


def _natural_cut(network: FlowNetwork, hosts: Sequence[str | None]) -> tuple[int, list[int]]:
    """The least of the cuts that enter or leave one rank or one host."""
    crossing: dict[tuple[bool, int | str], int] = {}
    for tail, head, capacity in zip(network.tails, network.heads, network.capacities, strict=True):
        for leaving, vertex in ((True, tail), (False, head)):
            if vertex < network.rank_count:
                crossing[leaving, vertex] = crossing.get((leaving, vertex), 0) + capacity
            host = hosts[vertex]
            if host is not None and hosts[tail] != hosts[head]:
                crossing[leaving, host] = crossing.get((leaving, host), 0) + capacity
    ranks_at = Counter(hosts[: network.rank_count])
    whole = {
        key: value
        for key, value in crossing.items()
        if isinstance(key[1], int) or 0 < ranks_at[key[1]] < network.rank_count
    }
    leaving, place = min(whole, key=lambda key: (whole[key], str(key)))
    side = [v for v in range(network.vertex_count) if v == place or (isinstance(place, str) and hosts[v] == place)]
    inside = side if leaving else sorted(set(range(network.vertex_count)) - set(side))
    return whole[leaving, place], inside


def _worst_single_rank(network: FlowNetwork, weights: tuple[int, ...]) -> list[int]:
    ingress = [0] * network.vertex_count
    for head, capacity in zip(network.heads, network.capacities, strict=True):
        ingress[head] += capacity
    total = sum(weights)

    def badness(rank: int) -> tuple[bool, Fraction]:
        demand = total - weights[rank]
        if ingress[rank] == 0:
            return (demand > 0, Fraction(demand))
        return (False, Fraction(demand, ingress[rank]))

    worst = max(range(network.rank_count), key=badness)
    return [vertex for vertex in range(network.vertex_count) if vertex != worst]


def _ratio(topology: Topology, network: FlowNetwork, weights: tuple[int, ...], inside: list[int]) -> Fraction:
    weight = sum(weights[vertex] for vertex in inside if vertex < network.rank_count)
    capacity = sum(network.capacities[arc] for arc in leaving_arcs(network, inside))
    if capacity == 0:
        raise _disconnected(topology, network, inside)
    return Fraction(weight, capacity)


def _scaled(network: FlowNetwork, weights: tuple[int, ...], ratio: Fraction) -> tuple[list[int], list[int]]:
    return (
        [capacity * ratio.numerator for capacity in network.capacities],
        [weight * ratio.denominator for weight in weights],
    )


def _disconnected(topology: Topology, network: FlowNetwork, inside: list[int]) -> InfeasibleError:
    order = vertex_order(topology)
    sides = ([], [])  # type: tuple[list[str], list[str]]
    member = set(inside)
    for rank in range(network.rank_count):
        sides[rank not in member].append(topology.vertices[order[rank]].name)
    return InfeasibleError(
        f"the ranks do not all reach each other: no link joins [{_shortened(sides[0])}] with [{_shortened(sides[1])}]"
        " in the direction that is needed",
        cut=[topology.vertices[order[vertex]].name for vertex in inside],
        where=topology.name,
        hint="add a link between the two sides, or list only the ranks of one side",
    )


def _shortened(names: list[str], limit: int = 8) -> str:
    rest = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {rest} more" if rest > 0 else "")


def _smallest_k(
    topology: Topology, network: FlowNetwork, weights: tuple[int, ...], inverse_rate: Fraction, critical: list[int]
) -> int:
    """The smallest k found for which k / x* time lets whole trees through at the full rate."""
    always = inverse_rate.denominator
    smallest = lcm(
        *((network.capacities[arc] * inverse_rate).denominator for arc in critical),
    )
    if smallest == always:
        return always
    ranks = orbit_ranks(network, host_names(topology), weights)
    flows = RootedFlows(network, network.capacities, weights)
    for k in range(smallest, min(always, smallest * (SMALL_K_TRIES + 1)), smallest):
        capacities = [int(capacity * k * inverse_rate) for capacity in network.capacities]
        if not is_balanced(network, capacities):
            continue
        flows.update(capacities, [k * weight for weight in weights])
        if all(flows.violated_set(rank) is None for rank in ranks):
            return k
    return always


def is_balanced(network: FlowNetwork, capacities: list[int]) -> bool:
    """True when every vertex that is not a rank receives as much as it sends."""
    excess = [0] * network.vertex_count
    for tail, head, capacity in zip(network.tails, network.heads, capacities, strict=True):
        excess[tail] -= capacity
        excess[head] += capacity
    return not any(excess[network.rank_count :])
