"""Whatever stands in the file, only deliberate errors come out."""

from __future__ import annotations

import contextlib
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from forestsyn.errors import ForestsynError
from forestsyn.frontend import load_topology, parse_topology

ROOT = Path(__file__).parents[2]
TEXTS = [
    path.read_text(encoding="utf-8")
    for folder in ("forestsyn/machines", "tests/data/topologies")
    for path in sorted((ROOT / folder).glob("*.yaml"))
]
PIECES = [*'{}[]:,*&!"|#%?/.-x9', "\n", "  ", "..", "gpu*", "{N}", "0", "-1", "99999999999", "1e5", "null", "true"]
EDITS = st.tuples(st.integers(0, 5000), st.integers(0, 12), st.sampled_from(PIECES) | st.text(max_size=3))


def _survives(text: str) -> None:
    with contextlib.suppress(ForestsynError):
        parse_topology(text, source="fuzz.yaml")


@settings(max_examples=150)
@given(st.sampled_from(TEXTS), st.lists(EDITS, min_size=1, max_size=4))
def test_edited_files(text: str, edits: list[tuple[int, int, str]]) -> None:
    for start, length, piece in edits:
        start %= len(text) + 1
        text = text[:start] + piece + text[start + length :]
    _survives(text)


@settings(max_examples=100)
@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    _survives(text)
    _survives("forestsyn: 1\n" + text)


@settings(max_examples=100)
@given(st.text(max_size=30) | st.from_regex(r"[a-z0-9-]{1,12}:[0-9x]{0,8}", fullmatch=True))
def test_any_name(spec: str) -> None:
    with contextlib.suppress(ForestsynError):
        load_topology(spec)
