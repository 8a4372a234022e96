"""Plans through switches, and over several threadblocks of a rank: good ones are accepted, damaged ones rejected."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from forestsyn.ir.collective import Collective
from forestsyn.ir.plan import ChannelType, GroupShare, Plan, PlanGpu, PlanStep, RankGroup
from forestsyn.ir.plan import PlanOperation as Op
from forestsyn.ir.program import Buffer
from forestsyn.verify.plan import verify_plan
from tests.plan_machine import misbehaves
from tests.plans import edit_all_steps, edit_gpu, edit_steps, machine_plan, replace, switch_plan

Steps = Sequence[PlanStep]
Mutant = Callable[[Plan], Plan]
RELAXED = (Op.RELAXED_SIGNAL, Op.RELAXED_WAIT)
ORDERED = (Op.SIGNAL, Op.WAIT)


def _without(*operations: Op) -> Callable[[Steps], Steps]:
    return lambda steps: [step for step in steps if step.operation not in operations]


def _everywhere(edit: Callable[[Steps], Steps]) -> Mutant:
    return lambda plan: edit_all_steps(plan, edit)


def _on_rank(rank: int, edit: Callable[[Steps], Steps]) -> Mutant:
    return lambda plan: edit_steps(plan, rank, 0, edit)


def _change(operation: Op, change: Callable[[PlanStep], PlanStep]) -> Callable[[Steps], Steps]:
    return lambda steps: [change(step) if step.operation is operation else step for step in steps]


def _no_nop_after(operation: Op) -> Callable[[Steps], Steps]:
    def edit(steps: Steps) -> Steps:
        place = max(number for number, step in enumerate(steps) if step.operation is operation)
        assert steps[place + 1].operation is Op.SYNC
        return [*steps[: place + 1], *steps[place + 2 :]]

    return edit


def _first_handshake(steps: Steps) -> Steps:
    """Leaves out the signals and waits before the first sum is read, and the nop between."""
    names = [step.operation for step in steps]
    at = names.index(Op.SIGNAL, names.index(Op.GROUP_LOAD_REDUCE_STORE))
    assert names[at - 1 : at + 3] == [Op.SYNC, Op.SIGNAL, Op.WAIT, Op.SYNC]
    return [*steps[:at], *steps[at + 3 :]]


def _signal_first(steps: Steps) -> Steps:
    """The last signals go before what they tell of."""
    names = [step.operation for step in steps]
    at = len(names) - 1 - names[::-1].index(Op.SIGNAL)
    before = names.index(Op.GROUP_STORE if Op.GROUP_STORE in names else Op.GROUP_LOAD_REDUCE_STORE)
    return [*steps[:before], steps[at], *steps[before:at], *steps[at + 1 :]]


def _first_barrier(steps: Steps) -> int:
    return [step.operation for step in steps].index(Op.BARRIER)


def _source(**changes: int) -> Callable[[PlanStep], PlanStep]:
    return lambda step: replace(step, sources=(replace(step.sources[0], **changes),))


def _target(**changes: int) -> Callable[[PlanStep], PlanStep]:
    return lambda step: replace(step, destinations=(replace(step.destinations[0], **changes),))


def _twice(operation: Op) -> Callable[[Steps], Steps]:
    return lambda steps: [
        again
        for step in steps
        for again in ([step, PlanStep(operation=Op.SYNC), step] if step.operation is operation else [step])
    ]


def _switches(change: Callable[[PlanGpu], tuple[Buffer | None, tuple[RankGroup, ...]]], rank: int) -> Mutant:
    def mutant(plan: Plan) -> Plan:
        gpu = plan.gpus[rank]
        buffer, groups = change(gpu)
        channels = tuple(
            replace(own, buffer=buffer, rank_groups=groups) if own.channel_type is ChannelType.SWITCH else own
            for own in gpu.channels
        )
        return edit_gpu(plan, rank, channels=channels)

    return mutant


def _group(*ranks: int) -> tuple[RankGroup, ...]:
    return (RankGroup(size=len(ranks), ranks=ranks),)


def _backwards(plan: Plan) -> Plan:
    gpu = plan.gpus[0]
    assert len(gpu.channels) > 2
    return edit_gpu(plan, 0, channels=gpu.channels[::-1])


def _inside(edit: Callable[[Steps], Steps]) -> Callable[[Steps], Steps]:
    """Edits what pipelines repeat."""
    return lambda steps: [
        replace(step, steps=tuple(edit(step.steps))) if step.operation is Op.PIPELINE else step for step in steps
    ]


def _pipeline(**changes: int) -> Callable[[Steps], Steps]:
    return lambda steps: [
        replace(step, iteration=replace(step.iteration, **changes)) if step.iteration is not None else step
        for step in steps
    ]


ALLREDUCE = (1, 4, Collective.ALLREDUCE)
GATHER = (1, 4, Collective.ALLGATHER)
SCATTER = (1, 4, Collective.REDUCE_SCATTER)
HOSTS = (2, 2, Collective.ALLREDUCE)
LANES = (1, 18, Collective.ALLREDUCE)

#: name -> (plan, damage, the kinds of which one must be found)
MUTANTS: dict[str, tuple[tuple[int, int, Collective], Mutant, set[str]]] = {
    "sums before anyone is ready": (ALLREDUCE, _everywhere(_without(*RELAXED)), {"before-ready"}),
    "stores before anyone is ready": (GATHER, _everywhere(_without(*RELAXED)), {"before-ready"}),
    "no nop after the handshake": (ALLREDUCE, _on_rank(0, _no_nop_after(Op.RELAXED_WAIT)), {"before-ready"}),
    "nobody says that it is done": (ALLREDUCE, _everywhere(_without(*ORDERED)), {"unfinished"}),
    "it says so too early": (ALLREDUCE, _on_rank(0, _signal_first), {"unfinished", "race"}),
    "no nop before it says so": (
        GATHER,
        _on_rank(0, _no_nop_after(Op.GROUP_STORE)),
        {"unfinished", "race"},
    ),
    "it says so by relaxed signals": (
        ALLREDUCE,
        _everywhere(
            lambda steps: [
                replace(step, operation=RELAXED[ORDERED.index(step.operation)]) if step.operation in ORDERED else step
                for step in steps
            ]
        ),
        {"relaxed"},
    ),
    "one does not wait": (ALLREDUCE, _on_rank(1, _without(Op.WAIT)), {"pairing"}),
    "sums of sums": (ALLREDUCE, _on_rank(0, _twice(Op.GROUP_LOAD_REDUCE_STORE)), {"counted-twice"}),
    "no sum": (ALLREDUCE, _on_rank(2, _without(Op.GROUP_LOAD_REDUCE_STORE)), {"wrong-result"}),
    "a sum of another chunk": (
        ALLREDUCE,
        _on_rank(0, _change(Op.GROUP_LOAD_REDUCE_STORE, _source(index=1))),
        {"wrong-result", "race", "overwritten", "counted-twice"},
    ),
    "a sum to another chunk": (
        ALLREDUCE,
        _on_rank(0, _change(Op.GROUP_LOAD_REDUCE_STORE, _target(index=1))),
        {"wrong-result", "race", "overwritten", "counted-twice"},
    ),
    "nothing is stored": (GATHER, _on_rank(3, _without(Op.GROUP_STORE)), {"wrong-result"}),
    "another's part is stored": (
        GATHER,
        _on_rank(0, _change(Op.GROUP_STORE, _source(index=1))),
        {"wrong-result", "race", "undefined-read"},
    ),
    "a range beyond the buffers": (GATHER, _on_rank(0, _change(Op.GROUP_STORE, _target(index=4))), {"range"}),
    "an unknown switch channel": (GATHER, _on_rank(0, _change(Op.GROUP_STORE, _target(switch=1))), {"channels"}),
    "a group without its own rank": (
        GATHER,
        _switches(lambda gpu: (Buffer.OUTPUT, _group(1, 2, 3)), 0),
        {"channels"},
    ),
    "a smaller group at one rank": (
        GATHER,
        _switches(lambda gpu: (Buffer.OUTPUT, _group(0, 1, 2)), 0),
        {"switch-order"},
    ),
    "a smaller group at all its ranks": (
        GATHER,
        lambda plan: edit_gpu(
            _switches(lambda gpu: (Buffer.OUTPUT, _group(1, 2, 3)), 3)(
                _switches(lambda gpu: (Buffer.OUTPUT, _group(1, 2, 3)), 2)(
                    _switches(lambda gpu: (Buffer.OUTPUT, _group(1, 2, 3)), 1)(plan)
                )
            ),
            0,
            channels=plan.gpus[0].channels[:1],
        ),
        {"channels", "wrong-result"},
    ),
    "another buffer at one rank": (
        GATHER,
        _switches(lambda gpu: (Buffer.INPUT, _group(0, 1, 2, 3)), 0),
        {"switch-order", "range"},
    ),
    "switch channels in another order": (SCATTER, _backwards, {"switch-order", "channels"}),
    "sums of scratch": (
        SCATTER,
        _on_rank(0, _change(Op.GROUP_LOAD_REDUCE_STORE, lambda step: replace(step, sources=step.destinations))),
        {"undefined-read"},
    ),
    "a sum is read before it has come through the switch": (
        SCATTER,
        _everywhere(_first_handshake),
        {"late-store"},
    ),
    "both mates use the same place": (
        SCATTER,
        _on_rank(1, _change(Op.GROUP_LOAD_REDUCE_STORE, _target(index=0))),
        {"race", "overwritten", "wrong-result"},
    ),
    "a sum is sent before it has come through the switch": (HOSTS, _everywhere(_first_handshake), {"late-store"}),
    "a sum stays with its rank": (HOSTS, _on_rank(0, _without(Op.GROUP_STORE)), {"wrong-result"}),
    "a sum over one host": (HOSTS, _on_rank(0, _without(Op.REDUCE)), {"wrong-result"}),
    "sums before anyone is ready, on hosts": (HOSTS, _everywhere(_without(*RELAXED)), {"before-ready"}),
    "users' buffers in reused resources": (ALLREDUCE, lambda plan: replace(plan, reuse_resources=True), {"reuse"}),
    "barriers are nops": (
        LANES,
        _everywhere(
            lambda steps: [PlanStep(operation=Op.SYNC) if step.operation is Op.BARRIER else step for step in steps]
        ),
        {"before-ready", "unfinished", "race"},
    ),
    "a threadblock misses a barrier": (
        LANES,
        _on_rank(0, lambda steps: [step for number, step in enumerate(steps) if number != _first_barrier(steps)]),
        {"deadlock"},
    ),
    "a barrier of too many": (
        LANES,
        _everywhere(_change(Op.BARRIER, lambda step: replace(step, threadblock_count=3))),
        {"barrier"},
    ),
}


#: Likewise for two hosts in slices.
SLICES: dict[str, tuple[Mutant, set[str]]] = {
    "rounds of two chunks": (_everywhere(_pipeline(chunk_count=2)), {"pipeline"}),
    "rounds of nothing": (_everywhere(_pipeline(unit_size=0)), {"pipeline"}),
    "more rounds than are counted": (_everywhere(_pipeline(unit_size=16)), {"rounds"}),
    "shares in a pipeline": (
        _on_rank(
            0, _inside(_change(Op.GROUP_STORE, lambda step: replace(step, share=GroupShare(threadblock=0, size=2))))
        ),
        {"pipeline"},
    ),
    "a pipeline in a pipeline": (
        _on_rank(0, _inside(lambda steps: [*steps, PlanStep(operation=Op.PIPELINE, steps=(steps[0],))])),
        {"pipeline"},
    ),
    "one wait less in each round": (_on_rank(0, _inside(_without(Op.WAIT))), {"pairing"}),
    "no nop between sum and store": (_on_rank(0, _inside(_without(Op.SYNC))), {"race", "unsynced", "late-store"}),
    "sums read late": (_everywhere(_inside(_first_handshake)), {"late-store"}),
    "nothing is stored": (_on_rank(0, _inside(_without(Op.GROUP_STORE))), {"wrong-result"}),
}


def test_the_undamaged_slices_are_accepted() -> None:
    report = verify_plan(switch_plan(*HOSTS, slice_bytes=1 << 18), strict=True)
    assert report.accepted, report.violations[:3]


@pytest.mark.parametrize("name", SLICES)
def test_damage_in_slices_is_found(name: str) -> None:
    damage, kinds = SLICES[name]
    report = verify_plan(damage(switch_plan(*HOSTS, slice_bytes=1 << 18)), strict=True)
    assert not report.accepted
    assert {violation.kind for violation in report.violations} & kinds, report.violations[:5]


@pytest.mark.parametrize("sample", [ALLREDUCE, GATHER, SCATTER, HOSTS, LANES], ids=str)
def test_the_undamaged_plans_are_accepted(sample: tuple[int, int, Collective]) -> None:
    report = verify_plan(switch_plan(*sample), strict=True)
    assert report.accepted, report.violations[:3]
    assert report.warnings == ()


@pytest.mark.parametrize("name", MUTANTS)
def test_damage_is_found(name: str) -> None:
    sample, damage, kinds = MUTANTS[name]
    damaged = damage(switch_plan(*sample))
    assert damaged != switch_plan(*sample)
    report = verify_plan(damaged, strict=True)
    assert not report.accepted
    assert {violation.kind for violation in report.violations} & kinds, report.violations[:5]


@pytest.mark.parametrize("sample", [ALLREDUCE, SCATTER, HOSTS], ids=str)
def test_no_operation_but_a_nop_can_be_left_out(sample: tuple[int, int, Collective]) -> None:
    plan = switch_plan(*sample, threadblocks=1)
    for rank in (0, len(plan.gpus) - 1):
        for number, step in enumerate(plan.gpus[rank].blocks[0].steps):
            if step.operation is not Op.SYNC:
                damaged = edit_steps(plan, rank, 0, lambda steps, at=number: [*steps[:at], *steps[at + 1 :]])
                assert not verify_plan(damaged, strict=True).accepted, (rank, number, step)


@pytest.mark.parametrize("sample", [ALLREDUCE, GATHER, SCATTER, HOSTS], ids=str)
def test_executions_agree(sample: tuple[int, int, Collective]) -> None:
    """What the random machine shows to be wrong the verifier rejects; nothing is wrong with the undamaged plans."""
    assert not any(misbehaves(switch_plan(*sample), seed) for seed in range(6))
    plan = switch_plan(*sample, threadblocks=1)
    shown = 0
    for number in range(len(plan.gpus[0].blocks[0].steps)):
        damaged = edit_all_steps(plan, lambda steps, at=number: [*steps[:at], *steps[at + 1 :]])
        if any(misbehaves(damaged, seed, calls=3) for seed in range(8)):
            shown += 1
            assert not verify_plan(damaged, strict=True).accepted, number
    assert shown >= 3


def test_barriers_cannot_be_left_out_of_trees_either() -> None:
    plan = machine_plan("full:18", Collective.ALLREDUCE, threadblocks=1)
    assert verify_plan(plan, strict=True).accepted
    nops = edit_all_steps(
        plan,
        lambda steps: [PlanStep(operation=Op.SYNC) if step.operation is Op.BARRIER else step for step in steps],
    )
    report = verify_plan(nops, strict=True)
    assert {violation.kind for violation in report.violations} & {"race", "before-ready"}
