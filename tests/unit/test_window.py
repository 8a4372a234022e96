"""The size window in words, as each runtime understands it."""

from __future__ import annotations

import msgspec
import pytest

from forestsyn.frontend import load_topology
from forestsyn.ir.collective import Collective
from forestsyn.ir.program import Program
from forestsyn.ir.target import EXECUTOR, MSCCL, Target
from forestsyn.pipeline.compile import compile_topology
from forestsyn.pipeline.window import window_sentence


def _program(target: Target, low: int, high: int) -> Program:
    topology = load_topology("ring:4")
    program = compile_topology(
        topology, Collective.ALLGATHER, target=target, minimum_bytes=low, maximum_bytes=high
    ).program
    assert isinstance(program, Program)
    return program


@pytest.mark.parametrize(
    ("target", "low", "high", "sentence"),
    [
        (EXECUTOR, 0, 0, "of every size"),
        (EXECUTOR, 1 << 16, 0, "from 64 KiB, without an upper limit"),
        (EXECUTOR, 1 << 16, 1 << 20, "from 64 KiB, up to 1 MiB"),
        (MSCCL, 0, 1 << 20, "below 1 MiB"),
        (MSCCL, 0, 0, "below 1 TiB; msccl has no word for 'no limit': set the end with --max-bytes"),
    ],
)
def test_sentences(target: Target, low: int, high: int, sentence: str) -> None:
    assert window_sentence(_program(target, low, high), target) == sentence


def test_the_scratch_that_the_largest_size_costs_is_told() -> None:
    program = _program(MSCCL, 0, 1 << 30)
    half = program.chunk_count // 2
    ranks = tuple(msgspec.structs.replace(rank, scratch_chunks=half) for rank in program.ranks)
    sentence = window_sentence(msgspec.structs.replace(program, ranks=ranks), MSCCL)
    assert sentence.startswith("below 1 GiB; msccl has no word for 'no limit' and allocates scratch")
    assert "512 MiB a rank" in sentence
