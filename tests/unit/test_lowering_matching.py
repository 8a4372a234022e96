"""The matching against all permutations."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from forestsyn.lowering.matching import match_heaviest

matrices = st.tuples(st.integers(1, 5), st.integers(1, 5)).flatmap(
    lambda size: st.lists(
        st.lists(st.integers(0, 6), min_size=size[1], max_size=size[1]), min_size=size[0], max_size=size[0]
    )
)


def heaviest(weights: list[list[int]]) -> int:
    if len(weights) > len(weights[0]):
        weights = [list(column) for column in zip(*weights, strict=True)]
    columns = range(len(weights[0]))
    return max(
        sum(weights[row][column] for row, column in enumerate(choice))
        for choice in permutations(columns, len(weights))
    )


@given(matrices)
def test_weight_is_the_largest(weights: list[list[int]]) -> None:
    pairs = match_heaviest(weights)
    assert len({row for row, _ in pairs}) == len({column for _, column in pairs}) == len(pairs)
    assert all(weights[row][column] > 0 for row, column in pairs)
    assert sum(weights[row][column] for row, column in pairs) == heaviest(weights)


def test_nothing_to_match() -> None:
    assert match_heaviest([]) == []
    assert match_heaviest([[], []]) == []
    assert match_heaviest([[0, 0], [0, 0]]) == []
