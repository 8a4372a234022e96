"""Races: two accesses to one chunk, at least one of them a write, that nothing puts in an order.

Problem. Which accesses are ordered in *every* execution? Happens-before is the transitive closure of: the order of
a thread; a wait and the flagged action that ends it (with everything before that); and a message, from its send to
its receive. The other direction, a full FIFO that holds a sender back until a receive, also orders, but only for one
depth, which network connections do not keep; it does not count here.

Guarantee. A race is reported exactly if there is one in this relation. Happens-before does not depend on the
execution, so walking any topological order of it is enough, and with the last write and all reads since it kept for
each chunk, the first unordered pair in that order is always met (Flanagan & Freund, FastTrack, PLDI 2009).

Method. Vector clocks with one lane for each thread, counting its messages; a message carries its sender's clock. A
clock is copied only when it changes after it was handed out, and merged only if its owner's lane brings news: if lane
l of mine is at least v, I am after the v-th message of l and so after all that was before it.

The unit of the run matters. Split into messages of one chunk, an action that sends several chunks is only partly
ordered before its receiver, so a program can be race-free with whole actions and race once they are split.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from forestsyn.verify.program_machine import Action, Machine
from forestsyn.verify.program_memory import RankMemory
from forestsyn.verify.program_run import Run

_Clock = npt.NDArray[np.int32]
#: (thread, messages of that thread so far, action).
_Access = tuple[int, int, int]


class Race(msgspec.Struct, frozen=True):
    """Action `action` of thread `thread` meets `other` unordered. buffer, offset: the chunk as `action` names it.

    word: ``writes`` or ``reads``, what `action` does; other_word: likewise.
    """

    thread: int
    action: int
    word: str
    other_thread: int
    other_action: int
    other_word: str
    buffer: int
    offset: int


class Overlap(msgspec.Struct, frozen=True):
    """An action whose source and destination share some but not all chunks: it has no defined result."""

    thread: int
    action: int


def find_races(machine: Machine, memory: Sequence[RankMemory], run: Run, *, limit: int) -> list[Race]:
    """The first `limit` races, at most one for each action, in the order of the finished `run`."""
    detector = _Detector(machine, memory, run, limit)
    detector.walk()
    return detector.races


def find_overlaps(machine: Machine, memory: Sequence[RankMemory]) -> list[Overlap]:
    """All actions that read and write overlapping, unequal ranges of cells."""
    found = []
    for thread, owner in enumerate(machine.threads):
        bases = memory[owner.rank].bases
        for index, action in enumerate(owner.actions):
            if action.count > 1 and action.shape.reads_source and action.shape.writes:
                source = bases[action.source[0]] + action.source[1]
                destination = bases[action.destination[0]] + action.destination[1]
                if 0 < abs(source - destination) < action.count:
                    found.append(Overlap(thread, index))
    return found


class _Detector:
    def __init__(self, machine: Machine, memory: Sequence[RankMemory], run: Run, limit: int) -> None:
        self.races: list[Race] = []
        self._machine = machine
        self._memory = memory
        self._run = run
        self._limit = limit
        lanes = len(machine.threads)
        nothing: _Clock = np.zeros(lanes, dtype=np.int32)
        self._clocks = [nothing] * lanes
        self._shared = [True] * lanes  # whether somebody else holds the clock, so that it must not change
        self._merged = [nothing] * lanes  # the clock that was merged last
        self._ticks = [0] * lanes
        self._messages: list[deque[tuple[_Clock, int]]] = [deque() for _ in machine.connections]
        self._flags: dict[tuple[int, int], tuple[_Clock, int]] = {}
        self._writes: list[dict[int, _Access]] = [{} for _ in memory]
        self._reads: list[dict[int, list[_Access]]] = [{} for _ in memory]  # since the last write

    def walk(self) -> None:
        unit = self._run.unit
        for segment in self._run.order:
            thread = segment.thread
            owner = self._machine.threads[thread]
            action = owner.actions[segment.action]
            if segment.first == 0 and action.waits is not None:
                self._merge(thread, action.waits[0], *self._flags[action.waits])
            for message in range(segment.first, segment.first + segment.amount):
                if action.shape.receives:
                    sender = self._machine.connections[owner.incoming].sender
                    self._merge(thread, sender, *self._messages[owner.incoming].popleft())
                self._ticks[thread] += 1
                first = message * unit
                self._touch(thread, segment.action, action, first, min(action.count, first + unit))
                if action.shape.sends:
                    self._messages[owner.outgoing].append(self._publish(thread))
            if action.flags and (segment.first + segment.amount) * unit >= action.count:
                self._flags[thread, segment.action] = self._publish(thread)
            if len(self.races) >= self._limit:
                return

    def _merge(self, thread: int, lane: int, clock: _Clock, tick: int) -> None:
        """Puts everything up to message `tick` of thread `lane`, whose clock was `clock`, before what follows."""
        own = self._clocks[thread]
        if own[lane] >= tick:
            return
        if clock is not self._merged[thread]:
            if self._shared[thread]:
                own = np.maximum(own, clock)
            else:
                np.maximum(own, clock, out=own)
            self._merged[thread] = clock
        elif self._shared[thread]:
            own = own.copy()
        own[lane] = tick
        self._clocks[thread] = own
        self._shared[thread] = False

    def _publish(self, thread: int) -> tuple[_Clock, int]:
        self._shared[thread] = True
        return self._clocks[thread], self._ticks[thread]

    def _touch(self, thread: int, index: int, action: Action, first: int, last: int) -> None:
        """Chunks first .. last−1 of an action: its reads, then its writes."""
        shape = action.shape
        rank = self._machine.threads[thread].rank
        bases = self._memory[rank].bases
        access = (thread, self._ticks[thread], index)
        if shape.reads_source:
            buffer, offset = action.source
            cell = bases[buffer] + offset
            for chunk in range(first, last):
                self._read(rank, cell + chunk, access, (buffer, offset + chunk))
        if shape.writes:
            buffer, offset = action.destination
            cell = bases[buffer] + offset
            for chunk in range(first, last):
                self._write(rank, cell + chunk, access, (buffer, offset + chunk))

    def _read(self, rank: int, cell: int, access: _Access, name: tuple[int, int]) -> None:
        thread = access[0]
        write = self._writes[rank].get(cell)
        if write is not None and write[0] != thread and self._clocks[thread][write[0]] < write[1]:
            self._report(access, "reads", write, "writes", name)
        reads = self._reads[rank].get(cell)
        if reads is None:
            self._reads[rank][cell] = [access]
        elif reads[-1][0] == thread:
            reads[-1] = access
        else:
            reads.append(access)

    def _write(self, rank: int, cell: int, access: _Access, name: tuple[int, int]) -> None:
        thread = access[0]
        clock = self._clocks[thread]
        write = self._writes[rank].get(cell)
        if write is not None and write[0] != thread and clock[write[0]] < write[1]:
            self._report(access, "writes", write, "writes", name)
        for read in self._reads[rank].pop(cell, ()):
            if read[0] != thread and clock[read[0]] < read[1]:
                self._report(access, "writes", read, "reads", name)
        self._writes[rank][cell] = access

    def _report(self, access: _Access, word: str, other: _Access, other_word: str, name: tuple[int, int]) -> None:
        thread, _, action = access
        if self.races and (self.races[-1].thread, self.races[-1].action) == (thread, action):
            return
        self.races.append(Race(thread, action, word, other[0], other[2], other_word, *name))
