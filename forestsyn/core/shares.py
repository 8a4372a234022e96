"""The best roots of an allreduce: how much of the data each rank should reduce and broadcast.

Problem. Root v takes the share w_v ≥ 0 of the message, Σ w = 1. Reduce-scatter, then allgather, need per GB

    T(w) = T_in(w) + T_out(w),     T_out(w) = max over S that misses a rank of w(S) / B⁺(S),     T_in alike with B⁻.

Minimize T. Equal shares are best on symmetric clusters only: a host with dead NICs should root more than its part,
for what it roots has to leave it once, and what others root has to enter it.

Certificate. Non-negative prices y_S on cuts, for each phase with Σ y_S · B(S) ≤ 1. If the cuts that hold rank v are
worth at least λ for every v, then T(w) ≥ λ for every w: T(w) ≥ Σ y_S · w(S) = Σ w_v · (price of the cuts round v).
Two complementary cuts with all price on each give λ = 1/B, the cut bound of every allreduce.

Method. `filling` solves one phase alone, exactly and without a linear program; its family of sets gives the prices.
Where every link is as fast in one direction as in the other, both phases are one problem, and this is the end.
Elsewhere the sum of both bounds is a first λ, and only where no shares found so far come near it is the linear
program of `duplex` solved. Its floats are a proposal: shares and prices are made rational, T and λ measured exactly.

Guarantee. T of the returned shares is exact, never above that of equal shares, and λ is proven; `is_optimal` where
they agree. Networks with unbalanced switches: as in `optimum`, T is the cut bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import gcd, lcm
from typing import TypeVar

import msgspec

from forestsyn.core.duplex import Prices, solve_duplex
from forestsyn.core.filling import Entrances, Family, family_bound, fill_shares
from forestsyn.core.network import host_names
from forestsyn.core.optimum import directed_network, worst_cut
from forestsyn.core.symmetry import find_orbits
from forestsyn.ir.forest import Direction
from forestsyn.ir.network import FlowNetwork
from forestsyn.ir.topology import Topology

_Result = TypeVar("_Result")
_Networks = tuple[FlowNetwork, FlowNetwork]
_Parts = tuple[tuple[int, ...], tuple[int, ...]]

#: The phases of an allreduce, in the order in which they run.
PHASES = (Direction.IN, Direction.OUT)
#: A possible gain below this is not worth a linear program.
WORTH_A_PROGRAM = Fraction(1, 1000)


class PricedCut(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A set that all data rooted outside must enter (OUT) or whose contributions must leave it (IN), and its price.

    part: ids of the flow network, ranks first, at least one rank inside and one outside. price: y, in s per GB.
    """

    direction: Direction
    part: tuple[int, ...]
    price: Fraction


class Shares(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The best shares found and how good they are.

    weights: the shares as coprime integers. inverse_rate: T in s per GB of the message, both phases.
    equal_inverse_rate: that of equal shares. least_inverse_rate: λ, proven by `certificate`; no shares are faster.
    """

    weights: tuple[int, ...]
    inverse_rate: Fraction
    equal_inverse_rate: Fraction
    least_inverse_rate: Fraction
    certificate: tuple[PricedCut, ...]

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """w, of sum 1."""
        total = sum(self.weights)
        return tuple(Fraction(weight, total) for weight in self.weights)

    @property
    def algbw(self) -> Fraction:
        """GB/s, exact."""
        return 1 / self.inverse_rate

    @property
    def equal_algbw(self) -> Fraction:
        """GB/s of equal shares, exact."""
        return 1 / self.equal_inverse_rate

    @property
    def limit_algbw(self) -> Fraction:
        """GB/s that no shares exceed, exact."""
        return 1 / self.least_inverse_rate

    @property
    def is_optimal(self) -> bool:
        """Whether no shares whatever are faster, proven."""
        return self.inverse_rate == self.least_inverse_rate


def solve_shares(topology: Topology) -> Shares:
    """The best shares for an allreduce on `topology`; equal ones where those are as good.

    Raises InfeasibleError when some rank cannot reach another.
    """
    into, out = (directed_network(topology, direction) for direction in PHASES)
    networks = (into, out)
    equal = (1,) * topology.rank_count
    bottlenecks = _bottlenecks(topology, networks, equal)
    times = {equal: _time(networks, equal, bottlenecks)}
    families = _per_phase(networks, lambda network: _likely_family(topology, network, bottlenecks[network is out]))
    bound, certificate = _proven(networks, _family_prices(families))

    def offer(weights: tuple[int, ...]) -> None:
        if weights not in times:
            times[weights] = _time(networks, weights, _bottlenecks(topology, networks, weights))

    if times[equal] > bound:
        hosts = host_names(topology)
        fillings = _per_phase(
            networks,
            lambda network: fill_shares(network, families[network is out], find_orbits(network, hosts, equal)),
        )
        families = (fillings[0].family, fillings[1].family)
        bound, certificate = _proven(networks, _family_prices(families))
        for filling in fillings:
            offer(whole_weights(filling.shares))
    if min(times.values()) > (1 + WORTH_A_PROGRAM) * bound:
        proposal = solve_duplex(networks, families)
        if proposal is not None:
            shares, prices = proposal
            bound, certificate = max((bound, certificate), _proven(networks, prices), key=lambda proof: proof[0])
            offer(whole_weights(shares))
    best = min(times, key=lambda weights: times[weights])
    return Shares(
        weights=best,
        inverse_rate=times[best],
        equal_inverse_rate=times[equal],
        least_inverse_rate=bound,
        certificate=certificate,
    )


def whole_weights(shares: Sequence[Fraction]) -> tuple[int, ...]:
    """The coprime integers in the proportion of `shares`."""
    scale = lcm(*(share.denominator for share in shares))
    whole = [int(share * scale) for share in shares]
    divisor = gcd(*whole)
    return tuple(weight // divisor for weight in whole)


def _per_phase(networks: _Networks, solve: Callable[[FlowNetwork], _Result]) -> tuple[_Result, _Result]:
    """`solve` of both networks, once where they are alike."""
    first = solve(networks[0])
    return first, first if networks[0] == networks[1] else solve(networks[1])


def _bottlenecks(topology: Topology, networks: _Networks, weights: tuple[int, ...]) -> _Parts:
    """For each phase the set that what is rooted outside enters most slowly."""

    def phase(network: FlowNetwork) -> tuple[int, ...]:
        inside = set(worst_cut(topology, network, weights))
        return tuple(vertex for vertex in range(network.vertex_count) if vertex not in inside)

    return _per_phase(networks, phase)


def _time(networks: _Networks, weights: tuple[int, ...], bottlenecks: _Parts) -> Fraction:
    """T(weights / Σ weights), exact."""
    time = Fraction(0)
    for network, part in zip(networks, bottlenecks, strict=True):
        demand = sum(weights) - sum(weights[vertex] for vertex in part if vertex < network.rank_count)
        time += demand / (sum(weights) * network.unit * Entrances(network).capacity(part))
    return time


def _likely_family(topology: Topology, network: FlowNetwork, bottleneck: tuple[int, ...]) -> Family:
    """Every rank alone, every host, or a bottleneck and the rest, whichever bounds most."""
    ranks = range(network.rank_count)
    hosts: dict[str | None, list[int]] = {}
    for vertex, host in enumerate(host_names(topology)):
        hosts.setdefault(host, []).append(vertex)
    rest = tuple(sorted(set(range(network.vertex_count)) - set(bottleneck)))
    families: list[Family] = [tuple((rank,) for rank in ranks), (bottleneck, rest)]
    by_host = tuple(tuple(part) for host, part in hosts.items() if host is not None and part[0] in ranks)
    if len(by_host) > 1:
        families.append(by_host)
    return min(families, key=lambda family: family_bound(network, family))


def _family_prices(families: tuple[Family, Family]) -> Prices:
    return [(phase, part, Fraction(1)) for phase, family in enumerate(families) for part in family]


def _proven(networks: _Networks, prices: Prices) -> tuple[Fraction, tuple[PricedCut, ...]]:
    """λ, and the cuts with prices brought to Σ y · B = 1 in each phase; any prices prove something."""
    entrances = [Entrances(network) for network in networks]
    spent = [Fraction(0), Fraction(0)]
    for phase, part, price in prices:
        spent[phase] += price * entrances[phase].capacity(part) * networks[phase].unit
    certificate = tuple(
        PricedCut(direction=PHASES[phase], part=part, price=price / spent[phase]) for phase, part, price in prices
    )
    missed = [Fraction(0)] * networks[0].rank_count
    for cut in certificate:
        for vertex in cut.part:
            if vertex < len(missed):
                missed[vertex] += cut.price
    return sum((cut.price for cut in certificate), Fraction(0)) - max(missed), certificate
