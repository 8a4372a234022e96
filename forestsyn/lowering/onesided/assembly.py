"""Drafts to the parts of a plan: threadblocks for every group, share and lane, their channels, buffers and barriers.

Each share of each group has channels of its own, listed in the same order on all ranks, so that their ends meet.
Where data move whole, a share is an even part of every range (`tbg_info`). A pipeline counts its rounds for whole
chunks, so where data move in slices there are as many times more chunks as shares, and a share has chunks of its own.

Switch channels keep no state, so a rank lists each once, and every rank of the group lists it, in one order for all:
the executor makes them one after the other, each with all its ranks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from forestsyn.errors import UnsupportedError
from forestsyn.ir.plan import (
    BlockBuffers,
    BlockChannels,
    BufferRange,
    ChannelType,
    GpuChannels,
    GroupShare,
    Iteration,
    PlanBlock,
    PlanGpu,
    PlanOperation,
    PlanStep,
    RankGroup,
    RemoteBuffer,
)
from forestsyn.ir.program import Buffer
from forestsyn.ir.target import MSCCLPP
from forestsyn.lowering.onesided.draft import Draft, Group, Lane
from forestsyn.lowering.onesided.storage import Storage

_WAYS = (ChannelType.MEMORY, ChannelType.PORT)


def assemble(
    drafts: Sequence[Sequence[Draft]], shares: int, storage: Storage, slice_bytes: int = 0
) -> tuple[PlanGpu, ...]:
    """The parts of all ranks. drafts: by group of pieces and rank. shares: the equal parts of every chunk.

    slice_bytes: what moves at a time, 0 for whole shares. Raises UnsupportedError where slices are wanted and pieces
    are of unequal size.
    """
    ranks = range(len(drafts[0]))
    groups = sorted({group for own in drafts for draft in own for lane in draft.lanes for group in lane.groups})
    pipeline = Iteration(unit_size=slice_bytes, chunk_count=_common_size(drafts)) if slice_bytes else None
    return tuple(
        _Assembler(
            [group[rank] for group in drafts],
            [group for group in groups if rank in group[1]],
            shares,
            storage,
            pipeline,
        ).gpu(rank)
        for rank in ranks
    )


def _common_size(drafts: Sequence[Sequence[Draft]]) -> int:
    """The chunks of every range: a pipeline has one offset for all ranges of its operations."""
    sizes = {
        item.size
        for group in drafts
        for draft in group
        for lane in draft.lanes
        for step in lane.steps
        for item in (*step.sources, *step.destinations)
    }
    if len(sizes) != 1:
        raise UnsupportedError(
            f"pieces of {sorted(sizes)} chunks cannot pass in slices, which asks for equal ones",
            target=MSCCLPP.name,
            limit="slice",
            hint="leave --slice out",
        )
    return sizes.pop()


class _Assembler:
    def __init__(
        self,
        drafts: Sequence[Draft],
        groups: Sequence[Group],
        shares: int,
        storage: Storage,
        pipeline: Iteration | None,
    ) -> None:
        self.drafts = drafts
        self.groups = groups
        self.shares = shares
        self.storage = storage
        self.pipeline = pipeline
        self.remotes = _remote_buffers(drafts)
        self.numbers = {(buffer.rank, buffer.buffer): number for number, buffer in enumerate(self.remotes)}
        self.connected: dict[ChannelType, list[int]] = {way: [] for way in _WAYS}
        self.barriers = 0

    def gpu(self, rank: int) -> PlanGpu:
        blocks: list[PlanBlock] = []
        for draft in self.drafts:
            for share in range(self.shares):
                blocks += [self._block(len(blocks) + number, lane, share) for number, lane in enumerate(draft.lanes)]
                self.barriers += len(draft.lanes) > 1
        buffers: list[Buffer] = list(dict.fromkeys(buffer for buffer, _ in self.groups))
        links = [
            GpuChannels(channel_type=way, connected_to=tuple(self.connected[way]))
            for way in _WAYS
            if self.connected[way]
        ]
        switches = [
            GpuChannels(
                channel_type=ChannelType.SWITCH,
                buffer=buffer,
                rank_groups=tuple(
                    RankGroup(size=len(ranks), ranks=ranks) for own, ranks in self.groups if own is buffer
                ),
            )
            for buffer in buffers
        ]
        finer = self.shares if self.pipeline else 1
        return PlanGpu(
            id=rank,
            input_chunks=self.storage.input_chunks * finer,
            output_chunks=self.storage.output_chunks * finer,
            scratch_chunks=self.storage.scratch_chunks[rank] * finer,
            blocks=tuple(blocks),
            channels=(*links, *switches),
            remote_buffers=self.remotes,
        )

    def _block(self, number: int, lane: Lane, share: int) -> PlanBlock:
        own = []
        for way in (way for way in _WAYS if lane.peers[way]):
            first = len(self.connected[way])
            self.connected[way] += lane.peers[way]
            own.append(BlockChannels(channel_type=way, channel_ids=tuple(range(first, len(self.connected[way])))))
        if lane.groups:
            ids = tuple(self.groups.index(group) for group in lane.groups)
            own.append(BlockChannels(channel_type=ChannelType.SWITCH, channel_ids=ids))
        return PlanBlock(
            id=number,
            steps=self._steps(lane, share),
            channels=tuple(own),
            remote_buffers=tuple(
                BlockBuffers(
                    access_channel_type=way,
                    remote_buffer_ids=tuple(self.numbers[remote] for remote in lane.remotes[way]),
                )
                for way in _WAYS
                if lane.remotes[way]
            ),
        )

    def _steps(self, lane: Lane, share: int) -> tuple[PlanStep, ...]:
        """The operations for one share of the data, those of the body in a pipeline."""
        steps = tuple(self._shared(step, share) for step in lane.steps)
        if self.pipeline is None or lane.body is None or lane.body[0] == lane.body[1]:
            return steps
        first, end = lane.body
        repeated = PlanStep(operation=PlanOperation.PIPELINE, iteration=self.pipeline, steps=steps[first:end])
        return (*steps[:first], repeated, *steps[end:])

    def _chunks_of(self, item: BufferRange, share: int) -> BufferRange:
        """The part of `item` that a share handles, where chunks are finer."""
        return msgspec.structs.replace(item, index=item.index * self.shares + share * item.size)

    def _shared(self, step: PlanStep, share: int) -> PlanStep:
        """The operation on one share of its data, a barrier with its number."""
        if step.operation is PlanOperation.BARRIER:
            return msgspec.structs.replace(step, barrier_id=self.barriers)
        if self.shares == 1 or not (step.sources or step.destinations):
            return step
        if self.pipeline:
            return msgspec.structs.replace(
                step,
                sources=tuple(self._chunks_of(item, share) for item in step.sources),
                destinations=tuple(self._chunks_of(item, share) for item in step.destinations),
            )
        return msgspec.structs.replace(step, share=GroupShare(threadblock=share, size=self.shares))


def _remote_buffers(drafts: Iterable[Draft]) -> tuple[RemoteBuffer, ...]:
    ways = {remote: way for draft in drafts for lane in draft.lanes for way in _WAYS for remote in lane.remotes[way]}
    return tuple(
        RemoteBuffer(rank=rank, buffer=buffer, access_channel_types=(way,)) for (rank, buffer), way in ways.items()
    )
