"""The forest's checker on forests that are right, and the load that it measures."""

from __future__ import annotations

from fractions import Fraction

import msgspec
import numpy as np
import pytest

from forestsyn.errors import VerificationError
from forestsyn.ir.forest import Direction
from forestsyn.verify.forest import forest_load, verify_forest
from tests.samples import make_forest, small_forest, small_topology
from tests.strategies import make_topology, reordered, reversed_topology


def test_load_is_the_time_that_the_fullest_link_needs() -> None:
    assert forest_load(small_topology(), small_forest()) == 1
    forest = msgspec.structs.replace(small_forest(), multiplicities=np.array([1, 5, 1]))
    assert forest_load(small_topology(), forest) == 3


def test_load_beyond_64_bits_is_exact() -> None:
    huge = np.full(3, 2**62, dtype=np.int64)
    assert forest_load(small_topology(), msgspec.structs.replace(small_forest(), multiplicities=huge)) == 2**62
    huge += 1
    assert forest_load(small_topology(), msgspec.structs.replace(small_forest(), multiplicities=huge)) == 2**62 + 1


def test_in_trees_are_out_trees_of_the_reversed_network() -> None:
    forest = small_forest()
    routes = tuple(route[::-1] for route in forest.routes)
    reversed_forest = msgspec.structs.replace(forest, direction=Direction.IN, routes=routes)
    verify_forest(reversed_topology(small_topology()), reversed_forest)
    with pytest.raises(VerificationError):
        verify_forest(small_topology(), reversed_forest)


def test_routes_speak_of_vertices_not_of_ranks() -> None:
    order = [3, 2, 0, 1]
    position = {old: new for new, old in enumerate(order)}
    routes = tuple(tuple(position[vertex] for vertex in route) for route in small_forest().routes)
    verify_forest(reordered(small_topology(), order), msgspec.structs.replace(small_forest(), routes=routes))


def test_relays_forward() -> None:
    links = {(0, 2): Fraction(1), (2, 1): Fraction(1), (1, 0): Fraction(1)}
    topology = make_topology(2, 1, links, relays=1)
    verify_forest(topology, make_forest(2, [(0, 2, 1), (1, 0)], [(0, 1, {1: 0}, {1: 0}), (1, 1, {0: 1}, {0: 1})]))


def test_a_link_counts_each_time_a_route_passes_it() -> None:
    links = {(0, 2): 1, (2, 3): 2, (3, 2): 2, (2, 1): 1, (1, 0): 1}
    topology = make_topology(2, 2, {ends: Fraction(bandwidth) for ends, bandwidth in links.items()})
    forest = make_forest(2, [(0, 2, 3, 2, 3, 2, 1)], [(0, 1, {1: 0}, {1: 0})])
    verify_forest(topology, forest)
    assert forest_load(topology, msgspec.structs.replace(forest, multiplicities=np.array([3]))) == 3


def test_violations_are_capped() -> None:
    links = {(rank, other): Fraction(1) for rank in range(40) for other in (40,)}
    links |= {(other, rank): Fraction(1) for rank, other in links}
    topology = make_topology(40, 1, links)
    star = dict.fromkeys(range(1, 40), 0)
    forest = make_forest(40, [(0, 40, 1)], [(0, 1, star, dict.fromkeys(star, 0))])
    with pytest.raises(VerificationError) as caught:
        verify_forest(topology, forest)
    assert len(caught.value.violations) == 20
    assert "20 or more violations" in caught.value.message


def test_a_large_forest_is_checked_whole() -> None:
    count = 256
    links = {(rank, count): Fraction(count) for rank in range(count)}
    links |= {(count, rank): Fraction(count) for rank in range(count)}
    topology = make_topology(count, 1, links)
    routes = [(rank, count, (rank + 1) % count) for rank in range(count)]
    trees = []
    for root in range(count):
        parent = {(root + step) % count: (root + step - 1) % count for step in range(1, count)}
        trees.append((root, 1, parent, parent))  # the route from a rank has the rank's number
    forest = make_forest(count, routes, trees)
    verify_forest(topology, forest)
    forest.parents[count - 1, 7] = 8
    with pytest.raises(VerificationError, match=f"tree {count - 1} "):
        verify_forest(topology, forest)
