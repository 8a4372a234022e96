"""Executes plans with numbers, in random order: slow and obvious, and sharing no code with the verifier.

Each threadblock is two threads that do every other cell of each operation and meet at `nop` and barriers only.
Pipelines take two rounds. What goes through a switch arrives some time later, and `signal` alone makes sure that it
has. Ports work through their queues some time later. Ranks start their next call as soon as they have ended one,
whatever the others do; then their callers put other numbers into the input and spoil the output. Some actors are
slow, others in each run.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from math import lcm

import msgspec

from forestsyn.ir.plan import BufferRange, ChannelType, GroupShare, Plan, PlanStep
from forestsyn.ir.plan import PlanOperation as Op
from forestsyn.ir.program import Buffer

WIDTH = 2
_SPOILED = -1
_REMOTE_PACKETS = {
    Op.GROUP_STORE_PACKETS,
    Op.PUT_PACKETS,
    Op.READ_PUT_PACKETS,
    Op.REDUCE_SEND_PACKETS,
    Op.REDUCE_COPY_SEND_PACKETS,
}
_SUMS_OF_PACKETS = {
    Op.REDUCE_PACKETS,
    Op.REDUCE_SEND_PACKETS,
    Op.REDUCE_COPY_PACKETS,
    Op.REDUCE_COPY_SEND_PACKETS,
}
_SWITCHED = {Op.GROUP_LOAD_REDUCE_STORE, Op.GROUP_STORE, Op.GROUP_STORE_PACKETS}
Task = Iterator[bool]  # yields whether it came further; ends when it is done


def _unrolled(plan: Plan) -> Plan:
    """`plan` with every pipeline written out as two rounds, each of which takes one half of every range."""

    def halves(step: PlanStep) -> list[PlanStep]:
        return [
            msgspec.structs.replace(inner, share=GroupShare(threadblock=part, size=2))
            for part in range(2)
            for inner in step.steps
        ]

    gpus = []
    for gpu in plan.gpus:
        blocks = [
            msgspec.structs.replace(
                block,
                steps=tuple(
                    each
                    for step in block.steps
                    for each in (halves(step) if step.operation is Op.PIPELINE else [step])
                ),
            )
            for block in gpu.blocks
        ]
        gpus.append(msgspec.structs.replace(gpu, blocks=tuple(blocks)))
    return msgspec.structs.replace(plan, gpus=tuple(gpus))


def misbehaves(plan: Plan, seed: int, *, root: int = 0, calls: int = 4) -> str | None:
    """What goes wrong in one random execution of `calls` calls, None when nothing does."""
    return _Execution(plan, seed, root, calls).run()


class _Execution:
    def __init__(self, plan: Plan, seed: int, root: int, calls: int) -> None:
        self.plan = plan = _unrolled(plan)
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
        self.stores: list[deque[Callable[[], None]]] = [deque() for _ in plan.gpus]  # on their way through a switch
        self.barriers: dict[tuple[int, int], int] = {}
        self.wrong: str | None = None

    def run(self) -> str | None:
        actors: dict[object, Task] = {rank: self._rank(rank) for rank in range(self.ranks)}
        for rank, gpu in enumerate(self.plan.gpus):
            for number in range(sum(len(c.connected_to) for c in gpu.channels if c.channel_type == "port")):
                self.queues[rank, number] = deque()
                actors["port", rank, number] = self._drain(self.queues[rank, number])
            actors["switch", rank] = self._drain(self.stores[rank])
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
            self._arrive(rank)  # whatever a kernel wrote is there when it has ended
            self._check(rank, call)

    def _drain(self, queue: deque[Callable[[], None]]) -> Task:
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
            elif step.operation is Op.BARRIER:
                met += WIDTH
                yield from self._meet(meeting, met)
                if thread == 0:
                    yield from self._barrier(rank, step)
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

    def _barrier(self, rank: int, step: PlanStep) -> Task:
        assert step.barrier_id is not None
        assert step.threadblock_count is not None
        name = (rank, step.barrier_id)
        self.barriers[name] = ticket = self.barriers.get(name, 0) + 1
        while self.barriers[name] < -(-ticket // step.threadblock_count) * step.threadblock_count:
            yield False

    def _arrive(self, rank: int) -> None:
        while self.stores[rank]:
            self.stores[rank].popleft()()

    def _notify(self, rank: int, block: int, step: PlanStep, thread: int) -> Task:
        assert step.channel_type is not None
        count = len(step.destinations) if step.operation is Op.FLUSH else len(step.channel_ids)
        for place in range(thread, count, WIDTH):
            number = self._channel(rank, block, step, place)
            way = str(step.channel_type)
            if step.operation is Op.SIGNAL:
                self._arrive(rank)
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
            reads = [place for n, item in enumerate(sources) for place in self._sources(rank, block, item, step, n)]
            writes = [
                place for n, item in enumerate(destinations) for place in self._targets(rank, block, item, step, n)
            ]
            cells = len(reads[0][2]) // (2 if reads[0][0] else 1)
            for cell in range(thread, cells, WIDTH):
                total = 0
                for packets, owner, places, buffer in reads:
                    if packets:
                        while not self._is_packet(rank, places[2 * cell]):
                            yield False
                        total += self._memory(owner, buffer, call)[places[2 * cell]][1]  # type: ignore[index]
                    else:
                        total += self._memory(owner, buffer, call)[places[cell]]  # type: ignore[operator]
                for packets, owner, places, buffer in writes:
                    at = places[2 * cell : 2 * cell + 2] if packets else places[cell : cell + 1]
                    value = (call, total) if packets else total
                    store = partial(self._store, self._memory(owner, buffer, call), at, value)
                    if step.operation in _SWITCHED:
                        self.stores[rank].append(store)
                    else:
                        store()
                yield True

    def _store(self, memory: list[object], places: range, value: object) -> None:
        for place in places:
            memory[place] = value

    # Places.

    def _reads_packets(self, step: PlanStep, number: int) -> bool:
        if step.operation in _SUMS_OF_PACKETS:
            return number > 0
        return step.operation in (Op.READ_PUT_PACKETS, Op.UNPACK_PACKETS, Op.GROUP_STORE_PACKETS)

    def _sources(
        self, rank: int, block: int, item: BufferRange, step: PlanStep, number: int
    ) -> list[tuple[bool, int, range, Buffer]]:
        packets = self._reads_packets(step, number)
        return [
            (packets, owner, self._range(owner, buffer, item, step, packets=packets), buffer)
            for owner, buffer in self._owners(rank, block, item, step)
        ]

    def _targets(
        self, rank: int, block: int, item: BufferRange, step: PlanStep, number: int
    ) -> list[tuple[bool, int, range, Buffer]]:
        if item.buffer is not None:
            copied = step.operation in (Op.REDUCE_COPY_PACKETS, Op.REDUCE_COPY_SEND_PACKETS) and number == 1
            packets = copied or step.operation is Op.COPY_PACKETS
        else:
            packets = step.operation in _REMOTE_PACKETS
        return [
            (packets, owner, self._range(owner, buffer, item, step, packets=packets), buffer)
            for owner, buffer in self._owners(rank, block, item, step)
        ]

    def _owners(self, rank: int, block: int, item: BufferRange, step: PlanStep) -> list[tuple[int, Buffer]]:
        """Whose buffers a range means: its own, a peer's, or those of all ranks of a switch."""
        if item.buffer is not None:
            return [(rank, item.buffer)]
        if item.remote is not None:
            return [self._remote(rank, block, step, item)]
        gpu = self.plan.gpus[rank]
        groups = [(own.buffer, group.ranks) for own in gpu.channels for group in own.rank_groups]
        ids = [c.channel_ids for c in gpu.blocks[block].channels if c.channel_type == "switch"]
        assert item.switch is not None
        buffer, ranks = groups[ids[0][item.switch]]
        assert buffer is not None
        return [(owner, buffer) for owner in ranks]

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
