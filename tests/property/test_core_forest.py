"""Time units and forests of the core against brute force and the independent checker."""

from __future__ import annotations

from fractions import Fraction

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from forestsyn import core
from forestsyn.errors import InputError, UnsupportedError
from forestsyn.ir.forest import Direction, Forest
from forestsyn.ir.topology import Topology
from forestsyn.verify.forest import forest_load, verify_forest
from forestsyn.verify.optimum import verify_optimum
from tests import oracles
from tests.determinism import assert_same_output
from tests.strategies import (
    LARGE_CLUSTERS,
    any_topologies,
    balanced_topologies,
    bandwidths,
    clusters,
    demands,
    hostile_bandwidths,
    reversed_topology,
    switchless_topologies,
    tame_bandwidths,
    topologies,
    unbalanced_topologies,
)

directions = st.sampled_from(Direction)
MAXIMUM_EXACT_TREES = 10**6


@given(switchless_topologies(maximum_ranks=5), directions, st.data())
def test_time_units_equal_brute_force_without_switches(
    topology: Topology, direction: Direction, data: st.DataObject
) -> None:
    demand = data.draw(demands(topology.rank_count))
    assert core.solve_time_units(topology, demand, direction) == oracles.time_units(topology, demand, direction)


@given(any_topologies, directions, st.data())
def test_forests_verify_and_never_beat_the_cuts(
    topology: Topology, direction: Direction, data: st.DataObject
) -> None:
    demand = data.draw(demands(topology.rank_count))
    forest = core.build_forest(topology, demand, direction)
    verify_forest(topology, forest)
    _is_canonical(forest)
    assert forest.demand == demand
    assert forest.time_units == core.solve_time_units(topology, demand, direction)
    assert forest.time_units >= oracles.time_units(topology, demand, direction)
    assert forest_load(topology, forest) <= forest.time_units


@given(balanced_topologies, directions, st.data())
def test_the_exact_number_of_trees_reaches_the_optimum(
    topology: Topology, direction: Direction, data: st.DataObject
) -> None:
    weights = data.draw(demands(topology.rank_count, maximum=2))
    optimum = core.solve_optimum(topology, weights, direction)
    demand = tuple(optimum.trees_per_root * weight for weight in weights)
    if sum(demand) > MAXIMUM_EXACT_TREES:
        return
    time_units = optimum.trees_per_root * optimum.inverse_rate
    assert core.solve_time_units(topology, demand, direction) == time_units
    forest = core.build_forest(topology, demand, direction)
    verify_forest(topology, forest)
    assert forest.algbw == optimum.algbw
    assert forest_load(topology, forest) == time_units


@given(topologies(maximum_ranks=6, bandwidth=hostile_bandwidths), directions)
def test_hostile_bandwidths_work_exactly_or_are_refused(topology: Topology, direction: Direction) -> None:
    weights = (1,) * topology.rank_count
    optimum = core.solve_optimum(topology, weights, direction)
    try:
        forest = core.build_forest(topology, (optimum.trees_per_root,) * topology.rank_count, direction)
    except (UnsupportedError, InputError):
        return
    verify_forest(topology, forest)
    assert forest.algbw == optimum.algbw


@settings(max_examples=max(settings().max_examples // 3, 1))
@given(clusters(sizes=LARGE_CLUSTERS), directions, st.integers(1, 2))
def test_clusters_beyond_brute_force(topology: Topology, direction: Direction, count: int) -> None:
    """The cut proves that nothing is better and the forest that this much is reached: no oracle is needed."""
    optimum = core.solve_optimum(topology, (1,) * topology.rank_count, direction)
    verify_optimum(topology, optimum)
    few = core.build_forest(topology, (count,) * topology.rank_count, direction)
    verify_forest(topology, few)
    assert few.algbw <= optimum.algbw
    if optimum.trees_per_root <= MAXIMUM_EXACT_TREES:
        exact = core.build_forest(topology, (optimum.trees_per_root,) * topology.rank_count, direction)
        verify_forest(topology, exact)
        assert exact.algbw == optimum.algbw


@given(balanced_topologies, st.integers(1, 3), directions)
def test_more_time_than_needed_is_accepted(topology: Topology, count: int, direction: Direction) -> None:
    demand = (count,) * topology.rank_count
    time_units = core.solve_time_units(topology, demand, direction) * 2
    forest = core.build_forest(topology, demand, direction, time_units)
    verify_forest(topology, forest)
    assert forest.time_units == time_units


@given(unbalanced_topologies(), directions)
def test_unbalanced_switches_are_packed_within_the_links(topology: Topology, direction: Direction) -> None:
    forest = core.build_forest(topology, (2,) * topology.rank_count, direction)
    verify_forest(topology, forest)


@given(topologies(bandwidth=tame_bandwidths), bandwidths)
def test_scaling_all_bandwidths_scales_the_rate(topology: Topology, factor: Fraction) -> None:
    links = tuple(msgspec.structs.replace(link, bandwidth=link.bandwidth * factor) for link in topology.links)
    demand = (1,) * topology.rank_count
    first = core.build_forest(topology, demand, Direction.OUT)
    second = core.build_forest(msgspec.structs.replace(topology, links=links), demand, Direction.OUT)
    assert second.algbw == first.algbw * factor


@given(topologies(bandwidth=tame_bandwidths), directions)
def test_renaming_changes_nothing_in_the_forest(topology: Topology, direction: Direction) -> None:
    vertices = tuple(
        msgspec.structs.replace(vertex, name=f"v{len(topology.vertices) - number}")
        for number, vertex in enumerate(topology.vertices)
    )
    demand = (1,) * topology.rank_count
    first = core.build_forest(topology, demand, direction)
    second = core.build_forest(msgspec.structs.replace(topology, vertices=vertices), demand, direction)
    assert _as_data(first) == _as_data(second) == _as_data(core.build_forest(topology, demand, direction))


@given(any_topologies, st.data())
def test_a_reduction_takes_the_time_of_the_reversed_network(topology: Topology, data: st.DataObject) -> None:
    demand = data.draw(demands(topology.rank_count))
    inward = core.solve_time_units(topology, demand, Direction.IN)
    assert inward == core.solve_time_units(reversed_topology(topology), demand, Direction.OUT)


def test_forests_do_not_depend_on_the_hash_seed() -> None:
    assert_same_output(
        "from fractions import Fraction as F\n"
        "from forestsyn import core\n"
        "from forestsyn.ir.forest import Direction\n"
        "from tests.strategies import make_topology\n"
        "links = {(r, 8 + s): F(3 + s) for r in range(8) for s in (r // 4, 2)}\n"
        "links |= {(h, t): b for (t, h), b in links.items()}\n"
        "forest = core.build_forest(make_topology(8, 3, links), (2,) * 8, Direction.OUT)\n"
        "print(forest.parents.tolist(), forest.multiplicities.tolist(), forest.routes, forest.edge_routes.tolist())\n"
    )


def _is_canonical(forest: Forest) -> None:
    """Rows are sorted by (root, descending multiplicity, parents) and no tree with its routes is given twice."""
    keys = [
        (int(root), -int(multiplicity), parents.tolist())
        for root, multiplicity, parents in zip(forest.roots, forest.multiplicities, forest.parents, strict=True)
    ]
    assert keys == sorted(keys)
    trees = np.concatenate([forest.roots[:, None], forest.parents, forest.edge_routes], axis=1)
    assert len(np.unique(trees, axis=0)) == len(trees)


def _as_data(forest: Forest) -> list[object]:
    arrays = (forest.roots, forest.multiplicities, forest.parents, forest.edge_routes)
    return [forest.routes, forest.demand, forest.time_units, *(array.tolist() for array in arrays)]
