"""Channels and threadblocks: as few channels as the runtime's limits allow, threadblocks that fuse most.

Problem. A threadblock has at most one send peer, one receive peer and `steps_max` steps; a connection (source,
destination, channel) belongs to one threadblock at either end. A message that arrives from A and leaves for C is
forwarded in one step, without a second read of memory, when one threadblock has both A and C.

Method. For c = 1, 2, … channels (see `channels`): on each (rank, channel) choose the pairs (receive peer, send peer)
by a matching that fuses the most chunks; every other peer gets a threadblock of its own, so that receiving and
sending overlap. Where a rank has more threadblocks than the target, left-over receivers and senders share one. The
first c within all limits is taken.

Invariant. The numbers of steps counted here are upper bounds: later stages may join more, at roots, never less.
Complexity. O(c·M) plus the matchings.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import msgspec

from forestsyn.errors import UnsupportedError
from forestsyn.ir.program import Operation
from forestsyn.ir.schedule import Schedule
from forestsyn.ir.target import Target
from forestsyn.lowering.channels import channel_choices
from forestsyn.lowering.matching import match_heaviest
from forestsyn.lowering.remedies import remedy
from forestsyn.lowering.resources import Resources


class Block(NamedTuple):
    """A threadblock to be: its channel and peers; −1 means none."""

    channel: int
    receive_peer: int
    send_peer: int


class Threadblocks(msgspec.Struct, frozen=True, kw_only=True):
    """Who executes what. blocks: per rank. Global ids number the blocks of all ranks one after the other.

    send_block, receive_block: the global id of the threadblock at either end of each transfer.
    """

    channel_count: int
    blocks: tuple[tuple[Block, ...], ...]
    send_block: tuple[int, ...]
    receive_block: tuple[int, ...]


def choose_threadblocks(
    schedule: Schedule, target: Target, *, reserved: tuple[int, ...], resources: Resources
) -> Threadblocks:
    """Threadblocks on the fewest channels; `reserved[rank]` further ones are left free for local copies.

    Raises UnsupportedError, which names rank, limit and value, when no number of channels fits the target.
    """
    error: UnsupportedError | None = None
    for channels in channel_choices(schedule, target, resources):
        work = _Work(schedule, target, channels, apart=resources.streams > 0)
        error_here = work.find_overload()
        if error_here is None:
            blocks = tuple(work.blocks_of(rank, reserved[rank]) for rank in range(schedule.rank_count))
            error_here = _find_crowd(blocks, target, reserved)
            if error_here is None:
                return _number(schedule, channels, blocks)
        if error is None or error.limit != "threadblocks_max":
            error = error_here
    assert error is not None  # there was at least one choice
    raise error


class _Work:
    """How much every peer of every (rank, channel) has to do; counters keyed by (rank, channel, peer, …)."""

    def __init__(self, schedule: Schedule, target: Target, channels: list[int], *, apart: bool) -> None:
        self.target = target
        self.apart = apart
        self.sends: Counter[tuple[int, int, int]] = Counter()
        self.receives: Counter[tuple[int, int, int]] = Counter()
        self.forwards: Counter[tuple[int, int, int, int]] = Counter()
        self.forwarded_chunks: Counter[tuple[int, int, int, int]] = Counter()
        self.senders: list[list[tuple[int, int]]] = [[] for _ in range(schedule.rank_count)]
        self.receivers: list[list[tuple[int, int]]] = [[] for _ in range(schedule.rank_count)]
        fused = Operation.RECV_COPY_SEND in target.operations
        self._count_ends(schedule, channels, adding=1 if fused else 2)
        if fused:
            self._count_forwards(schedule, channels)

    def _count_ends(self, schedule: Schedule, channels: list[int], *, adding: int) -> None:
        """adding: the number of steps that receive a contribution and add it."""
        ends = zip(schedule.source.tolist(), schedule.destination.tolist(), schedule.reduce.tolist(), strict=True)
        for channel, (source, destination, reduce) in zip(channels, ends, strict=True):
            self.sends[source, channel, destination] += 1
            self.receives[destination, channel, source] += adding if reduce else 1
        for counter, peers in ((self.sends, self.senders), (self.receives, self.receivers)):
            for rank, channel, peer in sorted(counter):
                peers[rank].append((channel, peer))

    def _count_forwards(self, schedule: Schedule, channels: list[int]) -> None:
        """Joins at the root of an allreduce are left out: they depend on what is joined elsewhere."""
        source, destination = schedule.source.tolist(), schedule.destination.tolist()
        reduce, piece = schedule.reduce.tolist(), schedule.piece.tolist()
        starts, dependencies = schedule.dependency_starts.tolist(), schedule.dependencies.tolist()
        for transfer, channel in enumerate(channels):
            for needed in dependencies[starts[transfer] : starts[transfer + 1]]:
                if reduce[needed] == reduce[transfer] and channels[needed] == channel:
                    key = (source[transfer], channel, source[needed], destination[transfer])
                    self.forwards[key] += 1
                    self.forwarded_chunks[key] += schedule.pieces[piece[transfer]].count

    def find_overload(self) -> UnsupportedError | None:
        """A connection with too many steps, or a rank with too many peers on one channel."""
        for side, counter in (("sends to", self.sends), ("receives from", self.receives)):
            for (rank, channel, peer), steps in sorted(counter.items()):
                if steps > self.target.steps_max:
                    what = f"rank {rank} on channel {channel}, which {side} rank {peer},"
                    return _refuse(self.target, "steps_max", steps, what, rank, "steps of a threadblock")
            peers = Counter((rank, channel) for rank, channel, _ in counter)
            for (rank, channel), count in sorted(peers.items()):
                if count > self.target.peers_per_channel_max:
                    what = f"rank {rank}, which {side} its peers on channel {channel},"
                    return _refuse(self.target, "peers_per_channel_max", count, what, rank, "peers")
        return None

    def blocks_of(self, rank: int, reserved: int) -> tuple[Block, ...]:
        """The threadblocks of one rank, sorted."""
        senders, receivers = self.senders[rank], self.receivers[rank]
        paired: list[Block] = []
        for channel in sorted({channel for channel, _ in senders + receivers}):
            paired += self._fusing_pairs(
                rank,
                channel,
                [peer for at, peer in receivers if at == channel],
                [peer for at, peer in senders if at == channel],
            )
        alone_in = sorted(set(receivers) - {(block.channel, block.receive_peer) for block in paired})
        alone_out = sorted(set(senders) - {(block.channel, block.send_peer) for block in paired})
        excess = len(paired) + len(alone_in) + len(alone_out) + reserved - self.target.threadblocks_max
        for channel, peer in list(alone_in):
            if excess <= 0:
                break
            partner = next(
                (to for at, to in alone_out if at == channel and self._fits(rank, channel, peer, to, apart=False)), -1
            )
            if partner >= 0:
                paired.append(Block(channel, peer, partner))
                alone_in.remove((channel, peer))
                alone_out.remove((channel, partner))
                excess -= 1
        paired += [Block(channel, peer, -1) for channel, peer in alone_in]
        paired += [Block(channel, -1, peer) for channel, peer in alone_out]
        return tuple(sorted(paired))

    def _fusing_pairs(self, rank: int, channel: int, sources: list[int], targets: list[int]) -> list[Block]:
        weights = [
            [
                self.forwarded_chunks[rank, channel, source, to]
                if self._fits(rank, channel, source, to, apart=self.apart)
                else 0
                for to in targets
            ]
            for source in sources
        ]
        return [Block(channel, sources[row], targets[column]) for row, column in match_heaviest(weights)]

    def _fits(self, rank: int, channel: int, source: int, to: int, *, apart: bool) -> bool:
        """Whether both fit into one threadblock; `apart`: only if all that is received there is sent on."""
        receives, sends = self.receives[rank, channel, source], self.sends[rank, channel, to]
        steps = receives + sends - self.forwards[rank, channel, source, to]
        return steps <= (min(self.target.steps_max, max(receives, sends)) if apart else self.target.steps_max)


def _find_crowd(
    blocks: tuple[tuple[Block, ...], ...], target: Target, reserved: tuple[int, ...]
) -> UnsupportedError | None:
    for rank, own in enumerate(blocks):
        count = len(own) + reserved[rank]
        if count > target.threadblocks_max:
            return _refuse(target, "threadblocks_max", count, f"rank {rank}", rank, "threadblocks")
    return None


def _refuse(target: Target, limit: str, value: int, what: str, rank: int, noun: str) -> UnsupportedError:
    return UnsupportedError(
        f"{what} needs {value} {noun}, {target.name} has {getattr(target, limit)}",
        target=target.name,
        limit=limit,
        value=value,
        rank=rank,
        hint=remedy(target, limit),
    )


def _number(schedule: Schedule, channels: list[int], blocks: tuple[tuple[Block, ...], ...]) -> Threadblocks:
    senders: dict[tuple[int, int, int], int] = {}
    receivers: dict[tuple[int, int, int], int] = {}
    number = 0
    for rank, own in enumerate(blocks):
        for block in own:
            senders[rank, block.channel, block.send_peer] = number
            receivers[rank, block.channel, block.receive_peer] = number
            number += 1
    ends = list(zip(schedule.source.tolist(), schedule.destination.tolist(), channels, strict=True))
    return Threadblocks(
        channel_count=max(channels) + 1,
        blocks=blocks,
        send_block=tuple(senders[source, channel, destination] for source, destination, channel in ends),
        receive_block=tuple(receivers[destination, channel, source] for source, destination, channel in ends),
    )
