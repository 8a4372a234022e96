"""Cycles, peers and the writing out of a forest that is small enough to check by eye."""

from __future__ import annotations

from fractions import Fraction

import msgspec
import numpy as np

from forestsyn.ir.turns import expanded, peers_per_rank, rank_turn
from forestsyn.verify.forest import forest_load, link_loads, verify_forest
from tests.compact import RING_TURN, ring_forest, ring_topology
from tests.samples import make_forest, small_forest
from tests.strategies import make_topology, reordered


def test_the_ring_of_hosts() -> None:
    whole = expanded(ring_forest())
    assert whole.roots.tolist() == [0, 1, 2, 3, 4, 5]
    assert whole.parents[0].tolist() == ring_forest().parents[0].tolist() == [-1, 0, 0, 2, 2, 4]
    assert whole.parents[2].tolist() == [4, 0, -1, 2, 2, 4]
    assert whole.parents[5].tolist() == [1, 5, 3, 1, 5, -1]
    assert len(whole.routes) == 12
    assert peers_per_rank([ring_forest()]).tolist() == [3] * 6
    assert link_loads(ring_topology(), ring_forest()) == [3, 2, 3, 2, 3, 2, 3, 2, 2, 3, 2, 3]


def test_without_a_turn_nothing_changes() -> None:
    forest = small_forest()
    assert expanded(forest) is forest
    assert rank_turn(forest).tolist() == [0, 1, 2]
    assert peers_per_rank([forest]).tolist() == [2, 2, 2]


def test_ranks_are_no_vertices() -> None:
    order = [3, 0, 5, 1, 4, 2]
    position = {old: new for new, old in enumerate(order)}
    turn = np.array([position[RING_TURN[old]] for old in order], dtype=np.int32)
    routes = tuple(tuple(position[vertex] for vertex in route) for route in ring_forest().routes)
    forest = msgspec.structs.replace(ring_forest(), turn=turn, routes=routes)
    assert rank_turn(forest).tolist() == list(RING_TURN)
    verify_forest(reordered(ring_topology(), order), forest)
    assert expanded(forest).parents.tolist() == expanded(ring_forest()).parents.tolist()


def test_a_star_in_every_place_needs_no_memory_for_pairs() -> None:
    """16,384 ranks on one switch: one star and its turns, every rank a peer of every other."""
    count = 16_384
    parents = np.zeros((1, count), dtype=np.int32)
    parents[0, 0] = -1
    forest = msgspec.structs.replace(
        small_forest(),
        rank_count=count,
        demand=(1,) * count,
        roots=np.zeros(1, dtype=np.int32),
        multiplicities=np.ones(1, dtype=np.int64),
        parents=parents,
        routes=tuple((0, count, rank) for rank in range(1, count)),
        edge_routes=np.arange(-1, count - 1, dtype=np.int32)[None, :],
        turn=np.array([*range(1, count), 0, count], dtype=np.int32),
        turns=count,
    )
    assert peers_per_rank([forest, forest]).tolist() == [count - 1] * count


def test_sums_beyond_64_bits_are_exact() -> None:
    """The base alone fits; 40 turns of it, on a link that every turn leaves in place, do not."""
    switches = {(2 + step, 2 + (step + 1) % 40): Fraction(1) for step in range(40)}
    topology = make_topology(2, 40, {(0, 1): Fraction(1), (1, 0): Fraction(1), **switches})
    forest = msgspec.structs.replace(
        make_forest(2, [(0, 1)], [(0, 2**60, {1: 0}, {1: 0})]),
        demand=(40 * 2**60, 0),
        time_units=Fraction(40 * 2**60),
        turn=np.array([0, 1, *(2 + (step + 1) % 40 for step in range(40))], dtype=np.int32),
        turns=40,
    )
    verify_forest(topology, forest)
    assert forest_load(topology, forest) == 40 * 2**60
