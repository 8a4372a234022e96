"""The event engine: runs a machine for some tiles of one size and says when each tile was done.

Model (msccl_interpreter.h, prims_simple.h and prims_ll*.h of the runtimes; see docs/simulation.md):

 - A thread does its actions in order, tile after tile. An action is one message or several (its chunks over those
   that fit into a message), a message one slice or several; the thread works on one slice at a time.
 - A slice that is taken must have arrived; one that is put needs a free slot. The first slice of an action also waits
   for the actions of other threads that it depends on, in the same tile.
 - A slice that is put is a flow on the links of its connection, at its max–min fair share, capped by the thread. It
   arrives `latency` after the flow ended. A slice that is only taken, or moved locally, goes at the thread's rate.
   A taken slice's slot is free once the slice has been worked on.
 - Each action costs the thread `step_us` on top, after its last slice.

Events within `window` µs of each other are treated as one at the time of the last, which can only delay, by at most
the window for each action of a chain. Floats throughout: a prediction.
"""

from __future__ import annotations

import heapq
import math

import msgspec
import numpy as np

from forestsyn.ir.simulation import Activity
from forestsyn.simulate.machine import Action, Machine
from forestsyn.simulate.recorder import Recorder
from forestsyn.simulate.sharing import Sharing

#: Kinds of timed events: a slice arrived; a slice was worked on; an action is over and its thread free.
_ARRIVED, _WORKED, _FREE = 0, 1, 2


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What a tile does to the machine. chunk_bytes: of one chunk in this tile. message_chunks: chunks of a message.

    slices: of a message. slots: slices that a connection holds. step_us, start_us: overheads. window: µs.
    """

    chunk_bytes: float
    message_chunks: int
    slices: int
    slots: int
    step_us: float
    start_us: float
    window: float


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """tile_ends: µs at which each tile was done by all. blocked: threads that never ended, and what they wait for."""

    tile_ends: tuple[float, ...]
    blocked: tuple[tuple[int, str], ...]
    activities: tuple[Activity, ...]


class Engine:
    """One run; make a new one for each."""

    def __init__(self, machine: Machine, sharing: Sharing, load: Load, tiles: int, *, record: bool = False) -> None:
        self.machine, self.sharing, self.load, self.tiles = machine, sharing, load, tiles
        count, connections = len(machine.threads), len(machine.ends)
        self.actions = [thread.actions for thread in machine.threads]
        self.slices = [[_slices(action, load) for action in thread.actions] for thread in machine.threads]
        self.takes_from = [thread.takes_from for thread in machine.threads]
        self.puts_into = [thread.puts_into for thread in machine.threads]
        self.limit = machine.limit.tolist()
        # Where each thread is, and how far each connection has come, in slices.
        self.tile, self.at, self.slice = [0] * count, [0] * count, [0] * count
        self.progress = [(-1, -1)] * count
        self.sent, self.arrived = [0] * connections, [0] * connections
        self.claimed, self.freed = [0] * connections, [0] * connections
        self.blocked: dict[int, str] = {}
        self.waiters: dict[int, list[int]] = {}
        self.remaining = np.zeros(count)
        self.flows: set[int] = set()
        self.heap: list[tuple[float, int, int]] = []
        self.now = load.start_us
        self.tile_ends = [load.start_us] * tiles
        self.recorder = Recorder(machine, load.start_us) if record else None

    def run(self) -> Run:
        """Run to the end, or until nothing can move."""
        todo = [thread for thread, actions in enumerate(self.actions) if actions]
        while todo or self.heap or self.flows:
            for thread in todo:
                self._advance(thread)
            todo = self._next()
        return Run(
            tile_ends=tuple(self.tile_ends),
            blocked=tuple(sorted(self.blocked.items())),
            activities=self.recorder.finish() if self.recorder else (),
        )

    def _advance(self, thread: int) -> None:
        """Start the next slice of a thread that is free, or note what it waits for."""
        reason = self._obstacle(thread)
        if reason:
            self.blocked[thread] = reason
            return
        self.blocked.pop(thread, None)
        action = self.actions[thread][self.at[thread]]
        if self.recorder:
            self.recorder.start(thread, self.tile[thread], action, self.now)
        if action.takes:
            self.claimed[self.takes_from[thread]] += 1
        size = self.slices[thread][self.at[thread]][self.slice[thread]]
        if action.puts:
            self.sent[self.puts_into[thread]] += 1
            self.remaining[thread] = size
            self.flows.add(thread)
        else:
            duration = size / self.limit[thread] if action.moves else 0.0
            heapq.heappush(self.heap, (self.now + duration, _WORKED, thread))

    def _obstacle(self, thread: int) -> str:
        """What keeps a thread from going on: ``dependency``, ``message``, ``slot``; empty for nothing."""
        action = self.actions[thread][self.at[thread]]
        if self.slice[thread] == 0:
            for other, step in action.waits:
                if step < 0 or self.progress[other] < (self.tile[thread], step):
                    self.waiters.setdefault(other, []).append(thread)
                    return "dependency"
        if action.takes:
            connection = self.takes_from[thread]
            if self.arrived[connection] <= self.claimed[connection]:
                return "message"
        if action.puts:
            connection = self.puts_into[thread]
            if self.sent[connection] - self.freed[connection] >= self.load.slots:
                return "slot"
        return ""

    def _next(self) -> list[int]:
        """Go to the next moment at which something ends; returns the threads that may go on, each once."""
        heap = self.heap
        first = heap[0][0] if heap else math.inf
        flows = rates = left = None
        if self.flows:
            flows = np.array(sorted(self.flows), dtype=np.int64)
            rates = self.sharing.rates(flows)
            left = self.remaining[flows] / rates
            first = min(first, self.now + float(left.min()))
        if first == math.inf:
            return []
        last, moment = first + self.load.window, first
        events = []
        while heap and heap[0][0] <= last:
            events.append(heapq.heappop(heap))
            moment = max(moment, events[-1][0])
        ended: list[int] = []
        if flows is not None and rates is not None and left is not None:
            within = left <= last - self.now
            if within.any():
                moment = max(moment, self.now + float(left[within].max()))
                ended = flows[within].tolist()
            self.remaining[flows] -= rates * (moment - self.now)
        self.now = moment
        return self._finish(ended, events)

    def _finish(self, ended: list[int], events: list[tuple[float, int, int]]) -> list[int]:
        woken: dict[int, None] = {}
        for thread in ended:
            self.flows.discard(thread)
            connection = self.puts_into[thread]
            arrival = self.now + self.machine.latency_us[connection]
            heapq.heappush(self.heap, (arrival, _ARRIVED, connection))
            self._worked(thread, woken)
        for _, kind, number in events:
            if kind == _ARRIVED:
                self.arrived[number] += 1
                self._wake(self.machine.receivers[number], number, woken)
            elif kind == _WORKED:
                self._worked(number, woken)
            else:
                self._free(number, woken)
        return list(woken)

    def _worked(self, thread: int, woken: dict[int, None]) -> None:
        """A slice was worked on: its slot is free, and the thread goes on to the next one or to its overhead."""
        action = self.actions[thread][self.at[thread]]
        if self.recorder:
            self.recorder.end(thread, self.slices[thread][self.at[thread]][self.slice[thread]], self.now)
        if action.takes:
            connection = self.takes_from[thread]
            self.freed[connection] += 1
            self._wake(self.machine.senders[connection], connection, woken)
        self.slice[thread] += 1
        if self.slice[thread] < len(self.slices[thread][self.at[thread]]):
            woken[thread] = None
        else:
            heapq.heappush(self.heap, (self.now + self.load.step_us, _FREE, thread))

    def _free(self, thread: int, woken: dict[int, None]) -> None:
        """An action is over: others may wait for it, and the thread goes on to the next one or the next tile."""
        tile = self.tile[thread]
        self.progress[thread] = (tile, self.actions[thread][self.at[thread]].step)
        for waiter in self.waiters.pop(thread, ()):
            woken[waiter] = None
            if self.recorder:
                self.recorder.depends(waiter, thread)
        self.slice[thread] = 0
        self.at[thread] += 1
        if self.at[thread] == len(self.actions[thread]):
            self.at[thread] = 0
            self.tile[thread] = tile + 1
            self.tile_ends[tile] = max(self.tile_ends[tile], self.now)
            if tile + 1 == self.tiles:
                return
        woken[thread] = None
        if self.recorder:
            self.recorder.ready(thread, self.now)

    def _wake(self, thread: int, connection: int, woken: dict[int, None]) -> None:
        if self.blocked.get(thread) in ("message", "slot"):
            woken[thread] = None
            if self.recorder:
                reason = self.blocked[thread]
                slices = self.arrived[connection] if reason == "message" else self.freed[connection]
                self.recorder.hears(thread, reason, connection, slices)


def _slices(action: Action, load: Load) -> list[float]:
    """The bytes of each slice of an action, in order."""
    rows: list[float] = []
    for first in range(0, action.count, load.message_chunks):
        size = min(load.message_chunks, action.count - first) * load.chunk_bytes
        rows += [size / load.slices] * load.slices
    return rows
