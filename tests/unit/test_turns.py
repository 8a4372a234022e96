"""Cycles, peers and the writing out of a forest that is small enough to check by eye."""

from __future__ import annotations

import msgspec
import numpy as np

from forestsyn.ir.turns import expanded, peers_per_rank, rank_turn
from forestsyn.verify.forest import link_loads, verify_forest
from tests.compact import RING_TURN, ring_forest, ring_topology
from tests.samples import small_forest
from tests.strategies import reordered


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
