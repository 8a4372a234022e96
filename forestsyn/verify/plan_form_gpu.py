"""The form of one rank's part of a plan: its channels, remote buffers, threadblocks and operations."""

from __future__ import annotations

from itertools import pairwise

from forestsyn.ir.plan import BufferRange, ChannelType, Plan, PlanBlock, PlanGpu, PlanStep
from forestsyn.ir.plan import PlanOperation as Op
from forestsyn.ir.program import Buffer
from forestsyn.verify.plan_limits import (
    BARRIERS_MAX,
    BLOCK_BUFFERS_MAX,
    BLOCK_CHANNELS_MAX,
    PACKETS,
    PAIRED,
    PUTS,
    SHAPES,
    STEP_CHANNELS_MAX,
    STEP_RANGES_MAX,
    STEP_SEMAPHORES_MAX,
    STEPS_MAX,
    SYNCHRONIZING,
    kinds_of,
)
from forestsyn.verify.program_report import Effect, Place, ProgramLog

#: Channels with one peer each.
LINKS = (ChannelType.MEMORY, ChannelType.PORT)


class GpuForm:
    """The checks of one rank; `check` adds every fault to `log`."""

    def __init__(self, plan: Plan, rank: int, gpu: PlanGpu, log: ProgramLog) -> None:
        self.plan = plan
        self.rank = rank
        self.gpu = gpu
        self.log = log
        self.counts = dict.fromkeys((*LINKS, ChannelType.SWITCH), 0)
        self.switch_buffers: list[tuple[Buffer | None, tuple[int, ...]]] = []

    def check(self) -> None:
        """All of them."""
        if self.gpu.id != self.rank:
            self._fault("ids", f"its id is {self.gpu.id}, expected its position", Place(rank=self.rank), load=True)
        for channels in self.gpu.channels:
            self._check_channels(channels.channel_type, channels.connected_to)
            if channels.channel_type is ChannelType.SWITCH:
                for group in channels.rank_groups:
                    self._check_group(channels.buffer, group.ranks)
        for number, remote in enumerate(self.gpu.remote_buffers):
            self._check_remote(number, remote.rank, remote.access_channel_types)
        for number, block in enumerate(self.gpu.blocks):
            self._check_block(number, block)

    def _check_channels(self, way: ChannelType, peers: tuple[int, ...]) -> None:
        place = Place(rank=self.rank)
        if way is ChannelType.NONE:
            self._fault("channels", "a channel of type 'none' joins nothing", place)
            return
        if way is not ChannelType.SWITCH:
            self.counts[way] += len(peers)
            if not peers:
                self._fault("channels", f"{way} channels without 'connected_to'", place, load=True)
        for peer in peers:
            if not 0 <= peer < len(self.plan.gpus) or peer == self.rank:
                self._fault("channels", f"a {way} channel to rank {peer}, of {len(self.plan.gpus)}", place)

    def _check_group(self, buffer: Buffer | None, ranks: tuple[int, ...]) -> None:
        self.counts[ChannelType.SWITCH] += 1
        self.switch_buffers.append((buffer, ranks))
        place = Place(rank=self.rank)
        if buffer is None:
            self._fault("channels", "a switch channel without 'buffer_type'", place, load=True)
        wrong = [rank for rank in ranks if not 0 <= rank < len(self.plan.gpus)]
        if wrong or len(set(ranks)) != len(ranks) or self.rank not in ranks:
            self._fault("channels", f"a switch channel of ranks {list(ranks)}, expected each once and its own", place)

    def _check_remote(self, number: int, rank: int, ways: tuple[ChannelType, ...]) -> None:
        place = Place(rank=self.rank)
        if not 0 <= rank < len(self.plan.gpus) or rank == self.rank:
            self._fault("remote-buffers", f"remote buffer {number} is of rank {rank}, expected another rank", place)
        if not ways or any(way not in LINKS for way in ways) or len(set(ways)) != len(ways):
            self._fault(
                "remote-buffers", f"remote buffer {number} is reached through {[str(way) for way in ways]}", place
            )

    def _check_block(self, number: int, block: PlanBlock) -> None:
        place = Place(rank=self.rank, threadblock=number)
        if block.id != number:
            self._fault("ids", f"its id is {block.id}, expected its position", place, load=True)
        own = dict.fromkeys(self.counts, 0)
        for channels in block.channels:
            way = channels.channel_type
            for channel in channels.channel_ids:
                if way not in own or not 0 <= channel < self.counts[way]:
                    text = f"{way} channel {channel}, of {self.counts.get(way, 0)}"
                    self._fault("channels", text, place)
            own[way] = own.get(way, 0) + len(channels.channel_ids)
        buffers: dict[ChannelType, list[int]] = {way: [] for way in LINKS}
        for refs in block.remote_buffers:
            for buffer in refs.remote_buffer_ids:
                remotes = self.gpu.remote_buffers
                way = refs.access_channel_type
                if not 0 <= buffer < len(remotes) or way not in remotes[buffer].access_channel_types:
                    self._fault("remote-buffers", f"remote buffer {buffer} is not to be had through {way}", place)
                buffers.setdefault(way, []).append(buffer)
        for way, count in own.items():
            self._check_limit(f"{way} channels", count, BLOCK_CHANNELS_MAX, place)
        for way, ids in buffers.items():
            self._check_limit(f"remote buffers behind {way} channels", len(ids), BLOCK_BUFFERS_MAX, place)
        steps = len(block.steps) + sum(len(step.steps) for step in block.steps)
        self._check_limit("operations", steps, STEPS_MAX, place, load=True)
        if not self.log.executable:
            return
        for position, step in enumerate(block.steps):
            where = Place(rank=self.rank, threadblock=number, step=position)
            self._check_step(step, where, own, buffers)
            for inner in step.steps:
                if inner.operation is Op.PIPELINE or step.operation is not Op.PIPELINE:
                    self._fault("pipeline", f"operations inside '{step.operation}'", where, load=True)
                self._check_round(step, inner, where)
                self._check_step(inner, where, own, buffers)

    def _check_limit(self, noun: str, count: int, most: int, place: Place, *, load: bool = False) -> None:
        if count > most:
            self._fault("limits", f"{count} {noun}, at most {most} fit", place, load=load)

    def _check_step(
        self, step: PlanStep, place: Place, own: dict[ChannelType, int], buffers: dict[ChannelType, list[int]]
    ) -> None:
        self._check_limit("channels in one operation", len(step.channel_ids), STEP_CHANNELS_MAX, place)
        self._check_limit("semaphores in one operation", len(step.semaphore_ids), STEP_SEMAPHORES_MAX, place)
        self._check_limit("sources", len(step.sources), STEP_RANGES_MAX, place)
        self._check_limit("destinations", len(step.destinations), STEP_RANGES_MAX, place)
        way = step.channel_type
        for channel in step.channel_ids:
            if way is None or not 0 <= channel < own.get(way, 0):
                count = own.get(way, 0) if way else 0
                text = f"'{step.operation}' uses {way} channel {channel} of the threadblock's {count}"
                self._fault("channels", text, place)
        if step.operation in SYNCHRONIZING and (way not in LINKS or not step.channel_ids):
            self._fault("channels", f"'{step.operation}' names no memory or port channel", place)
        if step.operation is Op.FLUSH and way is not ChannelType.PORT:
            self._fault("channels", "'flush' is for port channels; the kernel takes the ids for such", place)
        self._check_meeting(step, place)
        if step.operation is Op.PIPELINE and (
            step.iteration is None or step.iteration.unit_size < 1 or step.iteration.chunk_count < 1 or not step.steps
        ):
            self._fault("pipeline", "a pipeline needs operations, unit_size and num_chunks", place)
        if step.operation in SHAPES:
            self._check_data(step, place, buffers)

    def _check_round(self, pipeline: PlanStep, step: PlanStep, place: Place) -> None:
        """Rounds are counted for `num_chunks` whole chunks, and each takes its slice of every range."""
        if step.operation in PACKETS:
            self._fault("pipeline", f"'{step.operation}' moves all of its packets in every round", place)
        elif step.operation in SHAPES and pipeline.iteration is not None:
            chunks = pipeline.iteration.chunk_count
            shared = step.share is not None and step.share.size > 1
            if shared or any(item.size != chunks for item in (*step.sources, *step.destinations)):
                text = f"'{step.operation}' in a pipeline of {chunks} chunks has ranges of another size"
                self._fault("pipeline", text, place)

    def _check_meeting(self, step: PlanStep, place: Place) -> None:
        if step.operation is Op.BARRIER:
            barrier, count = step.barrier_id, step.threadblock_count
            if barrier is None or not 0 <= barrier < BARRIERS_MAX:
                self._fault("barrier", f"barrier {barrier}, of {BARRIERS_MAX}", place)
            members = sum(
                any(other.operation is Op.BARRIER and other.barrier_id == barrier for other in block.steps)
                for block in self.gpu.blocks
            )
            if count != members:
                text = f"barrier {barrier} waits for {count} threadblocks, but {members} use it"
                self._fault("barrier", text, place)
        if step.operation in (Op.SEMAPHORE_ACQUIRE, Op.SEMAPHORE_RELEASE):
            wrong = [name for name in step.semaphore_ids if not 0 <= name < len(self.gpu.semaphores)]
            if wrong or not step.semaphore_ids:
                self._fault("semaphores", f"semaphores {wrong or 'none'}, of {len(self.gpu.semaphores)}", place)

    def _check_data(self, step: PlanStep, place: Place, buffers: dict[ChannelType, list[int]]) -> None:
        sources, destinations = (
            kinds_of(side, len(ranges))
            for side, ranges in zip(SHAPES[step.operation], (step.sources, step.destinations), strict=True)
        )
        if sources is None or destinations is None:
            text = f"'{step.operation}' with {len(step.sources)} sources and {len(step.destinations)} destinations"
            self._fault("operands", text, place)
            return
        if step.operation in PAIRED and len(sources) != len(destinations):
            text = f"'{step.operation}' pairs {len(sources)} sources with {len(destinations)} destinations"
            self._fault("operands", text, place)
        through_port = step.channel_type is ChannelType.PORT
        if through_port and (step.operation in PUTS or step.operation in (Op.READ_PUT_PACKETS, Op.PUT_PACKETS)):
            if len(step.channel_ids) != len(destinations):
                text = f"'{step.operation}' has {len(step.channel_ids)} channels for {len(destinations)} destinations"
                self._fault("channels", text, place)
        elif step.operation in (Op.PUT_SIGNAL, Op.PUT_SIGNAL_FLUSH):
            self._fault("channels", f"'{step.operation}' signals over port channels only", place)
        elif through_port and any(kind in "rq" for kind in (*sources, *destinations)):
            self._fault("channels", f"'{step.operation}' reaches peers through memory only", place)
        if not through_port and step.operation in PUTS | {Op.PUT_PACKETS}:
            names = {source.buffer for source in step.sources}
            if len(names) > 1:
                text = f"'{step.operation}' over memory takes all sources from the first one's buffer; they differ"
                self._fault("operands", text, place)
        if step.operation is Op.GET and any(
            far.index != near.index for far, near in zip(step.sources, step.destinations, strict=False)
        ):
            self._fault(
                "operands", "'get' swaps the offsets of its two sides in this version; they differ here", place
            )
        if through_port and step.operation is Op.PUT_PACKETS:
            text = "'ppkt' over a port reads the right memory only in the executor's first context; use 'rppkt'"
            self._fault("operands", text, place)
        if step.operation in PAIRED:
            unequal = [
                pair for pair in zip(step.sources, step.destinations, strict=False) if pair[0].size != pair[1].size
            ]
        else:
            unequal = [pair for pair in pairwise((*step.sources, *step.destinations)) if pair[0].size != pair[1].size]
        if unequal:
            text = f"'{step.operation}' joins ranges of {unequal[0][0].size} and {unequal[0][1].size} chunks"
            self._fault("operands", text, place)
        for kind, item in zip((*sources, *destinations), (*step.sources, *step.destinations), strict=True):
            self._check_range(kind, item, step.channel_type, place, buffers)
        share = step.share
        if share is not None and not 0 <= share.threadblock < share.size:
            self._fault("share", f"part {share.threadblock} of {share.size}", place)

    def _check_range(
        self,
        kind: str,
        item: BufferRange,
        way: ChannelType | None,
        place: Place,
        buffers: dict[ChannelType, list[int]],
    ) -> None:
        owner, buffer = self.rank, item.buffer
        if kind in "rq":
            known = buffers.get(way, []) if way is not None else []
            if item.remote is None or not 0 <= item.remote < len(known):
                text = f"remote buffer {item.remote} of the threadblock's {len(known)} behind {way} channels"
                self._fault("remote-buffers", text, place)
                return
            remote = self.gpu.remote_buffers[known[item.remote]]
            owner, buffer = remote.rank, remote.buffer
        elif kind in "gk":
            channels = self._switches(place)
            if item.switch is None or not 0 <= item.switch < len(channels):
                self._fault("channels", f"switch channel {item.switch} of the threadblock's {len(channels)}", place)
                return
            buffer, _ = self.switch_buffers[channels[item.switch]]
        if buffer is None:
            self._fault("operands", "a range names no buffer of this rank", place)
            return
        if kind in "pqk" and buffer is not Buffer.SCRATCH:
            self._fault("operands", f"packets lie in scratch, not in {buffer}", place)
        gpu = self.plan.gpus[owner]
        room = {Buffer.INPUT: gpu.input_chunks, Buffer.OUTPUT: gpu.output_chunks, Buffer.SCRATCH: gpu.scratch_chunks}
        length = room[buffer]
        if buffer is Buffer.SCRATCH and kind in "lrg" and self.plan.protocol == "LL":
            length *= 2
        if item.index < 0 or item.size < 1 or item.index + item.size > length:
            text = f"{buffer}[{item.index}] with {item.size} chunks at rank {owner}, which has {length}"
            self._fault("range", text, place)

    def _switches(self, place: Place) -> list[int]:
        assert place.threadblock is not None, "ranges stand in threadblocks"
        block = self.gpu.blocks[place.threadblock]
        return [
            channel
            for channels in block.channels
            if channels.channel_type is ChannelType.SWITCH
            for channel in channels.channel_ids
        ]

    def _fault(self, kind: str, message: str, place: Place, *, load: bool = False) -> None:
        self.log.violate(kind, message, place, effect=Effect.LOAD if load else Effect.RUN, blocks=True)
