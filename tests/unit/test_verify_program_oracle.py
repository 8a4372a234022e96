"""The program verifier against a slow executor that tries random interleavings."""

from __future__ import annotations

import random

import msgspec
import pytest

from forestsyn.ir.program import Buffer, Dependency, Location, Program
from forestsyn.verify.program import verify_program
from tests.mutation.program_oracle import WHOLE, Garbage, Stuck, execute, has_race, right_result
from tests.mutation.program_samples import (
    SAMPLES,
    broadcast_chain,
    pairs_allgather,
    pairs_allreduce,
    pairs_reduce_scatter,
    ring_allgather,
    ring_allgather_apart,
    ring_allreduce,
)

INTERLEAVINGS = 4
DATA_KINDS = {"wrong-result", "undefined-read", "mixed-chunks", "counted-twice"}


def _random_variant(program: Program, seed: int) -> Program:
    """`program` with one to three random changes that keep its form: some variants are right, some wrong."""
    choose = random.Random(seed)
    ranks = list(program.ranks)
    for _ in range(choose.randint(1, 3)):
        rank = choose.randrange(len(ranks))
        blocks = list(ranks[rank].threadblocks)
        number = choose.randrange(len(blocks))
        steps = list(blocks[number].steps)
        index = choose.randrange(len(steps))
        _change(choose, ranks[rank], blocks, steps, index)
        blocks[number] = msgspec.structs.replace(blocks[number], steps=tuple(steps))
        ranks[rank] = msgspec.structs.replace(ranks[rank], threadblocks=tuple(blocks))
    return msgspec.structs.replace(program, ranks=tuple(ranks))


def _change(choose: random.Random, own, blocks, steps, index) -> None:
    step = steps[index]
    what = choose.randrange(6)
    if what == 0 and index + 1 < len(steps):
        steps[index], steps[index + 1] = steps[index + 1], step
    elif what == 1:
        steps[index] = msgspec.structs.replace(step, flagged=not step.flagged)
    elif what == 2:
        steps[index] = msgspec.structs.replace(step, depends_on=None)
    elif what == 3:
        number = choose.randrange(len(blocks))
        wait = Dependency(threadblock=number, step=choose.randrange(len(blocks[number].steps)))
        steps[index] = msgspec.structs.replace(step, depends_on=wait)
    else:
        sizes = {"i": own.input_chunks, "o": own.output_chunks, "s": own.scratch_chunks}
        buffer = choose.choice([name for name, size in sizes.items() if size])
        location = Location(buffer=Buffer(buffer), offset=choose.randrange(sizes[buffer]))
        side = "source" if what == 4 else "destination"
        steps[index] = msgspec.structs.replace(step, **{side: location})


BASES = [
    ring_allgather(3),
    ring_allgather(3, 2),
    ring_allgather_apart(3),
    ring_allreduce(3),
    pairs_reduce_scatter(3),
    pairs_allreduce(3),
    pairs_allgather(3, 2),
    broadcast_chain(3, 2),
]


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_end_right_in_every_order(name: str) -> None:
    program = SAMPLES[name]
    report = verify_program(program)
    assert report.accepted
    _check_accepted(program, report)


@pytest.mark.parametrize("base", range(len(BASES)))
def test_verdicts_hold_in_random_interleavings(base: int) -> None:
    accepted = 0
    for seed in range(150):
        program = _random_variant(BASES[base], seed)
        report = verify_program(program)
        kinds = {violation.kind for violation in report.violations if len(violation.runtimes) > 1}
        if report.accepted:
            accepted += 1
            _check_accepted(program, report)
        elif "deadlock" in kinds:
            with pytest.raises(Stuck):
                execute(program, in_place=program.in_place, depth=8, unit=WHOLE, seed=seed)
        elif kinds & DATA_KINDS and "race" not in kinds:
            _check_wrong(program, seed, kinds)
    assert accepted, "some variants must stay right for this test to mean something"


@pytest.mark.parametrize("base", range(len(BASES)))
def test_races_are_exactly_the_unordered_conflicts(base: int) -> None:
    met = {True: 0, False: 0}
    for seed in range(150):
        program = _random_variant(BASES[base], seed)
        report = verify_program(program)
        kinds = {violation.kind for violation in report.violations if len(violation.runtimes) > 1}
        if kinds - DATA_KINDS - {"race", "input-overwritten", "overlap"}:
            continue
        whole = has_race(program, in_place=program.in_place, unit=WHOLE)
        split = has_race(program, in_place=program.in_place, unit=1)
        warned = any(warning.kind == "race-size" for warning in report.warnings)
        assert ("race" in kinds) == whole
        assert ("race" in kinds or warned) == split
        met[whole] += 1
    assert met[False]
    assert met[True] or all(len(own.threadblocks) == 1 for own in BASES[base].ranks)


def _check_accepted(program: Program, report) -> None:
    """No warning: right at depth 2, in single messages. With warnings: right with whole steps at depth 8."""
    depth, unit = (8, WHOLE) if report.warnings else (2, 1)
    for seed in range(INTERLEAVINGS):
        memory = execute(program, in_place=program.in_place, depth=depth, unit=unit, seed=seed)
        assert right_result(program, memory, program.in_place)


def _check_wrong(program: Program, seed: int, kinds: set[str]) -> None:
    try:
        memory = execute(program, in_place=program.in_place, depth=8, unit=WHOLE, seed=seed)
    except Garbage:
        return
    # What is used undefined or added twice is refused even where nobody looks at it; a wrong result is wrong.
    assert not (right_result(program, memory, program.in_place) and "wrong-result" in kinds)
