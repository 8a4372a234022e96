"""A good compact forest with one thing wrong, mostly in its turn: the checker rejects each and says what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import msgspec
import numpy as np
import pytest

from forestsyn.errors import VerificationError
from forestsyn.ir.forest import Forest
from forestsyn.ir.topology import Topology
from forestsyn.ir.turns import expanded
from forestsyn.verify.forest import verify_forest
from tests.compact import RING_TURN, ring_forest, ring_topology
from tests.strategies import make_links


def _changed(**changes: Any) -> Forest:
    return msgspec.structs.replace(ring_forest(), **changes)


def _turned(turn: list[int], turns: int = 3) -> Forest:
    return _changed(turn=np.array(turn, dtype=np.int32), turns=turns)


HUGE = 2**62
ROTATED_TWICE = [4, 5, 0, 1, 2, 3]
MUTANTS = {
    "a vertex hit twice": (_turned([2, 3, 4, 5, 0, 0]), r"not a permutation: it maps nothing to g1"),
    "an image that does not exist": (_turned([2, 3, 4, 5, 0, 6]), r"not a permutation: it maps nothing to g1"),
    "an image below 0": (_turned([2, 3, 4, 5, 0, -5]), r"not a permutation"),
    "a turn too short": (_turned([2, 3, 4, 0, 1]), r"turn is int32\[5\], expected integers of shape \[6\]"),
    "a turn of reals": (_changed(turn=np.array(RING_TURN, dtype=float)), r"turn is float64\[6\]"),
    "no automorphism": (
        _turned([1, 2, 3, 4, 5, 0], 6),
        r"g1 -> g0, which is in use, to g2 -> g1, which does not",
    ),
    "backwards in one lane": (
        _turned([2, 5, 4, 1, 0, 3]),
        r"g0 -> g1, which is in use, to g2 -> g5, which does",
    ),
    "a host left in place": (
        _turned([0, 1, 4, 5, 2, 3], 2),
        r"g0 -> g2, which is in use, to g0 -> g4, which does",
    ),
    "too few turns": (_turned([*RING_TURN], 2), r"it has 2 turns, the turn is the identity after 3"),
    "too many turns": (_turned([*RING_TURN], 6), r"it has 6 turns, the turn is the identity after 3"),
    "no turns": (_turned([*RING_TURN], 0), r"it has 0 turns"),
    "turns without a turn": (_changed(turn=None), r"it has 3 turns and no turn, expected 1"),
    "a base alone": (_changed(turn=None, turns=1), r"root 2 \(g2\) has 0 trees, its demand is 1"),
    "the identity": (_turned([0, 1, 2, 3, 4, 5], 1), r"root 2 \(g2\) has 0 trees, its demand is 1"),
    "roots that coincide": (_turned([1, 0, 3, 2, 5, 4], 2), r"root 0 \(g0\) has 2 trees, its demand is 1"),
    "another demand": (_changed(demand=(1, 1, 1, 1, 2, 1)), r"root 4 \(g4\) has 1 trees, its demand is 2"),
    "the same root twice": (_changed(multiplicities=np.array([1, 2])), r"root 3 \(g3\) has 2 trees, its demand is 1"),
    "too little time": (_changed(time_units=Fraction(9, 10)), r"link g4 -> g5 carries 3 trees, its limit is 27/10"),
    "all trees twice": (
        _changed(demand=(2,) * 6, multiplicities=np.array([2, 2])),
        r"link g4 -> g0 carries 4 trees, its limit is 5/2",
    ),
    "a load beyond 64 bits": (
        _changed(demand=(HUGE,) * 6, multiplicities=np.full(2, HUGE)),
        rf"link g0 -> g1 carries {3 * HUGE} trees",
    ),
}


def _with_bandwidths(changes: Mapping[tuple[int, int], int]) -> Topology:
    links = {(link.tail, link.head): link.bandwidth for link in ring_topology().links}
    for ends, bandwidth in changes.items():
        links[ends] = Fraction(bandwidth)
    return msgspec.structs.replace(ring_topology(), links=make_links(links))


def test_the_original_is_accepted() -> None:
    verify_forest(ring_topology(), ring_forest())
    verify_forest(ring_topology(), expanded(ring_forest()))
    verify_forest(ring_topology(), _turned(ROTATED_TWICE))


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_rejected(name: str) -> None:
    forest, message = MUTANTS[name]
    with pytest.raises(VerificationError, match=message):
        verify_forest(ring_topology(), forest)


def test_an_image_with_less_bandwidth_is_overloaded() -> None:
    """Each link's own bandwidth is compared with its load, whatever the links it is an image of have."""
    with pytest.raises(VerificationError, match=r"g2 -> g3"):
        verify_forest(_with_bandwidths({(2, 3): Fraction(1, 100)}), ring_forest())
    verify_forest(_with_bandwidths({(2, 3): 7}), ring_forest())


def test_a_link_that_no_tree_uses_needs_no_image() -> None:
    verify_forest(_with_bandwidths({(1, 2): 7}), ring_forest())


def test_a_rank_is_no_relay() -> None:
    """The same network with two relays: the turn would let trees end where no data is wanted."""
    topology = msgspec.structs.replace(ring_topology(), ranks=(0, 1, 2, 3))
    forest = ring_forest()
    smaller = msgspec.structs.replace(
        forest, parents=forest.parents[:, :4], edge_routes=forest.edge_routes[:, :4], demand=(1,) * 4, rank_count=4
    )
    with pytest.raises(VerificationError, match=r"maps rank g2 to g4, which is not a rank"):
        verify_forest(topology, smaller)
