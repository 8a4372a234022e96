"""The optimum's checker: a cut that is right, and each way in which it can lie."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import msgspec
import pytest

from forestsyn.errors import VerificationError
from forestsyn.ir.forest import Direction, Optimum
from forestsyn.ir.network import Cut
from forestsyn.verify.optimum import verify_optimum
from tests.samples import small_topology
from tests.strategies import reordered, reversed_topology

# Ranks g1 and g2 (each 2 GB/s up): weight 2 leaves over 4 GB/s with the switch outside.
GOOD = Optimum(
    direction=Direction.OUT,
    weights=(1, 1, 1),
    inverse_rate=Fraction(1, 2),
    trees_per_root=1,
    cut=Cut(inside=(1, 2), demand=Fraction(2), bandwidth=Fraction(4)),
)


def _changed(cut: dict[str, Any] | None = None, **changes: Any) -> Optimum:
    return msgspec.structs.replace(GOOD, cut=msgspec.structs.replace(GOOD.cut, **(cut or {})), **changes)


LIES = {
    "bandwidth": (_changed({"bandwidth": Fraction(5)}), r"claims 5 GB/s across, its links have 4"),
    "demand": (_changed({"demand": Fraction(1)}), r"claims a root weight of 1 inside, its ranks have 2"),
    "rate": (_changed(inverse_rate=Fraction(1, 3)), r"inverse rate is 1/3, its cut proves 2 / 4"),
    "direction": (_changed(direction=Direction.IN), r"its links have 5"),
    "all ranks": (_changed({"inside": (0, 1, 2)}), r"holds every rank"),
    "no weight": (_changed(weights=(1, 0, 0)), r"no rank inside the cut has a root weight"),
    "switch only": (_changed({"inside": (3,)}), r"no rank inside"),
    "unsorted": (_changed({"inside": (2, 1)}), r"not sorted"),
    "out of range": (_changed({"inside": (1, 4)}), r"holds vertex 4, of 4"),
    "too few weights": (_changed(weights=(1, 1)), r"2 root weights for 3 ranks"),
    "no weights": (_changed(weights=(0, 0, 0)), r"at least 0 and one of them more"),
    "no trees": (_changed(trees_per_root=0), r"trees_per_root is 0"),
}


def test_a_true_cut_is_accepted() -> None:
    verify_optimum(small_topology(), GOOD)
    verify_optimum(reversed_topology(small_topology()), _changed(direction=Direction.IN))


def test_ids_number_the_ranks_first() -> None:
    verify_optimum(reordered(small_topology(), [3, 2, 0, 1]), GOOD)
    with_switch = _changed(
        {"inside": (1, 2, 3), "bandwidth": Fraction(2)},
        inverse_rate=Fraction(1),
    )
    verify_optimum(reordered(small_topology(), [3, 2, 0, 1]), with_switch)


@pytest.mark.parametrize("name", LIES)
def test_a_lie_is_rejected(name: str) -> None:
    optimum, message = LIES[name]
    with pytest.raises(VerificationError, match=message):
        verify_optimum(small_topology(), optimum)
