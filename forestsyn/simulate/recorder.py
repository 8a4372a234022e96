"""Records what every thread did and what it waited for, as activities with causes; the critical path through them.

An activity is one step on one message; its slices are one activity. It waited for what ended the last wait of its
first or a later slice: a message that is received slice by slice waits for its sender to the end. Without any wait
its cause is the activity before it in its threadblock. Causes lead back in time, so following them ends.
"""

from __future__ import annotations

import msgspec

from forestsyn.ir.simulation import Activity, Simulation
from forestsyn.simulate.machine import Label, Machine


class _Row(msgspec.Struct):
    thread: int
    label: Label
    tile: int
    before: int | None
    ready_us: float
    payload: float
    start_us: float = -1.0
    end_us: float = -1.0
    wait: tuple[int, int] | None = None


class Recorder:
    """Follows one run, by the events that the engine tells. tile_bytes: of a chunk in each tile."""

    def __init__(self, machine: Machine, tile_bytes: tuple[float, ...]) -> None:
        self._machine = machine
        self._tile_bytes = tile_bytes
        self._rows: list[_Row] = []
        self._current: list[int | None] = [None] * len(machine.threads)
        #: Of each counter the rows that raised it, in order.
        self._raised: list[list[int]] = [[] for _ in machine.counters]

    def come(self, thread: int, position: int, tile: int, now: float) -> None:
        """A thread has come to a move."""
        label = self._machine.threads[thread].labels[position]
        payload = label.payload * self._tile_bytes[tile]
        if label.opens:
            self._rows.append(_Row(thread, label, tile, self._current[thread], now, payload))
            self._current[thread] = len(self._rows) - 1
        else:
            self._row(thread).payload += payload

    def wait(self, thread: int, counter: int, need: int) -> None:
        """A thread has to wait until a counter reaches a value."""
        self._row(thread).wait = (counter, need)

    def start(self, thread: int, now: float) -> None:
        """A thread has all it needs for the move it came to."""
        row = self._row(thread)
        if row.start_us < 0:
            row.start_us = now

    def finish(self, thread: int, position: int, now: float) -> None:
        """A move is over."""
        self._row(thread).end_us = now
        for counter, _ in self._machine.threads[thread].moves[position].posts:
            self._raised[counter].append(self._index(thread))

    def activities(self) -> tuple[Activity, ...]:
        """All activities in the order of their ends."""
        order = sorted(range(len(self._rows)), key=lambda number: (self._rows[number].end_us, number))
        place = {number: position for position, number in enumerate(order)}
        return tuple(self._activity(self._rows[number], place) for number in order)

    def _index(self, thread: int) -> int:
        number = self._current[thread]
        assert number is not None  # the engine tells of a move after its thread came to it
        return number

    def _row(self, thread: int) -> _Row:
        return self._rows[self._index(thread)]

    def _activity(self, row: _Row, place: dict[int, int]) -> Activity:
        thread = self._machine.threads[row.thread]
        reason, cause = "threadblock", row.before
        if row.wait is not None:
            counter, need = row.wait
            reason, cause = self._machine.counters[counter].kind, self._raised[counter][need - 1]
        return Activity(
            rank=thread.rank,
            threadblock=thread.number,
            step=row.label.step,
            tile=row.tile,
            operation=row.label.operation,
            ready_us=row.ready_us,
            start_us=row.start_us,
            end_us=row.end_us,
            waited_for=reason,
            cause=None if cause is None else place[cause],
            peer_send=row.label.peer_send,
            peer_receive=row.label.peer_receive,
            payload=round(row.payload),
        )


def critical_path(simulation: Simulation) -> tuple[Activity, ...]:
    """The chain of activities that ends last, from its first to its last; empty unless the run was recorded."""
    path: list[Activity] = []
    position = len(simulation.activities) - 1 if simulation.activities else None
    while position is not None:
        path.append(simulation.activities[position])
        position = path[-1].cause
    return tuple(reversed(path))
