"""Lowered programs are right for every target, layout, split and order of execution."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from forestsyn.backends import emit_msccl_xml
from forestsyn.frontend.msccl_xml import parse_msccl_xml
from forestsyn.ir.collective import Collective
from forestsyn.ir.forest import Direction
from forestsyn.ir.program import Operation, Program, Protocol
from forestsyn.ir.target import TARGETS, Target
from forestsyn.lowering import lower_forests, lower_schedule
from forestsyn.verify.program import verify_program
from tests.determinism import assert_same_output
from tests.lowering_forests import SHAPES, Shape, random_forest, reversed_forest, ring, star
from tests.lowering_machine import Machine

seeds = st.integers(0, 2**32)
targets = st.sampled_from(list(TARGETS.values()))


def build(
    collective: Collective,
    demand: list[int],
    target: Target,
    *,
    out_of_place: bool = False,
    seed: int = 0,
    shapes: tuple[Shape, ...] = SHAPES,
    mirrored: bool = False,
) -> Program:
    """A program along random forests; `mirrored`: reductions run along the reversed out-forest."""
    copying = random_forest(seed, len(demand), demand, Direction.OUT, shapes)
    reducing = random_forest(seed + 1, len(demand), demand, Direction.IN, shapes)
    schedule = lower_forests(
        collective,
        out_forest=copying,
        in_forest=reversed_forest(copying) if mirrored else reducing,
        root=next(rank for rank, trees in enumerate(demand) if trees) if collective.rooted else None,
    )
    return lower_schedule(
        schedule,
        target=target,
        out_of_place=out_of_place,
        protocol=Protocol.SIMPLE,
        name="generated",
        minimum_bytes=0,
        maximum_bytes=0,
    )


def run_everywhere(program: Program, target: Target, seed: int) -> None:
    """Run in every layout the program offers itself for, at the runtimes' depths, whole and split; then verify."""
    places = [place for place, offered in ((True, program.in_place), (False, program.out_of_place)) if offered]
    assert places
    for in_place, depth, split in product(places, (2, 8), (1, 3, 71)):
        Machine(program, in_place=in_place, depth=depth, split=split, seed=seed).run()
    read = parse_msccl_xml(emit_msccl_xml(program, target), source="generated")
    report = verify_program(read.program, findings=read.findings, target=target.name, strict=True)
    assert report.accepted, report.violations
    assert not report.warnings


@st.composite
def demands(draw: st.DrawFn, collective: Collective) -> list[int]:
    """Trees per root: equal for shards, at one root where there is one, else any."""
    ranks = draw(st.integers(2, 8))
    if collective.shards:
        return [draw(st.integers(1, 6))] * ranks
    if collective.rooted:
        root = draw(st.integers(0, ranks - 1))
        return [draw(st.integers(1, 90)) if rank == root else 0 for rank in range(ranks)]
    return draw(st.lists(st.integers(0, 5), min_size=ranks, max_size=ranks).filter(any))


@pytest.mark.parametrize("collective", list(Collective))
@given(data=st.data(), target=targets, out_of_place=st.booleans(), mirrored=st.booleans(), seed=seeds)
def test_programs_compute_the_collective(
    collective: Collective, data: st.DataObject, target: Target, out_of_place: bool, mirrored: bool, seed: int
) -> None:
    demand = data.draw(demands(collective))
    program = build(collective, demand, target, out_of_place=out_of_place, seed=seed, mirrored=mirrored)
    assert program.out_of_place if out_of_place else program.in_place
    run_everywhere(program, target, seed)
    operations = {step.operation for own in program.ranks for block in own.threadblocks for step in block.steps}
    assert operations <= target.operations - {Operation.NOP}
    if collective.reduces and program.in_place and program.out_of_place:
        assert target.both_places


@given(target=targets, shape=st.sampled_from(SHAPES), count=st.integers(1, 9), seed=seeds)
@example(target=TARGETS["executor"], shape=ring, count=9, seed=0)
@example(target=TARGETS["executor"], shape=star, count=9, seed=0)
def test_regular_forests(target: Target, shape: Shape, count: int, seed: int) -> None:
    """Rings fill every threadblock at every moment; chunks that outnumber the FIFO go round them."""
    for collective in (Collective.ALLGATHER, Collective.ALLREDUCE, Collective.REDUCE_SCATTER):
        run_everywhere(
            build(collective, [count] * 5, target, shapes=(shape,), mirrored=True, seed=seed), target, seed
        )


def test_one_way_ring_allreduce_goes_twice_round() -> None:
    """Both phases in one direction: the chains through the root pass threadblocks twice."""
    for target, count in product(TARGETS.values(), (1, 2, 4, 9)):
        demand = [count] * 5
        copying = random_forest(0, 5, demand, Direction.OUT, (ring,))
        backwards: Shape = lambda _, ranks, root: tuple(  # noqa: E731
            -1 if rank == root else (rank + 1) % ranks for rank in range(ranks)
        )
        reducing = random_forest(0, 5, demand, Direction.IN, (backwards,))
        schedule = lower_forests(Collective.ALLREDUCE, out_forest=copying, in_forest=reducing, root=None)
        program = lower_schedule(
            schedule,
            target=target,
            out_of_place=False,
            protocol=Protocol.SIMPLE,
            name="ring",
            minimum_bytes=0,
            maximum_bytes=0,
        )
        run_everywhere(program, target, count)


@pytest.mark.parametrize("target", list(TARGETS.values()), ids=lambda target: target.name)
@pytest.mark.parametrize("collective", list(Collective))
def test_text_reads_back_as_the_program(collective: Collective, target: Target) -> None:
    demand = [0, 3, 0, 0, 0] if collective.rooted else [3] * 5
    program = build(collective, demand, target, out_of_place=True, seed=4)
    text = emit_msccl_xml(program, target)
    read = parse_msccl_xml(text, source="generated")
    assert read.program is not None
    assert emit_msccl_xml(read.program, target) == text


def test_same_bytes_under_every_hash_seed() -> None:
    assert_same_output(
        "from tests.property.test_lowering_programs import *\n"
        "for collective in Collective:\n"
        "    demand = [0, 7, 0, 0, 0, 0] if collective.rooted else [7] * 6\n"
        "    for target in TARGETS.values():\n"
        "        print(emit_msccl_xml(build(collective, demand, target, seed=9), target))\n"
    )
