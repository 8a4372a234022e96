"""Where data lives: what each rank contributes, where results end, and where transfers land.

A contribution to a sum lands in scratch, in chunks that nothing else uses; a copy lands in the result, or in
scratch where a rank only passes it on. Scratch chunks of packets are twice as long as plain ones (8 bytes of flags
beside 8 of data), so plain chunk 2k lies at the start of packet chunk k; plain data among packets takes whole
packet chunks.
"""

from __future__ import annotations

from forestsyn.ir.collective import Collective
from forestsyn.ir.plan import BufferRange
from forestsyn.ir.program import Buffer
from forestsyn.ir.schedule import Schedule
from forestsyn.lowering.onesided.events import Transfer
from forestsyn.lowering.onesided.switching import SwitchSchedule


class Storage:
    """Locations for one schedule. packets: transfers land as packets, always in scratch.

    reserved: chunks at the start of everyone's scratch that are used otherwise.
    """

    def __init__(
        self,
        schedule: Schedule | SwitchSchedule,
        transfers: tuple[Transfer, ...],
        *,
        out_of_place: bool,
        packets: bool,
        reserved: int = 0,
    ) -> None:
        self.collective = schedule.collective
        self.shard = schedule.chunk_count // schedule.rank_count
        self.chunk_count = schedule.chunk_count
        self.packets = packets
        self.out_of_place = out_of_place
        self.scratch_chunks = [reserved] * schedule.rank_count
        #: (rank, piece) that a copy reaches, whose sum is therefore only a partial one.
        self.overwritten = {(transfer.destination, transfer.piece) for transfer in transfers if not transfer.reduce}
        self._landings = {transfer.number: self._landing(transfer) for transfer in transfers}

    @property
    def input_chunks(self) -> int:
        """The size of the input on every rank."""
        return self.shard if self.collective is Collective.ALLGATHER else self.chunk_count

    @property
    def output_chunks(self) -> int:
        """The size of the output on every rank."""
        return self.shard if self.collective is Collective.REDUCE_SCATTER else self.chunk_count

    def keeps(self, rank: int, root: int) -> bool:
        """Whether a piece rooted at `root` is a part of the result of `rank`."""
        return self.collective.broadcasts or rank == root

    def own(self, rank: int, first: int, count: int) -> BufferRange:
        """What `rank` contributes to the piece of `count` chunks from `first` on."""
        if not self.collective.reduces and not self.out_of_place:
            return self.result(rank, first, count)
        index = first - rank * self.shard if self.collective is Collective.ALLGATHER else first
        return BufferRange(buffer=Buffer.INPUT, index=index, size=count)

    def result(self, rank: int, first: int, count: int) -> BufferRange:
        """Where the piece ends up on `rank`."""
        index = first - rank * self.shard if self.collective is Collective.REDUCE_SCATTER else first
        return BufferRange(buffer=Buffer.OUTPUT, index=index, size=count)

    def landing(self, transfer: Transfer) -> BufferRange:
        """Where `transfer` arrives, in a buffer of its destination."""
        return self._landings[transfer.number]

    def take_scratch(self, rank: int, count: int) -> BufferRange:
        """`count` chunks of scratch that nothing else uses; packets where the storage holds packets."""
        index = self.scratch_chunks[rank]
        self.scratch_chunks[rank] += count
        return BufferRange(buffer=Buffer.SCRATCH, index=index, size=count)

    def take_plain_scratch(self, rank: int, count: int) -> BufferRange:
        """`count` plain chunks of scratch that nothing else uses."""
        taken = self.take_scratch(rank, count)
        if not self.packets:
            return taken
        return BufferRange(buffer=Buffer.SCRATCH, index=2 * taken.index, size=count)

    def _landing(self, transfer: Transfer) -> BufferRange:
        rank = transfer.destination
        if self.packets or transfer.reduce or not self.keeps(rank, transfer.root):
            return self.take_scratch(rank, transfer.count)
        return self.result(rank, transfer.first, transfer.count)
