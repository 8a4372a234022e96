"""A slow, obvious machine that runs a program message by message, in a random order.

It knows nothing of how programs are made: buffers hold multisets of contributions, connections are queues of bounded
length, a step runs as several messages of at most `split` chunks, and any threadblock that can move may move next.
"""

from __future__ import annotations

import random
from collections import defaultdict, deque

from forestsyn.ir.program import Buffer, Operation, Program, Step

Value = tuple[int, int] | None  # (chunk, contributions as base-256 digits by rank); None is not initialised


class Machine:
    """One run of `program`. `split`: chunks per message at most; `depth`: messages that a connection holds."""

    def __init__(self, program: Program, *, in_place: bool, depth: int, split: int, seed: int) -> None:
        self.program = program
        self.in_place = in_place
        self.depth = depth
        self.split = split
        self.random = random.Random(seed)
        self.memory = [self._buffers(rank) for rank in range(len(program.ranks))]
        self.queues: dict[tuple[int, int, int], deque[list[Value]]] = defaultdict(deque)
        self.positions = [[(0, 0)] * len(own.threadblocks) for own in program.ranks]

    def _buffers(self, rank: int) -> dict[Buffer, tuple[list[Value], int]]:
        """Of each buffer the memory behind it, and where in it the buffer starts."""
        own = self.program.ranks[rank]
        chunks, shard = self.program.chunk_count, self.program.chunk_count // len(self.program.ranks)
        gathers, scatters = self.program.collective == "allgather", self.program.collective == "reduce-scatter"
        first = rank * shard if gathers else 0
        given: list[Value] = [(first + chunk, 256**rank) for chunk in range(shard if gathers else chunks)]
        if self.program.collective == "broadcast" and rank != self.program.root:
            given = [None] * chunks
        empty: list[Value] = [None] * (shard if scatters else chunks)
        scratch: list[Value] = [None] * own.scratch_chunks
        if not self.in_place:
            return {Buffer.INPUT: (given, 0), Buffer.OUTPUT: (empty, 0), Buffer.SCRATCH: (scratch, 0)}
        whole = empty if gathers else given
        if gathers:
            whole[first : first + shard] = given
        starts = {Buffer.INPUT: first, Buffer.OUTPUT: rank * shard if scatters else 0}
        return {Buffer.SCRATCH: (scratch, 0), **{buffer: (whole, start) for buffer, start in starts.items()}}

    def run(self) -> None:
        """Run to the end; AssertionError on a deadlock, a bad access or a wrong result."""
        alive = [
            (rank, number) for rank, own in enumerate(self.program.ranks) for number in range(len(own.threadblocks))
        ]
        while alive:
            self.random.shuffle(alive)
            moved = [place for place in alive if self._advance(*place)]
            assert moved, f"deadlock: {[(place, self.positions[place[0]][place[1]]) for place in sorted(alive)[:5]]}"
            alive = [place for place in alive if not self._finished(*place)]
        assert not any(self.queues.values()), "messages nobody receives"
        self._check_result()

    def _finished(self, rank: int, number: int) -> bool:
        return self.positions[rank][number][0] == len(self.program.ranks[rank].threadblocks[number].steps)

    def _advance(self, rank: int, number: int) -> bool:
        """Execute one message of one threadblock, if it can."""
        threadblock = self.program.ranks[rank].threadblocks[number]
        position, done = self.positions[rank][number]
        step = threadblock.steps[position]
        needed = step.depends_on
        if needed is not None and self.positions[rank][needed.threadblock][0] <= needed.step:
            return False
        outgoing = self.queues[rank, threadblock.send_peer, threadblock.channel]
        incoming = self.queues[threadblock.receive_peer, rank, threadblock.channel]
        if step.operation.sends and len(outgoing) >= self.depth:
            return False
        if step.operation.receives and not incoming:
            return False
        count = min(self.split, step.count - done)
        message = incoming.popleft() if step.operation.receives else []
        assert not step.operation.receives or len(message) == count, "both ends disagree on the count"
        result = self._compute(rank, step, done, count, message)
        if step.operation.sends:
            outgoing.append(result)
        done += count
        self.positions[rank][number] = (position, done) if done < step.count else (position + 1, 0)
        return True

    def _compute(self, rank: int, step: Step, done: int, count: int, message: list[Value]) -> list[Value]:
        operation = step.operation
        if operation is Operation.NOP:
            return []
        result = message
        if operation in (Operation.SEND, Operation.COPY):
            result = self._read(rank, step.source.buffer, step.source.offset + done, count)
        elif operation is Operation.REDUCE:
            before = self._read(rank, step.destination.buffer, step.destination.offset + done, count)
            result = _add(before, self._read(rank, step.source.buffer, step.source.offset + done, count))
        elif operation not in (Operation.RECV, Operation.RECV_COPY_SEND):
            result = _add(message, self._read(rank, step.source.buffer, step.source.offset + done, count))
        if operation not in (Operation.SEND, Operation.RECV_REDUCE_SEND):
            self._write(rank, step.destination.buffer, step.destination.offset + done, result)
        return result

    def _read(self, rank: int, buffer: Buffer, offset: int, count: int) -> list[Value]:
        values, start = self.memory[rank][buffer]
        self._check_bounds(rank, buffer, offset, count)
        return values[start + offset : start + offset + count]

    def _write(self, rank: int, buffer: Buffer, offset: int, new: list[Value]) -> None:
        values, start = self.memory[rank][buffer]
        self._check_bounds(rank, buffer, offset, len(new))
        assert self.in_place or buffer is not Buffer.INPUT, "the input is written"
        if self.program.collective == "reduce":
            assert buffer is Buffer.SCRATCH or rank == self.program.root, "another rank's buffer is written"
        values[start + offset : start + offset + len(new)] = new

    def _check_bounds(self, rank: int, buffer: Buffer, offset: int, count: int) -> None:
        own = self.program.ranks[rank]
        sizes = {
            Buffer.INPUT: own.input_chunks,
            Buffer.OUTPUT: own.output_chunks,
            Buffer.SCRATCH: own.scratch_chunks,
        }
        assert 0 <= offset < offset + count <= sizes[buffer], (rank, buffer, offset, count)

    def _check_result(self) -> None:
        ranks = len(self.program.ranks)
        chunks, shard = self.program.chunk_count, self.program.chunk_count // ranks
        total = sum(256**rank for rank in range(ranks))
        for rank in range(ranks):
            values, start = self.memory[rank][Buffer.OUTPUT]
            expected: list[Value] = [(chunk, total) for chunk in range(chunks)]
            if self.program.collective == "allgather":
                expected = [(chunk, 256 ** (chunk // shard)) for chunk in range(chunks)]
            elif self.program.collective == "broadcast":
                assert self.program.root is not None
                expected = [(chunk, 256**self.program.root) for chunk in range(chunks)]
            elif self.program.collective == "reduce-scatter":
                expected = expected[rank * shard : (rank + 1) * shard]
            if self.program.collective != "reduce" or rank == self.program.root:
                assert values[start : start + len(expected)] == expected, f"wrong result at rank {rank}"


def _add(left: list[Value], right: list[Value]) -> list[Value]:
    total: list[Value] = []
    for one, other in zip(left, right, strict=True):
        assert one is not None, "uninitialised memory arrives"
        assert other is not None, "uninitialised memory is added"
        assert one[0] == other[0], "different chunks are added"
        total.append((one[0], one[1] + other[1]))
    return total
