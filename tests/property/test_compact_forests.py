"""Compact forests: everything that is said of one without writing it out is true of the forest written out."""

from __future__ import annotations

from fractions import Fraction

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from forestsyn.errors import VerificationError
from forestsyn.ir.forest import Forest
from forestsyn.ir.topology import Topology
from forestsyn.ir.turns import cycles_of, expanded, peers_per_rank
from forestsyn.verify.forest import forest_load, link_loads, verify_forest
from tests.compact import compact_forests


@given(compact_forests())
def test_figures_are_those_of_the_whole(case: tuple[Topology, Forest]) -> None:
    topology, forest = case
    whole = expanded(forest)
    verify_forest(topology, forest)
    verify_forest(topology, whole)
    assert whole.turn is None
    assert whole.tree_count == forest.tree_count
    assert whole.depth == forest.depth
    assert link_loads(topology, whole) == link_loads(topology, forest)
    assert forest_load(topology, whole) == forest_load(topology, forest) == forest.time_units
    assert peers_per_rank([forest]).tolist() == _peers([whole])


@given(compact_forests(), st.data())
def test_changes_are_rejected_alike(case: tuple[Topology, Forest], data: st.DataObject) -> None:
    """Less time, other demand, other base: compact and whole pass or fail together, with the same words where the
    fault is in the sums."""
    topology, forest = case
    kind = data.draw(st.sampled_from(["time", "demand", "trees"]))
    if kind == "time":
        forest = msgspec.structs.replace(forest, time_units=forest.time_units * Fraction(99, 100))
    elif kind == "demand":
        demand = list(forest.demand)
        demand[data.draw(st.integers(0, len(demand) - 1))] += data.draw(st.integers(0, 1))
        forest = msgspec.structs.replace(forest, demand=tuple(demand))
    else:
        multiplicities = forest.multiplicities + data.draw(st.integers(0, 1))
        forest = msgspec.structs.replace(forest, multiplicities=multiplicities)
    assert _violations(topology, forest) == _violations(topology, expanded(forest))


@given(compact_forests(), st.data())
def test_a_turn_with_two_images_exchanged(case: tuple[Topology, Forest], data: st.DataObject) -> None:
    """What is still accepted must really be a forest."""
    topology, forest = case
    assert forest.turn is not None
    turn = forest.turn.copy()
    vertices = st.integers(0, len(turn) - 1)
    first, second = data.draw(vertices), data.draw(vertices)
    turn[[first, second]] = turn[[second, first]]
    turns = int(np.lcm.reduce(cycles_of(turn).lengths))
    changed = msgspec.structs.replace(forest, turn=turn, turns=turns)
    try:
        verify_forest(topology, changed)
    except VerificationError:
        return
    verify_forest(topology, expanded(changed))


@given(compact_forests(), st.data())
def test_phases_that_share_no_turn(case: tuple[Topology, Forest], data: st.DataObject) -> None:
    _, forest = case
    other = data.draw(st.sampled_from([forest, expanded(forest), _another_base(forest)]))
    forests = data.draw(st.permutations([forest, other]))
    assert peers_per_rank(forests).tolist() == _peers([expanded(forest) for forest in forests])


@given(st.permutations(range(9)))
def test_cycles(permutation: list[int]) -> None:
    cycles = cycles_of(np.array(permutation))
    first = np.cumsum(cycles.lengths) - cycles.lengths
    assert cycles.lengths.sum() == 9
    for element, image in enumerate(permutation):
        number, position = int(cycles.numbers[element]), int(cycles.positions[element])
        assert cycles.members[first[number] + position] == element
        assert cycles.numbers[image] == number
        assert cycles.positions[image] == (position + 1) % cycles.lengths[number]
    least = [int(cycles.members[start]) for start in first]
    assert least == sorted(least)


def _another_base(forest: Forest) -> Forest:
    """As many trees of the whole, again as a base of the same turn."""
    whole = expanded(forest)
    rows = len(forest.roots)
    return msgspec.structs.replace(
        forest,
        roots=whole.roots[:rows],
        multiplicities=whole.multiplicities[:rows],
        parents=whole.parents[:rows],
        edge_routes=whole.edge_routes[:rows],
        routes=whole.routes,
    )


def _peers(forests: list[Forest]) -> list[int]:
    peers: list[set[int]] = [set() for _ in range(forests[0].rank_count)]
    for forest in forests:
        for parents in forest.parents.tolist():
            for rank, parent in enumerate(parents):
                if parent >= 0:
                    peers[rank].add(parent)
                    peers[parent].add(rank)
    return [len(others) for others in peers]


def _violations(topology: Topology, forest: Forest) -> tuple[str, ...]:
    try:
        verify_forest(topology, forest)
    except VerificationError as error:
        return error.violations
    return ()
