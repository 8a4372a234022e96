"""Executes plans with numbers, in random order: slow and obvious, and sharing no code with the verifier.

Each threadblock is two threads that do every other cell of each operation and meet at `nop` only. Ports work through
their queues some time later. Ranks start their next call as soon as they have ended one, whatever the others do; then
their callers put other numbers into the input and spoil the output. Some actors are slow, others in each run.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from math import lcm

from forestsyn.ir.plan import BufferRange, ChannelType, Plan, PlanStep
from forestsyn.ir.plan import PlanOperation as Op
from forestsyn.ir.program import Buffer

WIDTH = 2
_SPOILED = -1
_REMOTE_PACKETS = {Op.PUT_PACKETS, Op.READ_PUT_PACKETS, Op.REDUCE_SEND_PACKETS, Op.REDUCE_COPY_SEND_PACKETS}
_SUMS_OF_PACKETS = {
    Op.REDUCE_PACKETS,
    Op.REDUCE_SEND_PACKETS,
    Op.REDUCE_COPY_PACKETS,
    Op.REDUCE_COPY_SEND_PACKETS,
}
Task = Iterator[bool]  # yields whether it came further; ends when it is done


def misbehaves(plan: Plan, seed: int, *, root: int = 0, calls: int = 4) -> str | None:
    """What goes wrong in one random execution of `calls` calls, None when nothing does."""
    return _Execution(plan, seed, root, calls).run()


class _Execution:
    def __init__(self, plan: Plan, seed: int, root: int, calls: int) -> None:
        self.plan = plan
        self.random = random.Random(seed)
        self.root = root
        self.calls = calls
        self.ranks = len(plan.gpus)
        sizes = [s.share.size for gpu in plan.gpus for block in gpu.blocks for s in block.steps if s.share]
        self.cells = lcm(WIDTH, *sizes)
        chunks = max(max(gpu.input_chunks, gpu.output_chunks) for gpu in plan.gpus)
        self.user: list[list[object]] = [[_SPOILED] * (2 * chunks * self.cells) for _ in plan.gpus]
        self.scratch: list[list[list[object]]] = [
            [[_SPOILED] * (2 * gpu.scratch_chunks * self.cells) for _ in range(2)] for gpu in plan.gpus
        ]
        self.call = [-1] * self.ranks
        self.signals: dict[tuple[int, str, int], int] = {}
        self.expected: dict[tuple[int, str, int], int] = {}
        self.queues: dict[tuple[int, int], deque[Callable[[], None]]] = {}
        self.wrong: str | None = None

    def run(self) -> str | None:
        actors: dict[object, Task] = {rank: self._rank(rank) for rank in range(self.ranks)}
        for rank, gpu in enumerate(self.plan.gpus):
            for number in range(sum(len(c.connected_to) for c in gpu.channels if c.channel_type == "port")):
                self.queues[rank, number] = deque()
                actors["port", rank, number] = self._port(rank, number)
        running = set(range(self.ranks))
        slow = {actor for actor in actors if self.random.random() < 0.3}
        patience = 0
        while running and self.wrong is None:
            moved = False
            order = list(actors)
            self.random.shuffle(order)
            for actor in order:
                if actor in slow and self.random.random() < 0.9 and patience < 3:
                    continue
                for _ in range(self.random.randrange(1, 30)):
                    step = next(actors[actor], None)
                    if step is None:
                        running.discard(actor)  # type: ignore[arg-type]
                        break
                    moved |= step
            patience = 0 if moved else patience + 1
            if patience > 5:
                return "deadlock"
        return self.wrong

    def _rank(self, rank: int) -> Task:
        for call in range(self.calls):
            self._begin(rank, call)
            threads = [task for block in range(len(self.plan.gpus[rank].blocks)) for task in self._block(rank, block)]
            while threads:
                at = self.random.randrange(len(threads))
                step = next(threads[at], None)
                if step is None:
                    threads.pop(at)
                yield step is not False
            self._check(rank, call)

    def _port(self, rank: int, number: int) -> Task:
        queue = self.queues[rank, number]
        while True:
            if queue:
                queue[0]()
                queue.popleft()
                yield True
            else:
                yield False

    # Threads.

    def _block(self, rank: int, block: int) -> list[Task]:
        meeting = [0]
        return [self._thread(rank, block, thread, meeting) for thread in range(WIDTH)]

    def _thread(self, rank: int, block: int, thread: int, meeting: list[int]) -> Task:
        met = 0
        for step in self.plan.gpus[rank].blocks[block].steps:
            through_port = step.channel_type is ChannelType.PORT
            if step.operation is Op.SYNC:
                met += WIDTH
                yield from self._meet(meeting, met)
            elif step.operation in (Op.SIGNAL, Op.RELAXED_SIGNAL, Op.WAIT, Op.RELAXED_WAIT, Op.FLUSH):
                yield from self._notify(rank, block, step, thread)
            elif through_port and step.operation is Op.READ_PUT_PACKETS:
                for cell in self._packet_cells(rank, step, thread):
                    while not self._is_packet(rank, cell):
                        yield False
                met += WIDTH
                yield from self._meet(meeting, met)
                yield from self._request(rank, block, step, thread)
            elif through_port:
                yield from self._request(rank, block, step, thread)
            else:
                yield from self._work(rank, block, step, thread)
            yield True

    def _meet(self, meeting: list[int], target: int) -> Task:
        meeting[0] += 1
        while meeting[0] < target:
            yield False

    def _notify(self, rank: int, block: int, step: PlanStep, thread: int) -> Task:
        assert step.channel_type is not None
        count = len(step.destinations) if step.operation is Op.FLUSH else len(step.channel_ids)
        for place in range(thread, count, WIDTH):
            number = self._channel(rank, block, step, place)
            way = str(step.channel_type)
            if step.operation is Op.FLUSH:
                yield from self._flush(rank, number)
            elif step.operation in (Op.WAIT, Op.RELAXED_WAIT):
                end = (rank, way, number)
                self.expected[end] = ticket = self.expected.get(end, 0) + 1
                while self.signals.get(end, 0) < ticket:
                    yield False
            elif step.channel_type is ChannelType.PORT:
                self.queues[rank, number].append(partial(self._raise, self._far(rank, way, number)))
            else:
                self._raise(self._far(rank, way, number))
            yield True

    def _flush(self, rank: int, number: int) -> Task:
        done: list[bool] = []
        self.queues[rank, number].append(lambda: done.append(True))
        while not done:
            yield False

    def _request(self, rank: int, block: int, step: PlanStep, thread: int) -> Task:
        packets = step.operation is Op.READ_PUT_PACKETS
        for place in range(thread, len(step.destinations), WIDTH):
            number = self._channel(rank, block, step, place)
            near = step.sources[0 if packets else place]
            owner, buffer = self._remote(rank, block, step, step.destinations[place])
            call = self.call[rank]
            sources = self._range(rank, near.buffer, near, step, packets=packets)
            targets = self._range(owner, buffer, step.destinations[place], step, packets=packets)
            carry = partial(
                self._carry,
                self._memory(rank, near.buffer, call),
                sources,
                self._memory(owner, buffer, call),
                targets,
            )
            self.queues[rank, number].append(carry)
            if step.operation in (Op.PUT_SIGNAL, Op.PUT_SIGNAL_FLUSH):
                self.queues[rank, number].append(partial(self._raise, self._far(rank, "port", number)))
            if step.operation is Op.PUT_SIGNAL_FLUSH:
                yield from self._flush(rank, number)
            yield True

    def _carry(self, near: list[object], sources: range, far: list[object], targets: range) -> None:
        for source, target in zip(sources, targets, strict=True):
            far[target] = near[source]

    def _work(self, rank: int, block: int, step: PlanStep, thread: int) -> Task:
        """Every other cell of what the threads do themselves."""
        if step.operation in (Op.PUT, Op.PUT_PACKETS):
            pairs = [((near,), (far,)) for near, far in zip(step.sources, step.destinations, strict=True)]
        else:
            pairs = [(step.sources, step.destinations)]
        call = self.call[rank]
        for sources, destinations in pairs:
            reads = [self._own(rank, item, step, self._reads_packets(step, n)) for n, item in enumerate(sources)]
            writes = [self._target(rank, block, item, step, n) for n, item in enumerate(destinations)]
            cells = len(reads[0][1]) // (2 if reads[0][0] else 1)
            for cell in range(thread, cells, WIDTH):
                total = 0
                for packets, places, buffer in reads:
                    if packets:
                        while not self._is_packet(rank, places[2 * cell]):
                            yield False
                        total += self._memory(rank, buffer, call)[places[2 * cell]][1]  # type: ignore[index]
                    else:
                        total += self._memory(rank, buffer, call)[places[cell]]  # type: ignore[operator]
                for packets, owner, places, buffer in writes:
                    memory = self._memory(owner, buffer, call)
                    if packets:
                        memory[places[2 * cell]] = memory[places[2 * cell + 1]] = (call, total)
                    else:
                        memory[places[cell]] = total
                yield True

    # Places.

    def _reads_packets(self, step: PlanStep, number: int) -> bool:
        if step.operation in _SUMS_OF_PACKETS:
            return number > 0
        return step.operation in (Op.READ_PUT_PACKETS, Op.UNPACK_PACKETS)

    def _own(self, rank: int, item: BufferRange, step: PlanStep, packets: bool) -> tuple[bool, range, Buffer]:
        assert item.buffer is not None
        return packets, self._range(rank, item.buffer, item, step, packets=packets), item.buffer

    def _target(
        self, rank: int, block: int, item: BufferRange, step: PlanStep, number: int
    ) -> tuple[bool, int, range, Buffer]:
        if item.remote is None:
            assert item.buffer is not None
            copied = step.operation in (Op.REDUCE_COPY_PACKETS, Op.REDUCE_COPY_SEND_PACKETS) and number == 1
            packets = copied or step.operation is Op.COPY_PACKETS
            return packets, rank, self._range(rank, item.buffer, item, step, packets=packets), item.buffer
        owner, buffer = self._remote(rank, block, step, item)
        packets = step.operation in _REMOTE_PACKETS
        return packets, owner, self._range(owner, buffer, item, step, packets=packets), buffer

    def _range(self, rank: int, buffer: Buffer | None, item: BufferRange, step: PlanStep, *, packets: bool) -> range:
        begin, length = item.index * self.cells, item.size * self.cells
        if step.share:
            part = length // step.share.size
            begin, length = begin + part * step.share.threadblock, part
        gpu, collective = self.plan.gpus[rank], self.plan.collective
        if buffer is Buffer.OUTPUT and not self.plan.in_place:
            begin += gpu.input_chunks * self.cells
        elif buffer is Buffer.OUTPUT and collective == "reducescatter":
            begin += rank * gpu.output_chunks * self.cells
        elif buffer is Buffer.INPUT and self.plan.in_place and collective == "allgather":
            begin += rank * gpu.input_chunks * self.cells
        return range(2 * begin, 2 * (begin + length)) if packets else range(begin, begin + length)

    def _memory(self, rank: int, buffer: Buffer | None, call: int) -> list[object]:
        if buffer is not Buffer.SCRATCH:
            return self.user[rank]
        return self.scratch[rank][call % 2 if self.plan.use_double_scratch_buffer else 0]

    def _is_packet(self, rank: int, cell: int) -> bool:
        found = self._memory(rank, Buffer.SCRATCH, self.call[rank])[cell]
        return isinstance(found, tuple) and found[0] == self.call[rank]

    def _packet_cells(self, rank: int, step: PlanStep, thread: int) -> range:
        places = self._range(rank, Buffer.SCRATCH, step.sources[0], step, packets=True)
        return places[2 * thread :: 2 * WIDTH]

    def _remote(self, rank: int, block: int, step: PlanStep, item: BufferRange) -> tuple[int, Buffer]:
        gpu = self.plan.gpus[rank]
        ids = [
            r.remote_buffer_ids
            for r in gpu.blocks[block].remote_buffers
            if r.access_channel_type == step.channel_type
        ]
        assert item.remote is not None
        found = gpu.remote_buffers[ids[0][item.remote]]
        return found.rank, found.buffer

    def _channel(self, rank: int, block: int, step: PlanStep, place: int) -> int:
        gpu = self.plan.gpus[rank]
        ids = [c.channel_ids for c in gpu.blocks[block].channels if c.channel_type == step.channel_type]
        return ids[0][step.channel_ids[place]]

    def _far(self, rank: int, way: str, number: int) -> tuple[int, str, int]:
        """The other end: as many channels to this rank come before it there as here to the peer."""

        def peers(of: int) -> list[int]:
            return [p for c in self.plan.gpus[of].channels if c.channel_type == way for p in c.connected_to]

        peer = peers(rank)[number]
        before = peers(rank)[:number].count(peer)
        back = [n for n, other in enumerate(peers(peer)) if other == rank]
        return peer, way, back[before]

    def _raise(self, end: tuple[int, str, int]) -> None:
        self.signals[end] = self.signals.get(end, 0) + 1

    # Callers.

    def _input(self, rank: int, cell: int, call: int) -> int:
        return (rank + 1) * 1_000_003 + cell * 7919 + (call + 1) * 15_485_863

    def _begin(self, rank: int, call: int) -> None:
        self.call[rank] = call
        gpu = self.plan.gpus[rank]
        for cell in range(len(self.user[rank])):
            self.user[rank][cell] = _SPOILED - rank * 10**9 - call * 10**6
        whole = PlanStep(operation=Op.COPY)
        places = self._range(
            rank, Buffer.INPUT, BufferRange(buffer=Buffer.INPUT, index=0, size=gpu.input_chunks), whole, packets=False
        )
        for cell, place in enumerate(places):
            self.user[rank][place] = self._input(rank, cell, call)

    def _check(self, rank: int, call: int) -> None:
        gpu, collective = self.plan.gpus[rank], self.plan.collective
        if collective == "reduce" and rank != self.root:
            return
        whole = BufferRange(buffer=Buffer.OUTPUT, index=0, size=gpu.output_chunks)
        places = self._range(rank, Buffer.OUTPUT, whole, PlanStep(operation=Op.COPY), packets=False)
        shard = gpu.input_chunks * self.cells
        for cell, place in enumerate(places):
            if collective == "allgather":
                expected = self._input(cell // shard, cell % shard, call)
            elif collective == "broadcast":
                expected = self._input(self.root, cell, call)
            else:
                own = cell + (rank * gpu.output_chunks * self.cells if collective == "reducescatter" else 0)
                expected = sum(self._input(other, own, call) for other in range(self.ranks))
            if self.user[rank][place] != expected:
                self.wrong = f"rank {rank} cell {cell} of call {call}: {self.user[rank][place]}, expected {expected}"
