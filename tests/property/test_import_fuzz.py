"""Every reader on rubbish: mutated samples, random text, random bytes. Refused in words or read, never a crash."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forestsyn.errors import InputError
from forestsyn.frontend.imports.kinds import Options, Reader
from forestsyn.frontend.imports.registry import readers
from tests.fuzz.reading import SEEDS, check_bytes, check_text

READERS = readers()
_SIGNS = (
    "\n",
    " ",
    "\t",
    "[",
    "]",
    "{",
    "}",
    '"',
    ":",
    ",",
    "0",
    "-1",
    "9" * 20,
    "1e999",
    "NaN",
    "é",
    "\x00",
    "\x1b[0m",
)
_PIECES = st.sampled_from([*_SIGNS, *[piece for seed in SEEDS.values() for piece in seed.split()][:400]])


@st.composite
def mutated(draw: st.DrawFn, seed: str) -> str:
    """`seed` with some spans cut out, doubled or replaced."""
    text = seed
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(text)))
        stop = draw(st.integers(start, min(len(text), start + 30)))
        middle = draw(st.one_of(st.just(""), _PIECES, st.just(text[start:stop] * 2)))
        text = text[:start] + middle + text[stop:]
    return text


def _seed(reader: Reader) -> str:
    return SEEDS.get(reader.kind, "".join(list(SEEDS.values())[:3]))


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.kind)
def test_mutated_samples(reader: Reader) -> None:
    @settings(max_examples=12 if reader.kind == "graph-dot" else 40)
    @given(mutated(_seed(reader)))
    def check(text: str) -> None:
        check_text(reader, text)

    check()


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.kind)
def test_random_bytes(reader: Reader) -> None:
    @settings(max_examples=10)
    @given(st.one_of(st.binary(max_size=300), st.text(max_size=200).map(lambda text: text.encode("utf-16"))))
    def check(data: bytes) -> None:
        check_bytes(reader, data)

    check()


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.kind)
def test_samples_are_recognized(reader: Reader) -> None:
    if reader.kind in SEEDS and reader.kind != "host-list":
        assert reader.recognizes("x", SEEDS[reader.kind]) > 0


@pytest.mark.parametrize("line", ["0 1\n", "\n"])
def test_ten_million_lines_are_refused_at_once(line: str) -> None:
    text = line * 10_000_000
    start = time.monotonic()
    for reader in READERS:
        if reader.kind.startswith(("slurm-topology", "ns3", "simai", "ibnet", "htsim", "graph")):
            with pytest.raises(InputError):
                reader.read(text, source="huge", options=Options(link="1GB/s", gpu_attribute="all"))
    assert time.monotonic() - start < 30
