"""What guards determinism works: it sees an output that depends on the hash seed."""

from __future__ import annotations

import pytest

from tests.determinism import assert_same_output


def test_a_set_of_words_is_caught() -> None:
    with pytest.raises(AssertionError, match="PYTHONHASHSEED"):
        assert_same_output("print(set('abcdefghijklmnop'))")


def test_a_sorted_set_passes() -> None:
    assert assert_same_output("print(sorted(set('ab')))") == b"['a', 'b']\n"
