"""The optimum of the core against brute force and its certificate."""

from __future__ import annotations

from fractions import Fraction

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forestsyn import core
from forestsyn.errors import InfeasibleError
from forestsyn.ir.forest import Direction
from forestsyn.ir.topology import Topology
from forestsyn.verify.optimum import verify_optimum
from tests import oracles
from tests.strategies import (
    any_topologies,
    balanced_topologies,
    demands,
    hostile_bandwidths,
    make_topology,
    reordered,
    reversed_topology,
    switchless_topologies,
)

directions = st.sampled_from(Direction)


@given(any_topologies, directions, st.data())
def test_equals_brute_force_and_its_cut_recomputes(
    topology: Topology, direction: Direction, data: st.DataObject
) -> None:
    weights = data.draw(demands(topology.rank_count))
    optimum = core.solve_optimum(topology, weights, direction)
    verify_optimum(topology, optimum)
    assert optimum.inverse_rate == oracles.optimum(topology, weights, direction)


@given(switchless_topologies(maximum_ranks=5), directions, st.data())
def test_trees_per_root_reach_the_optimum(topology: Topology, direction: Direction, data: st.DataObject) -> None:
    weights = data.draw(demands(topology.rank_count, maximum=2))
    optimum = core.solve_optimum(topology, weights, direction)
    k = optimum.trees_per_root
    if k <= 40:
        demand = [k * weight for weight in weights]
        assert oracles.time_units(topology, demand, direction) == k * optimum.inverse_rate
    smallest = oracles.trees_per_root(topology, weights, direction, maximum=8)
    assert smallest is None or k == smallest


@given(any_topologies, hostile_bandwidths, directions)
def test_scaling_all_bandwidths_scales_the_rate(topology: Topology, factor: Fraction, direction: Direction) -> None:
    links = tuple(msgspec.structs.replace(link, bandwidth=link.bandwidth * factor) for link in topology.links)
    scaled = msgspec.structs.replace(topology, links=links)
    weights = (1,) * topology.rank_count
    first, second = (core.solve_optimum(each, weights, direction) for each in (topology, scaled))
    assert second.algbw == first.algbw * factor
    assert second.trees_per_root == first.trees_per_root


@given(any_topologies, directions, st.data())
def test_names_and_order_of_vertices_do_not_matter(
    topology: Topology, direction: Direction, data: st.DataObject
) -> None:
    weights = data.draw(demands(topology.rank_count))
    optimum = core.solve_optimum(topology, weights, direction)
    vertices = tuple(msgspec.structs.replace(vertex, name=f"{vertex.name}'") for vertex in topology.vertices[::-1])
    renamed = msgspec.structs.replace(
        topology,
        vertices=tuple(
            msgspec.structs.replace(vertex, name=other.name)
            for vertex, other in zip(topology.vertices, vertices, strict=True)
        ),
    )
    assert core.solve_optimum(renamed, weights, direction) == optimum
    moved = reordered(topology, data.draw(st.permutations(range(len(topology.vertices)))))
    assert core.solve_optimum(moved, weights, direction).inverse_rate == optimum.inverse_rate


@given(any_topologies, st.data())
def test_a_reduction_is_the_reverse_of_the_reversed_network(topology: Topology, data: st.DataObject) -> None:
    weights = data.draw(demands(topology.rank_count))
    inward = core.solve_optimum(topology, weights, Direction.IN)
    outward = core.solve_optimum(reversed_topology(topology), weights, Direction.OUT)
    assert (inward.inverse_rate, inward.trees_per_root) == (outward.inverse_rate, outward.trees_per_root)


@given(balanced_topologies)
def test_bandwidths_far_beyond_64_bits(topology: Topology) -> None:
    factor = Fraction(10**30 + 57, 7)
    links = tuple(msgspec.structs.replace(link, bandwidth=link.bandwidth * factor) for link in topology.links)
    scaled = msgspec.structs.replace(topology, links=(*links[:-1], topology.links[-1]))
    weights = (1,) * topology.rank_count
    optimum = core.solve_optimum(scaled, weights, Direction.OUT)
    verify_optimum(scaled, optimum)
    assert optimum.inverse_rate == oracles.optimum(scaled, weights, Direction.OUT)


@pytest.mark.parametrize(("direction", "weights"), [(Direction.OUT, (1, 1, 1)), (Direction.IN, (0, 0, 1))])
def test_ranks_that_cannot_be_reached_are_named(direction: Direction, weights: tuple[int, ...]) -> None:
    links = {(0, 1): Fraction(1), (1, 0): Fraction(1), (2, 0): Fraction(1)}
    with pytest.raises(InfeasibleError) as caught:
        core.solve_optimum(make_topology(3, 0, links), weights, direction)
    assert "g2" in str(caught.value)
    assert caught.value.cut
