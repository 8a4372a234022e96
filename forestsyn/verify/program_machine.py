"""A program as a machine that can be run: threads, connections and actions with all names resolved to numbers.

Built only from programs whose form allows it: peers exist, each end of a connection belongs to one threadblock,
dependencies point at steps that are reached by a flag.
"""

from __future__ import annotations

import msgspec

from forestsyn.ir.program import Buffer, Operation, Program, RankProgram, Step, Threadblock
from forestsyn.verify.program_report import Place

BUFFER_INDEX = {Buffer.INPUT: 0, Buffer.OUTPUT: 1, Buffer.SCRATCH: 2}


class Shape(msgspec.Struct, frozen=True):
    """What an operation does. combines: adds the chunk at `source` to the message (or to `destination`)."""

    sends: bool
    receives: bool
    reads_source: bool
    reads_destination: bool
    writes: bool


_SHAPES = {
    Operation.SEND: Shape(True, False, True, False, False),
    Operation.RECV: Shape(False, True, False, False, True),
    Operation.RECV_COPY_SEND: Shape(True, True, False, False, True),
    Operation.RECV_REDUCE_SEND: Shape(True, True, True, False, False),
    Operation.RECV_REDUCE_COPY: Shape(False, True, True, False, True),
    Operation.RECV_REDUCE_COPY_SEND: Shape(True, True, True, False, True),
    Operation.COPY: Shape(False, False, True, False, True),
    Operation.REDUCE: Shape(False, False, True, True, True),
    Operation.NOP: Shape(False, False, False, False, False),
}


class Action(msgspec.Struct, frozen=True):
    """A step. waits: (thread, action) that must be done before, the first flagged one that satisfies the wait.

    source, destination: (index of the buffer, offset). count: chunks, 0 for a nop. flags: others may wait for it.
    """

    shape: Shape
    source: tuple[int, int]
    destination: tuple[int, int]
    count: int
    waits: tuple[int, int] | None
    flags: bool


class Thread(msgspec.Struct, frozen=True):
    """A threadblock. outgoing, incoming: indices of its connections, −1 where it has none."""

    rank: int
    number: int
    outgoing: int
    incoming: int
    actions: tuple[Action, ...]


class Connection(msgspec.Struct):
    """A FIFO from rank to rank; sender and receiver are indices of threads, −1 where nobody is there."""

    source: int
    destination: int
    channel: int
    sender: int = -1
    receiver: int = -1

    def __str__(self) -> str:
        return f"connection rank {self.source} → rank {self.destination} on channel {self.channel}"


class Machine(msgspec.Struct, frozen=True):
    """Threads by (rank, number) and connections in the order in which threads name them."""

    threads: tuple[Thread, ...]
    connections: tuple[Connection, ...]

    def place(self, thread: int, action: int) -> Place:
        """The name of an action."""
        where = self.threads[thread]
        return Place(where.rank, where.number, action)

    def largest_count(self) -> int:
        """The most chunks that one action moves."""
        return max((action.count for thread in self.threads for action in thread.actions), default=0)


def build_machine(program: Program) -> Machine:
    """Resolves every name in `program`."""
    connections: dict[tuple[int, int, int], int] = {}
    ends: list[Connection] = []

    def connect(source: int, destination: int, channel: int) -> int:
        index = connections.setdefault((source, destination, channel), len(ends))
        if index == len(ends):
            ends.append(Connection(source, destination, channel))
        return index

    threads: list[Thread] = []
    for rank, own in enumerate(program.ranks):
        base = len(threads)
        for number, threadblock in enumerate(own.threadblocks):
            outgoing = incoming = -1
            if threadblock.send_peer >= 0:
                outgoing = connect(rank, threadblock.send_peer, threadblock.channel)
                ends[outgoing].sender = len(threads)
            if threadblock.receive_peer >= 0:
                incoming = connect(threadblock.receive_peer, rank, threadblock.channel)
                ends[incoming].receiver = len(threads)
            actions = _actions(own, threadblock, base)
            threads.append(Thread(rank, number, outgoing, incoming, actions))
    return Machine(tuple(threads), tuple(ends))


def _actions(own: RankProgram, threadblock: Threadblock, base: int) -> tuple[Action, ...]:
    index = BUFFER_INDEX
    return tuple(
        Action(
            _SHAPES[step.operation],
            (index[step.source.buffer], step.source.offset),
            (index[step.destination.buffer], step.destination.offset),
            step.count if step.operation is not Operation.NOP else 0,
            _resolve_wait(own, step, base),
            step.flagged and step.operation is not Operation.NOP,
        )
        for step in threadblock.steps
    )


def _resolve_wait(own: RankProgram, step: Step, base: int) -> tuple[int, int] | None:
    """Flags carry rising step numbers, so the first flagged step at or after the named one ends the wait."""
    waited = step.depends_on
    if waited is None:
        return None
    steps = own.threadblocks[waited.threadblock].steps
    action = next(
        index
        for index in range(waited.step, len(steps))
        if steps[index].flagged and steps[index].operation is not Operation.NOP
    )
    return base + waited.threadblock, action
