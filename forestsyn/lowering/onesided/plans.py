"""A schedule to an execution plan: groups of pieces, threadblocks, channels, remote buffers, limits, window.

Problem. A threadblock of MSCCL++ holds few operations (64), channels and remote buffers (16 of a type), moves data
at a limited rate, and its operations work on whole chunks, one after the other.

Method. The pieces are dealt out to groups, about as few as the limits allow. A group has one threadblock on each
rank, which does everything that the rank does for those pieces, in the order of `events`. That threadblock is then
repeated: of G groups, S = ⌊threadblocks / G⌋ copies work on one S-th of every chunk each. All data of one share
stay in the threadblocks of that group and share, on all ranks, each with channels of its own; so threadblocks of a
rank share nothing, and neither barriers nor semaphores are needed.

Guarantee. No deadlock: `events`. Calls may follow one another on the same buffers: `simple` and `packets`. Every
transfer of the schedule crosses its link once, with the bytes that the schedule says.

Complexity. O(transfers) for each number of groups that is tried.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import msgspec

from forestsyn.errors import UnsupportedError
from forestsyn.ir.collective import Collective
from forestsyn.ir.plan import (
    BlockBuffers,
    BlockChannels,
    ChannelType,
    GpuChannels,
    GroupShare,
    Plan,
    PlanBlock,
    PlanGpu,
    PlanStep,
    RemoteBuffer,
)
from forestsyn.ir.program import Protocol
from forestsyn.ir.schedule import Schedule
from forestsyn.ir.target import MSCCLPP
from forestsyn.lowering.onesided.draft import Draft
from forestsyn.lowering.onesided.events import list_transfers, rank_events
from forestsyn.lowering.onesided.limits import check_limits, excess
from forestsyn.lowering.onesided.packets import draft_packets, needs_meeting
from forestsyn.lowering.onesided.simple import draft_simple
from forestsyn.lowering.onesided.storage import Storage
from forestsyn.lowering.onesided.window import choose_window

#: Threadblocks of a rank that share the work, where the limits leave the choice; packets are for small messages.
THREADBLOCKS = 24
THREADBLOCKS_WITH_PACKETS = 8

_WAYS = (ChannelType.MEMORY, ChannelType.PORT)
_SPELLING = {Collective.REDUCE_SCATTER: "reducescatter"}


def lower_plan(
    schedule: Schedule,
    *,
    ports: frozenset[tuple[int, int]],
    out_of_place: bool,
    protocol: Protocol,
    name: str,
    minimum_bytes: int = 0,
    maximum_bytes: int = 0,
    threadblocks: int | None = None,
) -> Plan:
    """The plan that executes `schedule` on MSCCL++.

    ports: the pairs of ranks, in both orders, that no memory mapping joins. out_of_place: the calls that it is for.
    minimum_bytes, maximum_bytes: the window that is wanted, 0 for none; the plan narrows it to the sizes that fit.
    threadblocks: how many of a rank share the work where the limits leave the choice; None: what suits the protocol.
    Raises UnsupportedError, naming rank, limit and value, when no such plan is within the limits.
    """
    packets = _uses_packets(protocol)
    groups, storage, drafts = _draft(schedule, ports, out_of_place=out_of_place, packets=packets)
    wanted = threadblocks or (THREADBLOCKS_WITH_PACKETS if packets else THREADBLOCKS)
    shares = max(1, wanted // groups)
    meets = not packets or needs_meeting(schedule.collective)
    plan = Plan(
        name=name,
        collective=_SPELLING.get(schedule.collective, str(schedule.collective)),
        protocol=str(protocol),
        in_place=not out_of_place,
        reuse_resources=not meets,  # all remote buffers are scratch, and calls follow one another without harm
        use_double_scratch_buffer=not meets,
        gpus=tuple(
            _gpu(rank, [group[rank] for group in drafts], shares, storage) for rank in range(schedule.rank_count)
        ),
    )
    smallest, largest = choose_window(plan, shares, minimum_bytes, maximum_bytes)
    return msgspec.structs.replace(plan, minimum_bytes=smallest, maximum_bytes=largest)


def _uses_packets(protocol: Protocol) -> bool:
    if protocol is Protocol.LL128:
        raise UnsupportedError(
            "MSCCL++ has no protocol LL128", target=MSCCLPP.name, limit="protocol", hint="use Simple or LL"
        )
    return protocol is Protocol.LL


def _draft(
    schedule: Schedule, ports: frozenset[tuple[int, int]], *, out_of_place: bool, packets: bool
) -> tuple[int, Storage, list[list[Draft]]]:
    """Few groups whose threadblocks are within the limits, and the drafts by group and rank."""
    transfers = list_transfers(schedule)
    most = min(len(schedule.pieces), MSCCLPP.threadblocks_max)
    groups = 1
    while True:
        storage = Storage(schedule, transfers, out_of_place=out_of_place, packets=packets)
        drafts = [
            [
                (draft_packets if packets else draft_simple)(events, storage, ports)
                for events in rank_events(transfers, schedule.rank_count, group, groups)
            ]
            for group in range(groups)
        ]
        ratio = max(excess(draft) for group in drafts for draft in group)
        if ratio <= 1:
            return groups, storage, drafts
        if groups == most:
            check_limits(draft for group in drafts for draft in group)
        # What all pieces share does not shrink with the groups, so a step by the ratio hardly goes too far.
        groups = min(most, max(groups + 1, int(groups * min(ratio, Fraction(2)))))


def _gpu(rank: int, drafts: list[Draft], shares: int, storage: Storage) -> PlanGpu:
    remotes = _remote_buffers(drafts)
    numbers = {(buffer.rank, buffer.buffer): number for number, buffer in enumerate(remotes)}
    blocks: list[PlanBlock] = []
    connected: dict[ChannelType, list[int]] = {way: [] for way in _WAYS}
    for draft in drafts:
        for share in range(shares):
            own = []
            for way in (way for way in _WAYS if draft.peers[way]):
                first = len(connected[way])
                connected[way] += draft.peers[way]
                own.append(BlockChannels(channel_type=way, channel_ids=tuple(range(first, len(connected[way])))))
            blocks.append(
                PlanBlock(
                    id=len(blocks),
                    steps=tuple(_shared(step, share, shares) for step in draft.steps),
                    channels=tuple(own),
                    remote_buffers=tuple(
                        BlockBuffers(
                            access_channel_type=way,
                            remote_buffer_ids=tuple(numbers[remote] for remote in draft.remotes[way]),
                        )
                        for way in _WAYS
                        if draft.remotes[way]
                    ),
                )
            )
    return PlanGpu(
        id=rank,
        input_chunks=storage.input_chunks,
        output_chunks=storage.output_chunks,
        scratch_chunks=storage.scratch_chunks[rank],
        blocks=tuple(blocks),
        channels=tuple(
            GpuChannels(channel_type=way, connected_to=tuple(connected[way])) for way in _WAYS if connected[way]
        ),
        remote_buffers=remotes,
    )


def _remote_buffers(drafts: Iterable[Draft]) -> tuple[RemoteBuffer, ...]:
    ways = {remote: way for draft in drafts for way in _WAYS for remote in draft.remotes[way]}
    return tuple(
        RemoteBuffer(rank=rank, buffer=buffer, access_channel_types=(way,)) for (rank, buffer), way in ways.items()
    )


def _shared(step: PlanStep, share: int, shares: int) -> PlanStep:
    """The operation on one share of its data."""
    if shares == 1 or not (step.sources or step.destinations):
        return step
    return msgspec.structs.replace(step, share=GroupShare(threadblock=share, size=shares))
