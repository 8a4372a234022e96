"""A good forest with one thing wrong: the checker rejects each and says what is wrong."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import msgspec
import numpy as np
import pytest

from forestsyn.errors import VerificationError
from forestsyn.ir.forest import Direction, Forest
from forestsyn.verify.forest import verify_forest
from tests.samples import small_forest, small_topology


def _changed(**changes: Any) -> Forest:
    return msgspec.structs.replace(small_forest(), **changes)


def _with_cell(field: str, index: Any, value: int) -> Forest:
    array = getattr(small_forest(), field).copy()
    array[index] = value
    return _changed(**{field: array})


def _with_route(number: int, route: tuple[int, ...]) -> Forest:
    routes = list(small_forest().routes)
    routes[number] = route
    return _changed(routes=tuple(routes))


HUGE = 2**62
MUTANTS = {
    "a cycle": (_with_cell("parents", (0, 1), 2), r"tree 0 .* rank 1 .* cycle"),
    "its own parent": (_with_cell("parents", (0, 2), 2), r"tree 0 .* rank 2 .* cycle"),
    "an orphan": (_with_cell("parents", (0, 2), -1), r"tree 0 gives rank 2 no parent"),
    "a root with a parent": (_with_cell("parents", (0, 0), 1), r"tree 0 gives its root, rank 0, a parent"),
    "an edge without route": (_with_cell("edge_routes", (0, 2), -1), r"tree 0 gives rank 2 no route"),
    "a parent that does not exist": (_with_cell("parents", (1, 2), 3), r"rank 2 the parent 3, of 3"),
    "a route that does not exist": (_with_cell("edge_routes", (1, 2), 4), r"rank 2 the route 4, of 4"),
    "a root that does not exist": (_with_cell("roots", 2, 7), r"tree 2 has root 7"),
    "another root": (_with_cell("roots", 2, 0), r"gives its root, rank 0, a parent"),
    "a tree too many": (_with_cell("multiplicities", 0, 2), r"root 0 \(g0\) has 2 trees, its demand is 1"),
    "no tree": (_with_cell("multiplicities", 0, 0), r"tree 0 has multiplicity 0"),
    "less than no tree": (_with_cell("multiplicities", 0, -1), r"tree 0 has multiplicity -1"),
    "too little time": (
        _changed(time_units=Fraction(99, 100)),
        r"link g0 -> g1 carries 1 trees, its limit is 99/100",
    ),
    "no time": (_changed(time_units=Fraction(0)), r"time units are 0"),
    "all trees twice": (
        _changed(demand=(2, 2, 2), multiplicities=np.full(3, 2, dtype=np.int64)),
        r"link g1 -> sw0 carries 4 trees, its limit is 2",
    ),
    "a load beyond 64 bits": (
        _changed(demand=(HUGE, HUGE, HUGE), multiplicities=np.full(3, HUGE, dtype=np.int64)),
        rf"link g1 -> sw0 carries {2 * HUGE} trees",
    ),
    "a route between other ranks": (
        _with_cell("edge_routes", (0, 2), 2),
        r"tree 0 sends rank 1 -> rank 2 on route 2, which leads g2 -> g0",
    ),
    "a link that does not exist": (_with_route(1, (1, 2)), r"route 1 uses the link g1 -> g2, which does not exist"),
    "a link the wrong way": (_with_route(0, (1, 0)), r"link g1 -> g0, which does not exist"),
    "a route through a rank": (_with_route(3, (0, 3, 2, 3, 1)), r"route 3 passes through g2, a rank"),
    "a route through nothing": (_with_route(3, (0, 9, 1)), r"route 3 is \(0, 9, 1\)"),
    "a route that goes nowhere": (_with_route(3, (0,)), r"route 3 is \(0,\)"),
    "the other direction": (
        _changed(direction=Direction.IN),
        r"tree 0 sends rank 1 -> rank 0 on route 0, .* g0 -> g1",
    ),
    "another rank count": (_changed(rank_count=4), r"it is for 4 ranks, the topology has 3"),
    "demand for too few": (_changed(demand=(1, 2)), r"demand is for 2 ranks"),
    "no demand": (_changed(demand=(0, 0, 0)), r"more at one"),
    "another shape": (
        _changed(parents=small_forest().parents[:2]),
        r"parents is int32\[2, 3\], expected .* \[3, 3\]",
    ),
    "real numbers": (_changed(multiplicities=np.ones(3)), r"multiplicities is float64"),
}


def test_the_original_is_accepted() -> None:
    verify_forest(small_topology(), small_forest())


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_rejected(name: str) -> None:
    forest, message = MUTANTS[name]
    with pytest.raises(VerificationError, match=message):
        verify_forest(small_topology(), forest)
