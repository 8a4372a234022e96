"""Instances: several copies of a program at work on a part of the data each.

Problem. One threadblock moves data at a limited rate, less than a fast link carries, and stands still while it waits.
r instances of a program have r threadblocks where it had one, so that together they fill the links.

Method. Every chunk is divided by r. A shard of b chunks becomes r blocks of b smaller chunks, and instance i runs the
program on block i of every shard, so chunk c of a buffer becomes ⌊c/b⌋·b·r + i·b + (c mod b). Runs of consecutive
chunks inside a shard stay consecutive. Each instance has channels, threadblocks and scratch of its own; instances
share nothing, so they cannot wait for each other.

References. Instances of MSCCL programs: Cowan et al., MSCCLang (ASPLOS 2023), section 5.1.
"""

from __future__ import annotations

import msgspec

from forestsyn.errors import InternalError
from forestsyn.ir.collective import Collective
from forestsyn.ir.program import Buffer, Dependency, Location, Operation, Program, RankProgram, Step, Threadblock


def replicate(program: Program, instances: int) -> Program:
    """`instances` copies of a lowered program: that many times more chunks, channels, threadblocks and scratch."""
    if instances == 1:
        return program
    copies = [_Copy(program, instance, instances) for instance in range(instances)]
    return msgspec.structs.replace(
        program,
        chunk_count=program.chunk_count * instances,
        channel_count=program.channel_count * instances,
        ranks=tuple(
            RankProgram(
                input_chunks=own.input_chunks * instances,
                output_chunks=own.output_chunks * instances,
                scratch_chunks=own.scratch_chunks * instances,
                threadblocks=tuple(copy.threadblock(rank, block) for copy in copies for block in own.threadblocks),
            )
            for rank, own in enumerate(program.ranks)
        ),
    )


class _Copy:
    """The renumbering of one instance."""

    def __init__(self, program: Program, instance: int, instances: int) -> None:
        self.ranks = program.ranks
        self.instance = instance
        self.instances = instances
        self.first_channel = instance * program.channel_count
        self.shard = program.chunk_count // (len(program.ranks) if Collective(program.collective).shards else 1)

    def threadblock(self, rank: int, block: Threadblock) -> Threadblock:
        """Threadblock `block` of rank `rank` in this instance."""
        return msgspec.structs.replace(
            block,
            channel=block.channel + self.first_channel,
            steps=tuple(self._step(rank, block, step) for step in block.steps),
        )

    def _step(self, rank: int, block: Threadblock, step: Step) -> Step:
        """A step that only moves data names its peer's chunk on the side that it does not use itself."""
        moves = step.operation in (Operation.RECV, Operation.RECV_COPY_SEND)
        source_rank = block.receive_peer if moves else rank
        destination_rank = block.send_peer if step.operation is Operation.SEND else rank
        waits = step.depends_on
        first = self.instance * len(self.ranks[rank].threadblocks)
        return msgspec.structs.replace(
            step,
            source=self._location(source_rank, step.source, step.count),
            destination=self._location(destination_rank, step.destination, step.count),
            depends_on=waits and Dependency(threadblock=waits.threadblock + first, step=waits.step),
        )

    def _location(self, rank: int, location: Location, count: int) -> Location:
        size = self.ranks[rank].scratch_chunks if location.buffer is Buffer.SCRATCH else self.shard
        shard, chunk = divmod(location.offset, size)
        if chunk + count > size:
            raise InternalError(f"a step of {count} chunks from {location.offset} crosses a block of {size}")
        return Location(buffer=location.buffer, offset=(shard * self.instances + self.instance) * size + chunk)
