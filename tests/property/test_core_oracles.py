"""The oracles and strategies themselves, on values known from papers or by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given

from forestsyn.ir.forest import Direction
from forestsyn.ir.topology import Topology, VertexKind
from tests import oracles
from tests.samples import small_topology
from tests.strategies import any_topologies, make_topology, reversed_topology, topologies


def _switch(ranks: int, bandwidth: int) -> Topology:
    links = {(rank, ranks): Fraction(bandwidth) for rank in range(ranks)}
    return make_topology(ranks, 1, links | {(head, tail): value for (tail, head), value in links.items()})


@pytest.mark.parametrize("ranks", [2, 3, 5, 8])
def test_one_switch(ranks: int) -> None:
    topology = _switch(ranks, 300)
    assert oracles.optimum(topology, [1] * ranks, Direction.OUT) == Fraction(ranks - 1, 300)
    assert oracles.optimum(topology, [1] + [0] * (ranks - 1), Direction.OUT) == Fraction(1, 300)
    assert oracles.trees_per_root(topology, [1] * ranks, Direction.OUT, 3) == 1
    assert oracles.rank_cut(topology) == 300


def test_one_way_ring() -> None:
    ring = make_topology(4, 0, {(rank, (rank + 1) % 4): Fraction(2) for rank in range(4)})
    for direction in Direction:
        assert oracles.optimum(ring, [1] * 4, direction) == Fraction(3, 2)
        assert oracles.time_units(ring, [1] * 4, direction) == Fraction(3, 2)


def test_broken_ring_has_no_optimum() -> None:
    assert oracles.optimum(make_topology(2, 0, {(0, 1): Fraction(1)}), [1, 1], Direction.OUT) is None


def test_floors_make_the_rate_depend_on_the_number_of_trees() -> None:
    topology = make_topology(2, 0, {(0, 1): Fraction(2), (1, 0): Fraction(3)})
    assert oracles.optimum(topology, [1, 1], Direction.OUT) == Fraction(1, 2)
    assert oracles.time_units(topology, [1, 1], Direction.OUT) == Fraction(1, 2)
    assert oracles.time_units(topology, [1, 3], Direction.OUT) == 1
    assert oracles.time_units(small_topology(), [1, 1, 1], Direction.OUT) == 1


@given(topologies())
def test_sums_of_cycles_are_balanced(topology: Topology) -> None:
    excess = [Fraction(0)] * len(topology.vertices)
    for link in topology.links:
        excess[link.tail] -= link.bandwidth
        excess[link.head] += link.bandwidth
    assert not any(excess)
    assert all(topology.vertices[rank].kind is VertexKind.GPU for rank in topology.ranks)


@given(any_topologies)
def test_every_topology_is_feasible_and_reverses(topology: Topology) -> None:
    weights = [1] * topology.rank_count
    inward = oracles.optimum(topology, weights, Direction.IN)
    assert inward is not None
    assert inward == oracles.optimum(reversed_topology(topology), weights, Direction.OUT)
