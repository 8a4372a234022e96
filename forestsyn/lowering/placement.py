"""Where data lives: the buffers of each rank, and which chunk of which buffer holds what.

One program serves in-place and out-of-place calls of a reduction, since it never writes a chunk of the input before
everyone's use of it: contributions are read from `i`, results are written to `o`, and partial sums go

 - at the root to the result itself;
 - in an allreduce, on other ranks, to the same chunk of `o`, which the final value overwrites later;
 - else to scratch. A reduce may not touch the receive buffer of other ranks than the root, and users of an in-place
   reduce-scatter may rely on the rest of their send buffer, although public programs often reduce in it.

When both buffers are one, `o` is overwritten at a rank only after its own contribution was sent: the final value
depends on it, through messages. Runtimes without fused operations receive before they add, so there all partial
sums of other ranks than the root are in scratch, and each root starts by copying its own contribution to `o`.

Allgather and broadcast differ: in place everything is in `o`; out of place the root sends from `i` and copies its
own part to `o` on the side.

Scratch is never reused between pieces: its size is at most the number of pieces' chunks that a rank adds up.
"""

from __future__ import annotations

from forestsyn.ir.collective import Collective
from forestsyn.ir.program import Buffer, Location
from forestsyn.ir.schedule import Schedule


class Placement:
    """Locations for one schedule; hands out scratch in the order of the calls.

    out_of_place matters to allgather and broadcast only. fused: the target has operations that receive and add.
    """

    def __init__(self, schedule: Schedule, *, out_of_place: bool, fused: bool) -> None:
        self.collective = schedule.collective
        self.chunk_count = schedule.chunk_count
        self.shard = schedule.chunk_count // schedule.rank_count
        self.fused = fused
        self.out_of_place = out_of_place
        self.scratch_chunks = [0] * schedule.rank_count
        self._sums: dict[tuple[int, int], Location] = {}

    @property
    def input_chunks(self) -> int:
        """The size of `i` on every rank."""
        return self.shard if self.collective is Collective.ALLGATHER else self.chunk_count

    @property
    def output_chunks(self) -> int:
        """The size of `o` on every rank."""
        return self.shard if self.collective is Collective.REDUCE_SCATTER else self.chunk_count

    @property
    def copies_own(self) -> bool:
        """True when each root copies its own chunks from `i` to `o`."""
        return not self.fused if self.collective.reduces else self.out_of_place

    def own(self, rank: int, first: int) -> Location:
        """What `rank` itself contributes to the piece that starts at chunk `first`."""
        if not self.collective.reduces and not self.out_of_place:
            return self.result(rank, first)
        offset = first - rank * self.shard if self.collective is Collective.ALLGATHER else first
        return Location(buffer=Buffer.INPUT, offset=offset)

    def result(self, rank: int, first: int) -> Location:
        """Where the piece that starts at chunk `first` ends up on `rank`."""
        offset = first - rank * self.shard if self.collective is Collective.REDUCE_SCATTER else first
        return Location(buffer=Buffer.OUTPUT, offset=offset)

    def partial_sum(self, rank: int, root: int, first: int, count: int) -> Location:
        """Where `rank` adds up a piece of `count` chunks."""
        if rank == root or (self.collective is Collective.ALLREDUCE and self.fused):
            return self.result(rank, first)
        if (rank, first) not in self._sums:
            self._sums[rank, first] = self.take_scratch(rank, count)
        return self._sums[rank, first]

    def take_scratch(self, rank: int, count: int) -> Location:
        """`count` chunks of scratch that nothing else uses."""
        location = Location(buffer=Buffer.SCRATCH, offset=self.scratch_chunks[rank])
        self.scratch_chunks[rank] += count
        return location
