"""The values of `plan_machine`: what threadblocks do, on numbered memory cells and counters."""

from __future__ import annotations

import msgspec

from forestsyn.ir.plan import ChannelType
from forestsyn.ir.plan import PlanOperation as Op

USER, SCRATCH = 0, 1


class Access(msgspec.Struct, frozen=True):
    """`count` data cells of the memory `area` of a rank, from cell `start` on; packets take two cells for each."""

    rank: int
    area: int
    start: int
    count: int
    packets: bool


class Move(msgspec.Struct, frozen=True):
    """Each cell of each destination becomes the sum of that cell of the sources.

    port: who moves it, −1 for the threads. position: which thread asks the port.
    """

    sources: tuple[Access, ...]
    destinations: tuple[Access, ...]
    port: int = -1
    position: int = 0


class Action(msgspec.Struct, frozen=True):
    """One operation. step: its position in the threadblock. ids: counters, semaphores or ports, by `operation`.

    count: threadblocks of a barrier, destinations of a flush.
    """

    operation: Op
    step: int
    moves: tuple[Move, ...] = ()
    ids: tuple[int, ...] = ()
    count: int = 0


class Thread(msgspec.Struct, frozen=True):
    """A threadblock."""

    rank: int
    block: int
    actions: tuple[Action, ...]


class Port(msgspec.Struct, frozen=True):
    """An end of a port channel: requests on it run one after the other."""

    rank: int
    number: int
    peer: int


class Machine(msgspec.Struct, frozen=True):
    """threads, ports: who acts. counters: where each (rank, type, channel) is signalled: names for messages.

    unit: vectors in a cell. elements: vectors in a chunk. user_cells, scratch_cells: memory of each rank.
    bases: where input and output begin in user memory, by rank. message_cells: cells of the whole message.
    """

    threads: tuple[Thread, ...]
    ports: tuple[Port, ...]
    counters: tuple[tuple[int, ChannelType, int, int], ...]
    unit: int
    elements: int
    user_cells: tuple[int, ...]
    scratch_cells: tuple[int, ...]
    bases: tuple[tuple[int, int], ...]
    input_cells: int
    output_cells: int
