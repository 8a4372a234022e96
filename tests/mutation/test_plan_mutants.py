"""Good plans are accepted and damaged ones rejected, each kind of damage for its own reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from forestsyn.ir.collective import Collective
from forestsyn.ir.plan import ChannelType, GroupShare, Plan, PlanStep, RemoteBuffer
from forestsyn.ir.plan import PlanOperation as Op
from forestsyn.ir.program import Buffer, Protocol
from forestsyn.verify.plan import verify_plan
from tests.plans import edit_all_steps, edit_block, edit_gpu, edit_steps, machine_plan, replace

Steps = Sequence[PlanStep]
Mutant = Callable[[Plan], Plan]


def _drop(operation: Op, occurrence: int = 0) -> Callable[[Steps], Steps]:
    def edit(steps: Steps) -> Steps:
        place = [number for number, step in enumerate(steps) if step.operation is operation][occurrence]
        return [*steps[:place], *steps[place + 1 :]]

    return edit


def _change(operation: Op, change: Callable[[PlanStep], PlanStep]) -> Callable[[Steps], Steps]:
    """Changes the first such operation."""

    def edit(steps: Steps) -> Steps:
        place = [step.operation for step in steps].index(operation)
        return [*steps[:place], change(steps[place]), *steps[place + 1 :]]

    return edit


def _without(*operations: Op) -> Callable[[Steps], Steps]:
    return lambda steps: [step for step in steps if step.operation not in operations]


def _on_rank_0(edit: Callable[[Steps], Steps]) -> Mutant:
    return lambda plan: edit_steps(plan, 0, 0, edit)


def _nop_before(operation: Op) -> Callable[[Steps], Steps]:
    """Drops the nop in front of the first such operation."""

    def edit(steps: Steps) -> Steps:
        place = next(
            number
            for number, step in enumerate(steps)
            if step.operation is operation and steps[number - 1].operation is Op.SYNC
        )
        return [*steps[: place - 1], *steps[place:]]

    return edit


def _waits_first(steps: Steps) -> Steps:
    waits = [step for step in steps if step.operation is Op.WAIT]
    return [*waits, *(step for step in steps if step not in waits)]


def _shift_destination(step: PlanStep) -> PlanStep:
    last = step.destinations[-1]
    return replace(step, destinations=(*step.destinations[:-1], replace(last, index=(last.index + 1) % 7)))


def _signal_before_put(steps: Steps) -> Steps:
    names = [step.operation for step in steps]
    put, signal = names.index(Op.PUT), names.index(Op.SIGNAL)
    moved = list(steps)
    moved[put], moved[signal] = moved[signal], moved[put]
    return moved


def _relaxed(steps: Steps) -> Steps:
    weaker = {Op.SIGNAL: Op.RELAXED_SIGNAL, Op.WAIT: Op.RELAXED_WAIT}
    return [replace(step, operation=weaker.get(step.operation, step.operation)) for step in steps]


def _first_range(**changes: int) -> Callable[[PlanStep], PlanStep]:
    return lambda step: replace(step, sources=(replace(step.sources[0], **changes), *step.sources[1:]))


ALLREDUCE = ("dgx-a100", Collective.ALLREDUCE, Protocol.SIMPLE)
GATHER = ("dgx-a100", Collective.ALLGATHER, Protocol.SIMPLE)
HOSTS = ("dgx-a100:2", Collective.ALLGATHER, Protocol.SIMPLE)
PACKETS = ("dgx-a100", Collective.ALLREDUCE, Protocol.LL)
BROADCAST = ("dgx-h100:2", Collective.BROADCAST, Protocol.LL)

#: name -> (plan, damage, the kinds of which one must be found)
MUTANTS: dict[str, tuple[tuple[str, Collective, Protocol], Mutant, set[str]]] = {
    "a wait is missing": (ALLREDUCE, _on_rank_0(_drop(Op.WAIT)), {"pairing"}),
    "a signal is missing": (ALLREDUCE, _on_rank_0(_drop(Op.SIGNAL)), {"pairing"}),
    "no buffer is said to be ready": (
        GATHER,
        lambda plan: edit_all_steps(plan, _without(Op.RELAXED_SIGNAL, Op.RELAXED_WAIT)),
        {"before-ready"},
    ),
    "no nop between ready and put": (GATHER, _on_rank_0(_nop_before(Op.PUT)), {"before-ready"}),
    "no nop between put and signal": (GATHER, _on_rank_0(_nop_before(Op.SIGNAL)), {"race", "unfinished"}),
    "no nop between wait and sum": (ALLREDUCE, _on_rank_0(_nop_before(Op.REDUCE_SEND)), {"race"}),
    "signal before put": (GATHER, _on_rank_0(_signal_before_put), {"race", "unfinished", "before-ready"}),
    "put is missing": (GATHER, _on_rank_0(_drop(Op.PUT)), {"wrong-result"}),
    "put to the wrong chunk": (GATHER, _on_rank_0(_change(Op.PUT, _shift_destination)), {"wrong-result"}),
    "a term is missing": (
        ALLREDUCE,
        _on_rank_0(_change(Op.REDUCE_SEND, lambda step: replace(step, sources=step.sources[:-1]))),
        {"wrong-result"},
    ),
    "a term counts twice": (
        ALLREDUCE,
        _on_rank_0(
            _change(Op.REDUCE_SEND, lambda step: replace(step, sources=(*step.sources[:-1], step.sources[0])))
        ),
        {"counted-twice"},
    ),
    "two chunks are mixed": (ALLREDUCE, _on_rank_0(_change(Op.REDUCE_SEND, _first_range(index=1))), {"mixed-chunks"}),
    "everyone waits first": (ALLREDUCE, lambda plan: edit_all_steps(plan, _waits_first), {"deadlock"}),
    "data by relaxed signals": (GATHER, lambda plan: edit_all_steps(plan, _relaxed), {"relaxed"}),
    "a request is not flushed": (
        HOSTS,
        _on_rank_0(_change(Op.PUT_SIGNAL_FLUSH, lambda step: replace(step, operation=Op.PUT_SIGNAL))),
        {"unflushed"},
    ),
    "no chunks of input": (ALLREDUCE, lambda plan: edit_gpu(plan, 0, input_chunks=0), {"chunks"}),
    "a GPU out of place": (ALLREDUCE, lambda plan: edit_gpu(plan, 1, id=2), {"ids"}),
    "a threadblock out of place": (ALLREDUCE, lambda plan: edit_block(plan, 0, 1, id=0), {"ids"}),
    "an unknown channel": (
        ALLREDUCE,
        _on_rank_0(_change(Op.SIGNAL, lambda step: replace(step, channel_ids=(7,)))),
        {"channels"},
    ),
    "a channel to itself": (
        ALLREDUCE,
        lambda plan: edit_gpu(
            plan, 0, channels=(replace(plan.gpus[0].channels[0], connected_to=(0,) * 14), *plan.gpus[0].channels[1:])
        ),
        {"channels"},
    ),
    "a remote buffer of another rank": (
        GATHER,
        lambda plan: edit_gpu(
            plan,
            0,
            remote_buffers=(plan.gpus[0].remote_buffers[1], *plan.gpus[0].remote_buffers[1:]),
        ),
        {"wrong-result"},
    ),
    "too many operations": (
        ALLREDUCE,
        _on_rank_0(lambda steps: [*steps, *[PlanStep(operation=Op.SYNC)] * 64]),
        {"limits"},
    ),
    "a range beyond its buffer": (GATHER, _on_rank_0(_change(Op.PUT, _first_range(index=8))), {"range"}),
    "ranges of two sizes": (GATHER, _on_rank_0(_change(Op.PUT, _first_range(size=2))), {"operands"}),
    "one share is done twice": (
        GATHER,
        _on_rank_0(
            lambda steps: [replace(step, share=step.share and GroupShare(threadblock=1, size=2)) for step in steps]
        ),
        {"race", "overwritten", "wrong-result", "unfinished"},
    ),
    "packets under the plain protocol": (PACKETS, lambda plan: replace(plan, protocol="Simple"), {"protocol"}),
    "packets without alternating scratch": (
        ("dgx-a100", Collective.ALLGATHER, Protocol.LL),
        lambda plan: replace(plan, use_double_scratch_buffer=False),
        {"overwritten"},
    ),
    "packets that nobody sends": (PACKETS, _on_rank_0(_drop(Op.PUT_PACKETS)), {"deadlock"}),
    "a broadcast that does not wait": (
        BROADCAST,
        lambda plan: edit_all_steps(plan, _without(Op.RELAXED_SIGNAL, Op.RELAXED_WAIT, Op.SIGNAL, Op.WAIT)),
        {"overwritten"},
    ),
    "sizes beyond 32 bits": (ALLREDUCE, lambda plan: replace(plan, maximum_bytes=2**40), {"offsets"}),
    "scratch beyond what is shared": (PACKETS, lambda plan: replace(plan, maximum_bytes=2**30), {"scratch"}),
    "users' buffers in reused resources": (ALLREDUCE, lambda plan: replace(plan, reuse_resources=True), {"reuse"}),
    "a window upside down": (ALLREDUCE, lambda plan: replace(plan, minimum_bytes=2**31), {"window"}),
    "an odd alignment": (ALLREDUCE, lambda plan: replace(plan, buffer_alignment=8), {"alignment"}),
    "a port where nothing is reached by one": (
        GATHER,
        lambda plan: edit_gpu(
            plan,
            0,
            remote_buffers=tuple(
                RemoteBuffer(rank=item.rank, buffer=Buffer.OUTPUT, access_channel_types=(ChannelType.PORT,))
                for item in plan.gpus[0].remote_buffers
            ),
        ),
        {"remote-buffers"},
    ),
}


@pytest.mark.parametrize("sample", [ALLREDUCE, GATHER, HOSTS, PACKETS, BROADCAST], ids=str)
def test_the_undamaged_plans_are_accepted(sample: tuple[str, Collective, Protocol]) -> None:
    report = verify_plan(machine_plan(*sample), strict=True)
    assert report.accepted, report.violations[:3]


@pytest.mark.parametrize("name", MUTANTS)
def test_damage_is_found(name: str) -> None:
    sample, damage, kinds = MUTANTS[name]
    damaged = damage(machine_plan(*sample))
    assert damaged != machine_plan(*sample)
    report = verify_plan(damaged, strict=True)
    assert not report.accepted
    assert {violation.kind for violation in report.violations} & kinds, report.violations[:5]


def test_there_are_many_kinds() -> None:
    assert len(set().union(*(kinds for _, _, kinds in MUTANTS.values()))) >= 20


@pytest.mark.parametrize("sample", [ALLREDUCE, HOSTS, PACKETS], ids=str)
def test_no_operation_but_a_nop_can_be_left_out(sample: tuple[str, Collective, Protocol]) -> None:
    plan = machine_plan(*sample, threadblocks=1)
    for rank in (0, len(plan.gpus) - 1):
        for number, step in enumerate(plan.gpus[rank].blocks[0].steps):
            if step.operation is not Op.SYNC:
                damaged = edit_steps(plan, rank, 0, lambda steps, at=number: [*steps[:at], *steps[at + 1 :]])
                assert not verify_plan(damaged, strict=True).accepted, (rank, number, step)
