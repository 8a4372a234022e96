"""Numbers with their nouns."""

from __future__ import annotations

import pytest

from forestsyn.units import format_count


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 ranks"), (1, "1 rank"), (2, "2 ranks"), (1024, "1,024 ranks"), (-1, "-1 ranks")]
)
def test_counts(count: int, text: str) -> None:
    assert format_count(count, "rank") == text


def test_another_plural() -> None:
    assert format_count(1, "switch", "switches") == "1 switch"
    assert format_count(3, "switch", "switches") == "3 switches"
    assert format_count(2, "chunk does", "chunks do") == "2 chunks do"
