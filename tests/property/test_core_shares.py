"""The shares of an allreduce against brute-force cuts, a linear program over flows, and bad proposals."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from unittest.mock import patch

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from forestsyn.core import build_forests, choose_demand, shares
from forestsyn.core.choice import phases
from forestsyn.core.equations import solve_equations
from forestsyn.core.filling import fill_shares
from forestsyn.core.network import build_network
from forestsyn.core.shares import Shares, solve_shares
from forestsyn.errors import VerificationError
from forestsyn.ir.collective import Collective
from forestsyn.ir.forest import Direction
from forestsyn.ir.topology import Topology
from forestsyn.verify import verify_forest
from forestsyn.verify.forest import forest_load
from forestsyn.verify.shares import verify_shares
from tests import oracles
from tests.strategies import (
    LARGE_CLUSTERS,
    any_topologies,
    balanced_topologies,
    clusters,
    hostile_bandwidths,
    make_topology,
    reordered,
    reversed_topology,
    shapes,
    switchless_topologies,
    tame_bandwidths,
    topologies,
)

MAXIMUM_TREES = 20_000
small_tame = st.one_of(
    switchless_topologies(maximum_ranks=5, bandwidth=tame_bandwidths),
    topologies(maximum_ranks=5, maximum_switches=2, bandwidth=tame_bandwidths),
)


def _time(topology: Topology, weights: Sequence[int]) -> Fraction:
    """Both phases per GB, by all cuts."""
    times = [oracles.optimum(topology, weights, direction) for direction in Direction]
    return sum((time for time in times if time is not None), Fraction(0)) / sum(weights)


def _least_time(topology: Topology) -> float:
    """The least time of any shares: min a + b with, for each rank and phase, a flow of all shares to that rank."""
    ranks, links = topology.rank_count, topology.links
    count = ranks + 2 + 2 * ranks * len(links)
    equal, values, upper = [], [], []
    whole = np.zeros(count)
    whole[:ranks] = 1
    equal.append(whole)
    values.append(1.0)
    for phase, direction in enumerate((Direction.IN, Direction.OUT)):
        for sink, sink_vertex in enumerate(topology.ranks):
            first = ranks + 2 + (phase * ranks + sink) * len(links)
            balance = np.zeros((len(topology.vertices), count))
            for number, link in enumerate(links):
                tail, head = (link.tail, link.head) if direction is Direction.OUT else (link.head, link.tail)
                balance[tail, first + number] += 1
                balance[head, first + number] -= 1
                room = np.zeros(count)
                room[first + number], room[ranks + phase] = 1, -float(link.bandwidth)
                upper.append(room)
            for rank, vertex in enumerate(topology.ranks):
                balance[vertex, rank] -= 1
            others = [vertex for vertex in range(len(topology.vertices)) if vertex != sink_vertex]
            equal.extend(balance[others])
            values.extend([0.0] * len(others))
    costs = np.zeros(count)
    costs[ranks : ranks + 2] = 1
    result = linprog(costs, A_ub=np.array(upper), b_ub=np.zeros(len(upper)), A_eq=np.array(equal), b_eq=values)
    assert result.status == 0
    return float(result.fun)


def _certified(topology: Topology, found: Shares) -> None:
    verify_shares(topology, found)
    assert found.inverse_rate == _time(topology, found.weights)
    assert found.equal_inverse_rate == _time(topology, [1] * topology.rank_count)
    assert found.least_inverse_rate <= found.inverse_rate <= found.equal_inverse_rate
    assert 1 / oracles.rank_cut(topology) <= found.inverse_rate


@settings(max_examples=40)
@given(small_tame)
def test_no_shares_are_better_by_flows(topology: Topology) -> None:
    found = solve_shares(topology)
    assert found.is_optimal
    assert float(found.inverse_rate) == pytest.approx(_least_time(topology), rel=1e-6)


@given(any_topologies)
def test_times_are_those_of_all_cuts_and_proven_least(topology: Topology) -> None:
    found = solve_shares(topology)
    _certified(topology, found)
    assert found.inverse_rate <= (1 + shares.WORTH_A_PROGRAM) * found.least_inverse_rate
    assert sum(found.shares) == 1


@given(st.one_of(topologies(maximum_ranks=5, bandwidth=hostile_bandwidths), switchless_topologies(maximum_ranks=5)))
def test_hostile_bandwidths(topology: Topology) -> None:
    found = solve_shares(topology)
    _certified(topology, found)
    assert found.inverse_rate <= found.equal_inverse_rate
    bandwidths = [link.bandwidth for link in topology.links]
    if max(bandwidths) < 10**9 * min(bandwidths):
        # Beyond that the linear program's floats cannot tell the links apart, and no proof is promised.
        assert found.inverse_rate <= (1 + shares.WORTH_A_PROGRAM) * found.least_inverse_rate


@given(st.one_of(clusters(), clusters(sizes=LARGE_CLUSTERS), shapes()))
def test_links_alike_both_ways_need_no_program(topology: Topology) -> None:
    with patch.object(shares, "solve_duplex", side_effect=AssertionError("no linear program is needed")):
        found = solve_shares(topology)
    assert found.is_optimal
    verify_shares(topology, found)
    assert (set(found.weights) == {1}) == (found.inverse_rate == found.equal_inverse_rate)


@given(clusters(), st.data())
def test_the_rate_does_not_depend_on_names(topology: Topology, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(topology.vertices))))
    found = solve_shares(topology)
    assert solve_shares(reordered(topology, order)) == found or (
        solve_shares(reordered(topology, order)).inverse_rate == found.inverse_rate
    )


@given(any_topologies)
def test_turning_all_links_round_changes_no_rate(topology: Topology) -> None:
    found, turned = solve_shares(topology), solve_shares(reversed_topology(topology))
    if found.is_optimal and turned.is_optimal:
        assert found.inverse_rate == turned.inverse_rate


@given(any_topologies, st.data())
def test_bad_proposals_cost_no_correctness(topology: Topology, data: st.DataObject) -> None:
    weights = [Fraction(data.draw(st.integers(0, 5))) for _ in range(topology.rank_count - 1)]
    price = data.draw(st.fractions(Fraction(1, 9), 9))
    proposal = [*weights, Fraction(1)], [(phase, (0,), price) for phase in (0, 1)]
    with patch.object(shares, "solve_duplex", return_value=proposal):
        _certified(topology, solve_shares(topology))


@given(any_topologies, st.data())
def test_any_first_family_leads_to_the_same_filling(topology: Topology, data: st.DataObject) -> None:
    network = build_network(topology)
    ranks = data.draw(st.permutations(range(topology.rank_count)))
    end = data.draw(st.integers(1, topology.rank_count - 1))
    alone = fill_shares(network, tuple((rank,) for rank in ranks))
    halves = fill_shares(network, (tuple(ranks[:end]), tuple(ranks[end:])))
    assert halves.total == alone.total == sum(halves.shares)
    assert halves.shares == alone.shares


@given(balanced_topologies)
def test_exact_trees_reach_the_rate(topology: Topology) -> None:
    found = solve_shares(topology)
    choice = choose_demand(topology, Collective.ALLREDUCE, None, "auto", Fraction(1, 50), False)
    assert choice.optima[0].weights == found.weights
    total = sum(found.weights) * max(optimum.trees_per_root for optimum in choice.optima)
    if total > MAXIMUM_TREES:
        return
    choice = choose_demand(topology, Collective.ALLREDUCE, None, "exact", Fraction(0), False)
    if sum(choice.demand) > MAXIMUM_TREES:
        return
    assert choice.loss == 0
    times = list(zip(phases(Collective.ALLREDUCE), choice.time_units, strict=True))
    forests = build_forests(topology, choice.demand, times)
    for forest in forests:
        verify_forest(topology, forest)
    loads = sum((forest_load(topology, forest) for forest in forests), Fraction(0))
    assert loads / sum(choice.demand) == found.inverse_rate


def test_a_false_certificate_is_found_out() -> None:
    links = {(0, 3): 2, (3, 0): 2, (1, 3): 2, (3, 1): 2, (2, 3): 1, (3, 2): 1}
    topology = make_topology(3, 1, {ends: Fraction(bandwidth) for ends, bandwidth in links.items()})
    found = solve_shares(topology)
    verify_shares(topology, found)
    spoiled = [
        {"least_inverse_rate": found.least_inverse_rate * Fraction(1001, 1000)},
        {"certificate": found.certificate[1:]},
        {"certificate": tuple(msgspec.structs.replace(cut, price=2 * cut.price) for cut in found.certificate)},
        {"certificate": tuple(msgspec.structs.replace(cut, price=-cut.price) for cut in found.certificate)},
        {"certificate": tuple(msgspec.structs.replace(cut, part=(9,)) for cut in found.certificate)},
        {"certificate": tuple(msgspec.structs.replace(cut, part=(3,)) for cut in found.certificate)},
    ]
    for change in spoiled:
        with pytest.raises(VerificationError):
            verify_shares(topology, msgspec.structs.replace(found, **change))


@given(st.lists(st.fractions(-3, 3, max_denominator=4), min_size=1, max_size=5), st.data())
def test_equations(solution: list[Fraction], data: st.DataObject) -> None:
    unknowns = range(len(solution))
    coefficients = st.lists(st.fractions(-2, 2, max_denominator=3), min_size=len(solution), max_size=len(solution))
    rows = [dict(enumerate(row)) for row in data.draw(st.lists(coefficients, max_size=7))]
    system = [(row, sum((row[i] * solution[i] for i in unknowns), Fraction(0))) for row in rows]
    found = solve_equations(system, unknowns)
    assert found is None or found == dict(enumerate(solution))
    unit = [({i: Fraction(2)}, 2 * solution[i]) for i in unknowns]
    assert solve_equations([*system, *unit], unknowns) == dict(enumerate(solution))
    assert solve_equations([*unit, ({0: Fraction(1)}, solution[0] + 1)], unknowns) is None
    assert solve_equations(unit[1:], unknowns) is None
