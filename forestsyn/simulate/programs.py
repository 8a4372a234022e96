"""Threadblock programs as machines.

Facts, from the runtimes' msccl_interpreter.h and prims_simple.h. A step on cnt chunks is ⌈cnt / m⌉ messages of at
most m chunks, a message a few slices. A connection holds `messages_in_flight` messages, however small: slice i of
message j goes into the place of slice i of message j − depth, so it waits until that one was taken. A receive waits
for its slice, and gives the place back when it is done with it. A step waits for flags before its first message and
raises its own after the last; a nop only adds what it waits for to the next step.

Both counters of a FIFO only rise, tile after tile, so waits of tile t are those of tile 0 plus t times what a tile
adds. A flag of a later tile, or of a later flagged step of the same threadblock, serves as well, as in the runtimes.

Assumptions. The overhead of a message is paid once all it needs for its first slice is there: it stands for barriers
between the polling and the moving. Word that a place is free takes no time (over networks, the proxies' own rings
hide it). A message that is only received is copied at the rate of the connection's threadblocks.
"""

from __future__ import annotations

import msgspec
import numpy as np

from forestsyn.errors import InputError
from forestsyn.ir.profile import ProtocolCost
from forestsyn.ir.program import Operation, Program, RankProgram, Step, Threadblock
from forestsyn.ir.topology import Topology
from forestsyn.simulate.connections import Connection, Connections, receive_key, send_key
from forestsyn.simulate.machine import (
    DEPENDENCY,
    LOCAL,
    MESSAGE,
    NEVER,
    SLOT,
    Counter,
    Label,
    Machine,
    Move,
    Thread,
)


class Splitting(msgspec.Struct, frozen=True, kw_only=True):
    """How steps become slices. message_chunks: m. slices: (chunks, slices that hold data) of each size of message."""

    message_chunks: int
    slices: tuple[tuple[int, int], ...]

    def messages(self, count: int) -> list[tuple[int, int]]:
        """(chunks, slices) of each message of a step on `count` chunks."""
        slices = dict(self.slices)
        sizes = [min(self.message_chunks, count - first) for first in range(0, count, self.message_chunks)]
        return [(size, slices[size]) for size in sizes]


def message_sizes(program: Program, message_chunks: int) -> set[int]:
    """The numbers of chunks that messages of `program` have."""
    counts = {step.count for own in program.ranks for block in own.threadblocks for step in block.steps}
    sizes = {min(message_chunks, count) for count in counts} | {count % message_chunks for count in counts}
    return {size for size in sizes if size > 0}


def translate_program(
    program: Program,
    topology: Topology,
    connections: Connections,
    cost: ProtocolCost,
    copy_rate: float,
    splitting: Splitting,
) -> Machine:
    """The machine of `program`; `copy_rate` in bytes per µs. Raises InputError where threadblocks share an end."""
    translator = _Translator(program, connections, cost, copy_rate, splitting)
    threads = tuple(
        translator.thread(rank, number, block)
        for rank, own in enumerate(program.ranks)
        for number, block in enumerate(own.threadblocks)
    )
    return Machine(
        threads=threads,
        counters=tuple(translator.counters),
        paths=connections.paths,
        capacity=np.array([1e3 * float(link.bandwidth) for link in topology.links]),
    )


class _Channel(msgspec.Struct, frozen=True):
    """One connection's counters, and the slices of its sender's messages of one tile."""

    connection: Connection
    sent: int
    taken: int
    slices: tuple[int, ...]


class _Translator:
    def __init__(
        self,
        program: Program,
        connections: Connections,
        cost: ProtocolCost,
        copy_rate: float,
        splitting: Splitting,
    ) -> None:
        self.program, self.cost, self.copy_rate, self.splitting = program, cost, copy_rate, splitting
        self.counters: list[Counter] = [Counter(kind=DEPENDENCY, poster=-1)]  # the one that nobody raises
        self.first = np.cumsum([0, *(len(own.threadblocks) for own in program.ranks)]).tolist()
        self.flags: dict[tuple[int, int], int] = {}
        self.channels = self._channels(connections)

    def thread(self, rank: int, number: int, block: Threadblock) -> Thread:
        """All moves of one threadblock."""
        rows = _Rows(self, rank, number, block)
        waits: list[tuple[int, int, int]] = []
        for position, step in enumerate(block.steps):
            waits += self._dependency(self.program.ranks[rank], rank, step)
            if step.operation is Operation.NOP and position + 1 < len(block.steps):
                continue
            rows.add(position, step, tuple(waits))
            waits = []
        return Thread(rank=rank, number=number, moves=tuple(rows.moves), labels=tuple(rows.labels))

    def flag(self, rank: int, number: int) -> int:
        """The counter of a threadblock's flags, −1 where nobody waits for them."""
        return self.flags.get((rank, number), -1)

    def _channels(self, connections: Connections) -> dict[tuple[int, int, int], _Channel]:
        senders: dict[tuple[int, int, int], int] = {}
        receivers: dict[tuple[int, int, int], int] = {}
        slices: dict[tuple[int, int, int], tuple[int, ...]] = {}
        for rank, own in enumerate(self.program.ranks):
            for number, block in enumerate(own.threadblocks):
                thread = self.first[rank] + number
                if any(step.operation.receives for step in block.steps):
                    self._claim(receivers, receive_key(rank, block), thread)
                sending = [step for step in block.steps if step.operation.sends]
                if sending:
                    key = send_key(rank, block)
                    self._claim(senders, key, thread)
                    messages = [self.splitting.messages(step.count) for step in sending]
                    slices[key] = tuple(count for row in messages for _, count in row)
                for step in block.steps:
                    self._need_flag(rank, step)
        channels = {}
        for key, connection in connections.by_key.items():
            sent = self._new(MESSAGE, senders.get(key, -1))
            taken = self._new(SLOT, receivers.get(key, -1))
            channels[key] = _Channel(connection, sent, taken, slices.get(key, ()))
        return channels

    def _claim(self, owners: dict[tuple[int, int, int], int], key: tuple[int, int, int], thread: int) -> None:
        if owners.setdefault(key, thread) != thread:
            raise InputError(
                f"two threadblocks share one end of the connection rank {key[0]} → rank {key[1]} on channel {key[2]}",
                where=self.program.name,
                hint="'forestsyn verify' lists all that is wrong with the program",
            )

    def _need_flag(self, rank: int, step: Step) -> None:
        waited = step.depends_on
        if waited is None or (rank, waited.threadblock) in self.flags:
            return
        blocks = self.program.ranks[rank].threadblocks
        if not 0 <= waited.threadblock < len(blocks):
            return
        flagged = _flagged(blocks[waited.threadblock])
        self.flags[rank, waited.threadblock] = self._new(DEPENDENCY, self.first[rank] + waited.threadblock, flagged)

    def _new(self, kind: str, poster: int, steps: tuple[int, ...] = ()) -> int:
        self.counters.append(Counter(kind=kind, poster=poster, steps=steps))
        return len(self.counters) - 1

    def _dependency(self, own: RankProgram, rank: int, step: Step) -> list[tuple[int, int, int]]:
        """The first flag at or after the step that is waited for ends the wait."""
        if step.depends_on is None:
            return []
        number = self.flag(rank, step.depends_on.threadblock)
        if number < 0:
            return [(0, NEVER, 0)]
        steps = self.counters[number].steps
        flags = next((place for place, flagged in enumerate(steps, 1) if flagged >= step.depends_on.step), NEVER)
        return [(number, flags, len(steps))]


class _Rows:
    """The moves of one threadblock, one after the other, and how far its two connections have come."""

    def __init__(self, translator: _Translator, rank: int, number: int, block: Threadblock) -> None:
        self.moves: list[Move] = []
        self.labels: list[Label] = []
        self._splitting, self._cost, self._copy_rate = translator.splitting, translator.cost, translator.copy_rate
        self._flag = translator.flag(rank, number)
        self._block = block
        self._incoming = translator.channels.get(receive_key(rank, block))
        self._outgoing = translator.channels.get(send_key(rank, block))
        self._taken = self._messages_sent = 0
        self._starts = np.cumsum([0, *self._outgoing.slices]).tolist() if self._outgoing else []
        counts = [step.count for step in block.steps if step.operation.receives]
        self._taken_in_tile = sum(slices for count in counts for _, slices in self._splitting.messages(count))

    def add(self, position: int, step: Step, waits: tuple[tuple[int, int, int], ...]) -> None:
        """The moves of one step."""
        operation = step.operation
        if operation is Operation.NOP or step.count <= 0:
            self._add_empty(position, step, waits)
        elif operation.sends or operation.receives:
            for message, (chunks, slices) in enumerate(self._splitting.messages(step.count)):
                for part in range(slices):
                    first = () if message or part else waits
                    self._add_slice(position, step, first, chunks, slices, part)
                self._messages_sent += operation.sends
        else:
            move = Move(waits, self._cost.step_us, step.count, LOCAL, self._copy_rate, ())
            self._append(move, Label(position, str(operation), True, True, None, None, step.count))
        if self._flag >= 0 and step.flagged and operation is not Operation.NOP:
            last = self.moves[-1]
            self.moves[-1] = last._replace(posts=(*last.posts, (self._flag, 0.0)))

    def _add_empty(self, position: int, step: Step, waits: tuple[tuple[int, int, int], ...]) -> None:
        move = Move(waits, 0.0, 0.0, LOCAL, self._copy_rate, ())
        self._append(move, Label(position, str(step.operation), True, True, None, None, 0.0))

    def _add_slice(
        self,
        position: int,
        step: Step,
        waits: tuple[tuple[int, int, int], ...],
        chunks: int,
        slices: int,
        part: int,
    ) -> None:
        posts: list[tuple[int, float]] = []
        path, wire, rate = LOCAL, 1.0, self._copy_rate
        if step.operation.receives and self._incoming:
            waits = (*waits, (self._incoming.sent, self._taken + 1, self._taken_in_tile))
            posts.append((self._incoming.taken, 0.0))
            self._taken += 1
            rate = self._incoming.connection.rate
        if step.operation.sends and self._outgoing:
            waits = (*waits, (self._outgoing.taken, self._place(part), self._starts[-1]))
            connection = self._outgoing.connection
            posts.append((self._outgoing.sent, connection.latency_us))
            path, wire = connection.path, 1 / self._cost.efficiency
            rate = min(rate, connection.rate) if step.operation.receives else connection.rate
        delay = 0.0 if part else self._cost.step_us
        payload = chunks / slices
        label = Label(
            position,
            str(step.operation),
            part == 0,
            part == slices - 1,
            self._block.send_peer if step.operation.sends else None,
            self._block.receive_peer if step.operation.receives else None,
            payload,
        )
        self._append(Move(waits, delay, payload * wire, path, rate * wire, tuple(posts)), label)

    def _place(self, part: int) -> int:
        """Slices that must have been taken, as of tile 0, before this one of the next message has a place."""
        assert self._outgoing is not None
        slices = self._outgoing.slices
        tiles, message = divmod(self._messages_sent - self._cost.messages_in_flight, len(slices))
        own = min(part, slices[message] - 1) + 1
        return int(tiles * self._starts[-1] + self._starts[message] + own)

    def _append(self, move: Move, label: Label) -> None:
        self.moves.append(move)
        self.labels.append(label)


def _flagged(block: Threadblock) -> tuple[int, ...]:
    return tuple(
        number for number, step in enumerate(block.steps) if step.flagged and step.operation is not Operation.NOP
    )
