"""The verifier of plans on small plans made by hand: barriers, semaphores, pipelines, switches, gets, odd sizes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from forestsyn.ir.plan import (
    BlockBuffers,
    BlockChannels,
    ChannelType,
    GpuChannels,
    GroupShare,
    Iteration,
    Plan,
    PlanGpu,
    PlanStep,
    RankGroup,
    RemoteBuffer,
    Semaphore,
)
from forestsyn.ir.plan import PlanOperation as Op
from forestsyn.ir.program import Buffer
from forestsyn.verify.plan import verify_plan
from tests.plans import edit_gpu, local, pair_gpu, remote, replace

NOP = PlanStep(operation=Op.SYNC)
BARRIER = PlanStep(operation=Op.BARRIER, barrier_id=0, threadblock_count=2)


def _channel(operation: Op, way: str = "memory") -> PlanStep:
    return PlanStep(operation=operation, channel_type=ChannelType(way), channel_ids=(0,))


SIGNAL, WAIT = _channel(Op.SIGNAL), _channel(Op.WAIT)
READY, IS_READY = _channel(Op.RELAXED_SIGNAL), _channel(Op.RELAXED_WAIT)
COPY = PlanStep(operation=Op.COPY, sources=(local("i", 0, 2),), destinations=(local("o", 0, 2),))


def _put(source: str, index: int, size: int = 1, **changes: object) -> PlanStep:
    """From an own buffer to the same chunk of the peer's scratch."""
    put = PlanStep(
        operation=Op.PUT,
        sources=(local(source, index, size),),
        destinations=(remote(1, index, size),),
        channel_type=ChannelType.MEMORY,
    )
    return replace(put, **changes)


def _sum(index: int, size: int = 1, **changes: object) -> PlanStep:
    ranges = (local("i", index, size), local("s", index, size))
    return replace(PlanStep(operation=Op.REDUCE, sources=ranges, destinations=(local("o", index, size),)), **changes)


def _plan(gpus: Sequence[PlanGpu], **changes: object) -> Plan:
    plan = Plan(name="pair", collective="allreduce", protocol="Simple", in_place=False, gpus=tuple(gpus))
    return replace(plan, maximum_bytes=2**20, **changes)


def _exchange(*blocks: Sequence[PlanStep], **changes: object) -> Plan:
    """Both ranks do the same."""
    return _plan([pair_gpu(rank, blocks, **changes) for rank in range(2)])


def _kinds(plan: Plan) -> set[str]:
    report = verify_plan(plan, strict=True)
    assert report.accepted == (not report.violations)
    return {violation.kind for violation in report.violations}


SENDING = (READY, IS_READY, NOP, _put("i", 0, 2), NOP, SIGNAL, WAIT, NOP)
WHOLE = (*SENDING, _sum(0, 2))
#: What a read without an order is called depends on which comes first in the verifier's run.
UNORDERED = {"race", "overwritten"}


def test_one_threadblock() -> None:
    assert _kinds(_exchange(WHOLE)) == set()
    assert _kinds(_exchange((*SENDING[:-1], _sum(0, 2)))) == {"race"}


@pytest.mark.parametrize("other", [_sum(1), _sum(0, 2, share=GroupShare(threadblock=1, size=2))])
def test_a_barrier_passes_on_what_one_threadblock_heard(other: PlanStep) -> None:
    first = _sum(0, 2, share=GroupShare(threadblock=0, size=2)) if other.share else _sum(0)
    assert _kinds(_exchange((*SENDING, BARRIER, first), (BARRIER, other))) == set()
    assert _kinds(_exchange((*SENDING, first), (other,))) & UNORDERED


def test_barriers_must_have_their_members() -> None:
    alone = replace(BARRIER, threadblock_count=3)
    assert "barrier" in _kinds(_exchange((*SENDING, alone, _sum(0)), (alone, _sum(1))))
    assert "barrier" in _kinds(_exchange((*SENDING, replace(BARRIER, barrier_id=16), _sum(0, 2)), ()))
    assert _kinds(_exchange((*SENDING, BARRIER, BARRIER, _sum(0)), (BARRIER, _sum(1)))) == {"deadlock"}


def test_semaphores_pass_on_what_one_threadblock_heard() -> None:
    release = PlanStep(operation=Op.SEMAPHORE_RELEASE, semaphore_ids=(0,))
    acquire = PlanStep(operation=Op.SEMAPHORE_ACQUIRE, semaphore_ids=(0,))
    one = (Semaphore(init_value=0),)
    blocks = ((*SENDING, release, _sum(0)), (acquire, NOP, _sum(1)))
    assert _kinds(_exchange(*blocks, semaphores=one)) == set()
    assert _kinds(_exchange((*SENDING, release, _sum(0)), (acquire, _sum(1)), semaphores=one)) & UNORDERED
    assert _kinds(_exchange(*blocks, semaphores=(Semaphore(init_value=1),))) & UNORDERED
    assert "semaphores" in _kinds(_exchange(*blocks))
    assert _kinds(_exchange(blocks[0], (acquire, acquire, NOP, _sum(1)), semaphores=one)) == {"pairing"}


def test_shares_that_meet_differently_cut_data_are_tried_with_odd_sizes() -> None:
    halves = [_put("i", 0, 2, share=GroupShare(threadblock=part, size=2)) for part in range(2)]
    sums = [_sum(0, 2, share=GroupShare(threadblock=part, size=4)) for part in range(4)]
    sums[1:3] = [_sum(0, 2, share=GroupShare(threadblock=part, size=4)) for part in (1, 2)]
    assert _kinds(_exchange((READY, IS_READY, NOP, *halves, NOP, SIGNAL, WAIT, NOP, *sums))) == set()


def test_two_waiting_threadblocks_on_one_channel() -> None:
    blocks = ((*SENDING[:6], SIGNAL, WAIT, NOP, _sum(0)), (WAIT, NOP, _sum(1)))
    assert _kinds(_exchange(*blocks)) == {"shared-wait"}


@pytest.mark.parametrize("way", ["memory", "port"])
def test_both_ways_to_the_peer(way: str) -> None:
    kind = ChannelType(way)
    blocks = tuple(
        replace(step, channel_type=kind) if step.channel_type else step
        for step in (_channel(Op.SIGNAL), _channel(Op.WAIT), NOP, _put("i", 0, 2), NOP, SIGNAL, WAIT, NOP, _sum(0, 2))
    )
    if way == "port":
        put = replace(blocks[3], operation=Op.PUT_SIGNAL_FLUSH, channel_ids=(0,))
        blocks = (*blocks[:3], put, *blocks[6:])
    gpus = [pair_gpu(rank, [blocks], way=way) for rank in range(2)]
    assert _kinds(_plan(gpus)) == set()


def test_flushes_without_destinations_do_nothing() -> None:
    def plan(flush: PlanStep) -> Plan:
        put = replace(_put("i", 0, 2), operation=Op.PUT_SIGNAL, channel_type=ChannelType.PORT, channel_ids=(0,))
        steps = (
            *(_channel(Op.SIGNAL, "port"), _channel(Op.WAIT, "port"), NOP, put),
            *(_channel(Op.WAIT, "port"), NOP, _sum(0, 2), flush),
        )
        return _plan([pair_gpu(rank, [steps], way="port") for rank in range(2)])

    flush = _channel(Op.FLUSH, "port")
    assert _kinds(plan(flush)) == {"unflushed"}
    assert _kinds(plan(replace(flush, destinations=(local("o"),)))) == set()


def test_reading_from_the_peer() -> None:
    def plan(*, handshake: bool = True, ending: bool = True, index: int = 0) -> Plan:
        get = PlanStep(
            operation=Op.READ_REDUCE,
            sources=(local("i", 0, 2), remote(0, index, 2)),
            destinations=(local("o", 0, 2),),
            channel_type=ChannelType.MEMORY,
        )
        start, end = (READY, IS_READY, NOP), (NOP, READY, IS_READY)
        plan = _exchange((*(start if handshake else ()), get, *(end if ending else ())))
        buffers = [replace(plan.gpus[rank].remote_buffers[0], buffer=Buffer.INPUT) for rank in range(2)]
        for rank in range(2):
            plan = edit_gpu(plan, rank, remote_buffers=(buffers[rank], plan.gpus[rank].remote_buffers[1]))
        return plan

    assert _kinds(plan()) == set()
    assert "before-ready" in _kinds(plan(handshake=False))
    assert "unfinished" in _kinds(plan(ending=False))
    assert "range" in _kinds(plan(index=1))


def test_a_pipeline_runs_slice_by_slice() -> None:
    inner = (_put("i", 0, 2), NOP, SIGNAL, WAIT, NOP, _sum(0, 2))
    pipeline = PlanStep(operation=Op.PIPELINE, iteration=Iteration(unit_size=1024, chunk_count=2), steps=inner)
    assert _kinds(_exchange((READY, IS_READY, NOP, pipeline))) == set()
    assert _kinds(_exchange((READY, IS_READY, NOP, replace(pipeline, steps=inner[:4] + inner[5:])))) == {"race"}
    assert _kinds(_exchange((READY, IS_READY, NOP, replace(pipeline, steps=inner[:2] + inner[3:])))) == {"pairing"}
    assert _kinds(_exchange((READY, IS_READY, NOP, replace(pipeline, iteration=None)))) == {"pipeline"}
    assert "pipeline" in _kinds(_exchange((READY, IS_READY, NOP, replace(pipeline, steps=(pipeline,)))))


def _switched(*steps: PlanStep) -> Plan:
    """Both ranks in place on a switch channel of their inputs, beside the memory channel."""
    plan = replace(_exchange(steps), in_place=True)
    for rank in range(2):
        gpu = plan.gpus[rank]
        switch = GpuChannels(
            channel_type=ChannelType.SWITCH, buffer=Buffer.INPUT, rank_groups=(RankGroup(size=2, ranks=(0, 1)),)
        )
        block = gpu.blocks[0]
        own = (*block.channels, BlockChannels(channel_type=ChannelType.SWITCH, channel_ids=(0,)))
        blocks = (replace(block, channels=own),)
        plan = edit_gpu(plan, rank, channels=(*gpu.channels, switch), blocks=blocks)
    return plan


def test_a_switch_reduces_and_multicasts() -> None:
    def combine(index: int) -> PlanStep:
        place = replace(remote(0, index), remote=None, switch=0)
        return PlanStep(
            operation=Op.GROUP_LOAD_REDUCE_STORE,
            sources=(place,),
            destinations=(place,),
            channel_type=ChannelType.SWITCH,
        )

    def both(end: tuple[PlanStep, ...], start: tuple[PlanStep, ...] = (READY, IS_READY, NOP)) -> Plan:
        plan = _switched()
        for rank in range(2):
            block = replace(plan.gpus[rank].blocks[0], steps=(*start, combine(rank), *end))
            plan = edit_gpu(plan, rank, blocks=(block,))
        return plan

    assert _kinds(both((NOP, SIGNAL, WAIT))) == set()
    assert _kinds(both((NOP, READY, IS_READY))) == {"relaxed"}
    assert verify_plan(both((NOP, READY, IS_READY))).accepted
    assert "before-ready" in _kinds(both((NOP, SIGNAL, WAIT), start=()))
    assert "unfinished" in _kinds(both(()))


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"gpus": ()}, "ranks"),
        ({"threads_per_block": 2048}, "threads"),
        ({"minimum_bytes": 2**21}, "window"),
        ({"buffer_alignment": 0}, "alignment"),
        ({"maximum_bytes": 2**40}, "offsets"),
    ],
)
def test_the_head_of_a_plan(changes: dict[str, object], kind: str) -> None:
    assert kind in _kinds(replace(_exchange(WHOLE), **changes))


def test_unknown_collectives_are_checked_but_for_their_result() -> None:
    plan = replace(_exchange((READY, IS_READY, NOP, _put("i", 0, 2), NOP, SIGNAL, WAIT)), collective="custom")
    report = verify_plan(plan)
    assert report.accepted
    assert any("'custom' is not defined" in note for note in report.notes)
    assert "pairing" in _kinds(replace(_exchange((READY,)), collective="custom"))


def test_all_to_all() -> None:
    """Chunk 1 − rank goes to the peer, the own one is copied."""

    def plan(target: int) -> Plan:
        gpus = []
        for rank in range(2):
            put = replace(_put("i", 1 - rank), destinations=(remote(0, rank if target == rank else 1 - rank),))
            own = PlanStep(operation=Op.COPY, sources=(local("i", rank),), destinations=(local("o", rank),))
            gpus.append(pair_gpu(rank, [(READY, IS_READY, NOP, put, NOP, SIGNAL, WAIT, own)]))
        return replace(_plan(gpus), collective="alltoall")

    good = plan(0)
    first, second = good.gpus
    put = replace(_put("i", 0), destinations=(remote(0, 1),))
    steps = (READY, IS_READY, NOP, put, *second.blocks[0].steps[4:])
    good = replace(good, gpus=(first, replace(second, blocks=(replace(second.blocks[0], steps=steps),))))
    assert _kinds(good) == set()
    assert "wrong-result" in _kinds(plan(2))


def test_the_root_is_found_or_asked_for() -> None:
    put = replace(_put("i", 0, 2), destinations=(remote(0, 0, 2),))
    gpus = [
        pair_gpu(0, [(READY, WAIT)]),
        pair_gpu(1, [(IS_READY, NOP, put, NOP, SIGNAL, COPY)]),
    ]
    plan = replace(_plan(gpus), collective="broadcast")
    assert verify_plan(plan).root == 1
    assert verify_plan(plan, root=1).accepted
    assert not verify_plan(plan, root=0).accepted


def test_what_is_cut_too_finely_is_not_executed() -> None:
    shares = [_sum(0, 2, share=GroupShare(threadblock=part, size=2**29 - part)) for part in range(2)]
    assert _kinds(_exchange((*SENDING, *shares))) == {"too-fine"}


def _echo(unpacked: int, half: int) -> Plan:
    """Rank 0 sends two chunks as packets, rank 1 sends them back, rank 0 unpacks some of them and ends its call.

    Only what it unpacks tells it that rank 1 has read what it will send over next. half: where packets come back.
    """
    there = PlanStep(
        operation=Op.PUT_PACKETS,
        sources=(local("i", 0, 2),),
        destinations=(remote(1, 0, 2),),
        channel_type=ChannelType.MEMORY,
    )
    back = PlanStep(
        operation=Op.READ_PUT_PACKETS,
        sources=(local("s", 0, 2),),
        destinations=(remote(1, half, 2),),
        channel_type=ChannelType.MEMORY,
    )
    unpack = PlanStep(
        operation=Op.UNPACK_PACKETS,
        sources=(local("s", half, unpacked),),
        destinations=(local("o", 0, unpacked),),
    )
    gpus = [pair_gpu(0, [[there, unpack]], scratch_chunks=4), pair_gpu(1, [[back]], scratch_chunks=4)]
    return _plan(gpus, protocol="LL", collective="echo")


@pytest.mark.parametrize("half", [0, 2])
def test_whoever_has_all_packets_of_a_move_knows_that_it_is_done(half: int) -> None:
    assert verify_plan(_echo(2, half), strict=True).accepted
    report = verify_plan(_echo(1, half), strict=True)
    assert {violation.kind for violation in report.violations} == {"overwritten"}


def test_packets_do_not_tell_that_other_copies_have_arrived() -> None:
    """Rank 2 gets the same place from rank 0 and, over rank 1, from rank 0 again: nothing orders the two."""
    plan = _echo(2, 0)
    twice = PlanStep(
        operation=Op.PUT_PACKETS,
        sources=(local("i", 0, 1), local("i", 0, 1)),
        destinations=(remote(0, 0), remote(1, 0)),
        channel_type=ChannelType.MEMORY,
    )
    over = PlanStep(
        operation=Op.READ_PUT_PACKETS,
        sources=(local("s", 0),),
        destinations=(remote(0, 0),),
        channel_type=ChannelType.MEMORY,
    )
    end = PlanStep(operation=Op.UNPACK_PACKETS, sources=(local("s", 0),), destinations=(local("o", 0),))

    def gpu(rank: int, step: PlanStep, *peers: int) -> PlanGpu:
        blocks = (
            replace(
                plan.gpus[0].blocks[0],
                steps=(step,),
                channels=(BlockChannels(channel_type=ChannelType.MEMORY, channel_ids=tuple(range(len(peers)))),),
                remote_buffers=(
                    BlockBuffers(access_channel_type=ChannelType.MEMORY, remote_buffer_ids=tuple(range(len(peers)))),
                ),
            ),
        )
        return replace(
            plan.gpus[0],
            id=rank,
            blocks=blocks,
            channels=(GpuChannels(channel_type=ChannelType.MEMORY, connected_to=peers),),
            remote_buffers=tuple(
                RemoteBuffer(rank=peer, buffer=Buffer.SCRATCH, access_channel_types=(ChannelType.MEMORY,))
                for peer in peers
            ),
        )

    report = verify_plan(replace(plan, gpus=(gpu(0, twice, 1, 2), gpu(1, over, 2), gpu(2, end, 0))), strict=True)
    assert "overwritten" in {violation.kind for violation in report.violations}
