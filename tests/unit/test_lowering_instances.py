"""Instances: copies of a program that share the data and nothing else."""

from __future__ import annotations

from collections import Counter

import pytest

from forestsyn.backends import emit_msccl_xml
from forestsyn.errors import UnsupportedError
from forestsyn.frontend import load_topology
from forestsyn.ir.collective import Collective
from forestsyn.ir.program import Program, Protocol
from forestsyn.ir.schedule import Schedule
from forestsyn.ir.target import EXECUTOR, RCCL, TARGETS, Target
from forestsyn.lowering import Resources, lower_schedule
from forestsyn.lowering.channels import channel_choices
from forestsyn.pipeline.compile import compile_topology
from forestsyn.pipeline.verify_file import verify_own_text


@pytest.fixture(scope="module", params=list(Collective), ids=str)
def schedule(request: pytest.FixtureRequest) -> Schedule:
    return compile_topology(load_topology("full:5"), request.param).schedule


def lower(schedule: Schedule, target: Target, instances: int, *, out_of_place: bool = False) -> Program:
    return lower_schedule(
        schedule,
        target=target,
        out_of_place=out_of_place,
        protocol=Protocol.SIMPLE,
        name="copies",
        minimum_bytes=0,
        maximum_bytes=0,
        resources=Resources(instances=instances),
    )


@pytest.mark.parametrize("target", TARGETS.values(), ids=lambda target: target.name)
@pytest.mark.parametrize("out_of_place", [False, True])
@pytest.mark.parametrize("instances", [2, 3])
def test_verified(schedule: Schedule, target: Target, out_of_place: bool, instances: int) -> None:
    program = lower(schedule, target, instances, out_of_place=out_of_place)
    text = emit_msccl_xml(program, target)
    verify_own_text(text, source="copies", target=target.name, root=schedule.root)


def test_same_bytes_on_every_connection(schedule: Schedule) -> None:
    """r copies move r small chunks where one moved a chunk, on r channels."""
    single, double = lower(schedule, EXECUTOR, 1), lower(schedule, EXECUTOR, 2)
    assert _chunks_sent(double) == Counter({pair: 2 * count for pair, count in _chunks_sent(single).items()})
    assert double.chunk_count == 2 * single.chunk_count
    assert double.channel_count == 2 * single.channel_count


def test_too_many(schedule: Schedule) -> None:
    with pytest.raises(UnsupportedError) as caught:
        lower(schedule, RCCL, 40)
    assert caught.value.limit in ("threadblocks_max", "channels_max")


def _chunks_sent(program: Program) -> Counter[tuple[int, int]]:
    sent: Counter[tuple[int, int]] = Counter()
    for rank, own in enumerate(program.ranks):
        for block in own.threadblocks:
            sent[rank, block.send_peer] += sum(step.count for step in block.steps if step.operation.sends)
    return sent


@pytest.mark.parametrize("target", TARGETS.values(), ids=lambda target: target.name)
@pytest.mark.parametrize("streams", [1, 2, 4])
def test_streams_are_verified(schedule: Schedule, target: Target, streams: int) -> None:
    program = lower_schedule(
        schedule,
        target=target,
        out_of_place=False,
        protocol=Protocol.SIMPLE,
        name="streams",
        minimum_bytes=0,
        maximum_bytes=0,
        resources=Resources(instances=2, streams=streams),
    )
    text = emit_msccl_xml(program, target)
    verify_own_text(text, source="streams", target=target.name, root=schedule.root)


def test_streams_keep_the_phases_of_an_allreduce_apart() -> None:
    """No channel carries both contributions and results."""
    schedule = compile_topology(load_topology("full:5"), Collective.ALLREDUCE).schedule
    [channels] = [next(channel_choices(schedule, EXECUTOR, Resources(streams=2)))]
    reducing = {channel for channel, reduce in zip(channels, schedule.reduce, strict=True) if reduce}
    copying = {channel for channel, reduce in zip(channels, schedule.reduce, strict=True) if not reduce}
    assert not reducing & copying
