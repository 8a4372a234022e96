"""The event engine: runs a machine for some tiles and says when each tile was done.

Problem. Threads do their moves in order; moves over links are flows that share them max–min fairly. When does every
thread end?

Method. Events in the order of time: a counter rises after its latency, a delay or a local move is over, a flow ends,
rates are refilled. Three observations keep refills (water-filling over all flows, see `sharing`) rare:

 1. A flow that starts where every link of its path has its whole limit left gets just that, and nobody loses: the
    rates stay max–min fair. A flow that ends without having filled a link leaves nothing that others could not have
    had. Neither needs a refill.
 2. A thread that goes on at once over the same path takes over the rate of its last flow: the set of flows is the
    same.
 3. Otherwise rates are refilled after `_TOGETHER`, so that all that happens in one moment counts, and not sooner than
    `window` after the last refill. Until then the new flow runs at what its path has left, and what an ended one
    leaves lies idle.

Guarantee. Flows never get more than links have. Without the window, times are those of exact max–min sharing up to
`_TOGETHER` an event. With it, whatever starts on a full link, or waits for more of one, gets its share at most one
window late; nothing gets more than links have. A window is `window_share` of the time that has passed, or of
`least_us` while that is more, so refills are at most about 1/share · (1 + ln(T/least)).

Invariants. residual[l] = capacity[l] − Σ rates of flows over l, kept as a list for scalar access, rebuilt at refills.
`ends` holds the end of each thread's flow, ∞ without one. A thread is in at most one of: a waiting list, the heap,
flowing, ready.

Complexity. O(log n) an event, O(threads) in one array operation for the next end of a flow, refills as above.
"""

from __future__ import annotations

import heapq
import math
from collections import deque

import msgspec
import numpy as np

from forestsyn.simulate.machine import LOCAL, Machine, Move
from forestsyn.simulate.recorder import Recorder
from forestsyn.simulate.sharing import Sharing

#: µs within which events count as simultaneous: above rounding, far below anything that matters.
_TOGETHER = 1e-6
#: A link with no more than this share of its capacity left is full; a rate this much below its limit is the limit.
_FULL = 1e-9

_ARRIVED, _DELAYED, _MOVED = 0, 1, 2


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """tile_ends: µs at which each tile was done by all. blocked: (thread, counter, value it waits for) at the end.

    at: the move that each thread has come to. refills: how often rates were computed.
    """

    tile_ends: tuple[float, ...]
    blocked: tuple[tuple[int, int, int], ...]
    at: tuple[int, ...]
    refills: int


class Engine:
    """One run; make a new one for each.

    tile_bytes: the bytes of a chunk in each tile. start_us: when threads begin. window_share, least_us: see above.
    """

    def __init__(
        self,
        machine: Machine,
        sharing: Sharing,
        tile_bytes: tuple[float, ...],
        *,
        start_us: float,
        window_share: float,
        least_us: float,
        recorder: Recorder | None = None,
    ) -> None:
        threads = len(machine.threads)
        self._moves = [thread.moves for thread in machine.threads]
        self._links = [
            tuple(link for link in path if link < len(machine.capacity)) for path in machine.paths.tolist()
        ]
        self._capacity = [*machine.capacity.tolist(), math.inf]
        self._full = [_FULL * capacity for capacity in self._capacity]
        self._residual = list(self._capacity)
        self._sharing, self._tile_bytes, self._recorder = sharing, tile_bytes, recorder
        self._share, self._least = window_share, least_us
        self._start = self._now = start_us
        self._at, self._tile = [0] * threads, [0] * threads
        self._count = [0] * len(machine.counters)
        self._waiting: list[list[tuple[int, int]]] = [[] for _ in machine.counters]
        self._ready: deque[int] = deque()
        self._heap: list[tuple[float, int, int, int]] = []
        self._sequence = 0
        self._tile_ends = [start_us] * len(tile_bytes)
        # Flows, one for each thread at most.
        self._flowing = np.zeros(threads, dtype=bool)
        self._path = np.zeros(threads, dtype=np.int64)
        self._limit, self._rate = np.zeros(threads), np.zeros(threads)
        self._left, self._since = np.zeros(threads), np.zeros(threads)
        self._ends = np.full(threads, math.inf)
        self._next_thread, self._next_end = 0, math.inf
        self._keeper = -1  # the thread that may take over the rate of its last flow
        self._refill_at, self._refilled, self._refills = math.inf, -math.inf, 0

    def run(self) -> Run:
        """Run to the end, or until nothing can move."""
        for thread, moves in enumerate(self._moves):
            if moves:
                self._ready.append(thread)
                if self._recorder:
                    self._recorder.come(thread, 0, 0, self._now)
        while True:
            while self._ready:
                self._begin(self._ready.popleft())
            timed = self._heap[0][0] if self._heap else math.inf
            if timed <= self._next_end and timed <= self._refill_at:
                if timed == math.inf:
                    break
                self._now, _, kind, number = heapq.heappop(self._heap)
                if kind == _ARRIVED:
                    self._raise(number)
                elif kind == _DELAYED:
                    self._move(number)
                else:
                    self._finish(number)
            elif self._next_end <= self._refill_at:
                self._now = self._next_end
                self._end_flow(self._next_thread)
            else:
                self._now = self._refill_at
                self._refill()
        blocked = sorted((thread, number, need) for number, row in enumerate(self._waiting) for need, thread in row)
        return Run(
            tile_ends=tuple(self._tile_ends), blocked=tuple(blocked), at=tuple(self._at), refills=self._refills
        )

    def _begin(self, thread: int) -> None:
        """Start the move that a thread has come to, or queue it where it has to wait."""
        move = self._moves[thread][self._at[thread]]
        tile, count = self._tile[thread], self._count
        for counter, value, stride in move.waits:
            need = value + stride * tile
            if count[counter] < need:
                self._waiting[counter].append((need, thread))
                if self._recorder:
                    self._recorder.wait(thread, counter, need)
                return
        if self._recorder:
            self._recorder.start(thread, self._now)
        if move.delay:
            self._push(self._now + move.delay, _DELAYED, thread)
        else:
            self._move(thread)

    def _move(self, thread: int) -> None:
        move = self._moves[thread][self._at[thread]]
        amount = move.amount * self._tile_bytes[self._tile[thread]]
        if move.path == LOCAL or amount == 0:
            self._push(self._now + amount / move.rate, _MOVED, thread)
        else:
            self._start_flow(thread, move, amount)

    def _start_flow(self, thread: int, move: Move, amount: float) -> None:
        if thread == self._keeper and self._path[thread] == move.path and self._limit[thread] == move.rate:
            rate = float(self._rate[thread])
        else:
            links, residual = self._links[move.path], self._residual
            rate = max(0.0, min(move.rate, *[residual[link] for link in links]))
            if rate < move.rate * (1 - _FULL):
                self._ask_refill()
            for link in links:
                residual[link] -= rate
            self._path[thread], self._limit[thread], self._rate[thread] = move.path, move.rate, rate
        end = self._now + amount / rate if rate else math.inf
        self._flowing[thread] = True
        self._left[thread], self._since[thread], self._ends[thread] = amount, self._now, end
        if end < self._next_end:
            self._next_thread, self._next_end = thread, end

    def _end_flow(self, thread: int) -> None:
        """A flow is over; its rate goes to the thread's next flow if that starts at once, else back to the links."""
        self._flowing[thread] = False
        self._ends[thread] = math.inf
        self._next_end = math.inf
        self._keeper = thread
        last = self._path[thread], self._limit[thread], float(self._rate[thread])
        self._finish(thread)
        if self._ready and self._ready[-1] == thread:
            self._ready.pop()
            self._begin(thread)
        self._keeper = -1
        if not (self._flowing[thread] and last[:2] == (self._path[thread], self._limit[thread])):
            self._release(int(last[0]), last[2])
        self._seek()

    def _release(self, path: int, rate: float) -> None:
        residual, full = self._residual, self._full
        for link in self._links[path]:
            if residual[link] <= full[link]:
                self._ask_refill()
            residual[link] += rate

    def _seek(self) -> None:
        self._next_thread = thread = int(self._ends.argmin())
        self._next_end = float(self._ends[thread])

    def _finish(self, thread: int) -> None:
        """A move is over: raise its counters, go on to the next move or tile."""
        position, tile = self._at[thread], self._tile[thread]
        moves = self._moves[thread]
        if self._recorder:
            self._recorder.finish(thread, position, self._now)
        for counter, latency in moves[position].posts:
            if latency:
                self._push(self._now + latency, _ARRIVED, counter)
            else:
                self._raise(counter)
        position += 1
        if position == len(moves):
            position = 0
            self._tile_ends[tile] = max(self._tile_ends[tile], self._now)
            tile += 1
            self._tile[thread] = tile
        self._at[thread] = position
        if tile < len(self._tile_bytes):
            self._ready.append(thread)
            if self._recorder:
                self._recorder.come(thread, position, tile, self._now)

    def _raise(self, counter: int) -> None:
        count = self._count[counter] = self._count[counter] + 1
        waiting = self._waiting[counter]
        if waiting:
            self._ready.extend(thread for need, thread in waiting if need <= count)
            self._waiting[counter] = [entry for entry in waiting if entry[0] > count]

    def _push(self, time: float, kind: int, number: int) -> None:
        self._sequence += 1
        heapq.heappush(self._heap, (time, self._sequence, kind, number))

    def _ask_refill(self) -> None:
        if self._refill_at == math.inf:
            window = self._share * max(self._least, self._now - self._start)
            self._refill_at = max(self._now + _TOGETHER, self._refilled + window)

    def _refill(self) -> None:
        self._refill_at, self._refilled = math.inf, self._now
        self._refills += 1
        flows = np.flatnonzero(self._flowing)
        left = self._left[flows] - self._rate[flows] * (self._now - self._since[flows])
        rates, residual = self._sharing.rates(self._path[flows], self._limit[flows])
        self._residual = list(residual)
        self._left[flows] = left = np.maximum(left, 0.0)
        self._rate[flows] = rates
        self._since[flows] = self._now
        self._ends[flows] = self._now + left / rates
        self._seek()
