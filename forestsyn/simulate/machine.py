"""What the engine runs: threads of moves, counters they wait for, and paths of links. It knows no program format.

A *thread* does its moves in order and repeats them for every tile. A move waits until counters are high enough, costs
its thread a delay, then moves an amount, over a path of links or locally, and at its end raises counters, some of
them after a latency. A FIFO is two counters (slices sent, slices taken), a flag or a semaphore is one. Threadblock
programs are translated by `programs`; other kinds of program need only a translator of their own.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

#: Kinds of counters, in the words of `Activity.waited_for`.
MESSAGE, SLOT, DEPENDENCY = "message", "slot", "dependency"
#: The `path` of a move that no link carries.
LOCAL = -1
#: A value that no counter reaches.
NEVER = 1 << 60


class Move(NamedTuple):
    """One uninterrupted piece of a thread's work, mostly one slice of one message.

    waits: (counter, value, stride) that must all hold: in tile t the counter has reached value + stride · t.
    delay: µs of the thread before it moves anything. amount: chunks, on the wire where `path` is a path of the
    machine. rate: bytes per µs at most. posts: (counter, latency in µs) raised by one each at the end.
    """

    waits: tuple[tuple[int, int, int], ...]
    delay: float
    amount: float
    path: int
    rate: float
    posts: tuple[tuple[int, float], ...]


class Label(NamedTuple):
    """What a move is to people: part of an activity, which is one step on one message.

    opens, closes: first and last move of its activity. payload: chunks sent, or moved where nothing is sent.
    """

    step: int
    operation: str
    opens: bool
    closes: bool
    peer_send: int | None
    peer_receive: int | None
    payload: float


class Thread(msgspec.Struct, frozen=True, kw_only=True):
    """A sequential executor; `labels` goes with `moves`."""

    rank: int
    number: int
    moves: tuple[Move, ...]
    labels: tuple[Label, ...]


class Counter(msgspec.Struct, frozen=True, kw_only=True):
    """kind: MESSAGE, SLOT or DEPENDENCY. poster: the thread that raises it, −1 for none.

    steps: of a dependency, the steps that raise it, in order.
    """

    kind: str
    poster: int
    steps: tuple[int, ...] = ()


class Machine(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """threads and counters; paths: int64[P, W], links of each path, padded with L; capacity: float64[L], bytes/µs."""

    threads: tuple[Thread, ...]
    counters: tuple[Counter, ...]
    paths: npt.NDArray[np.int64]
    capacity: npt.NDArray[np.float64]

    @property
    def move_count(self) -> int:
        """Moves of one tile."""
        return sum(len(thread.moves) for thread in self.threads)

    def link_chunks(self) -> npt.NDArray[np.float64]:
        """float64[L]: chunks on the wire of each link."""
        amounts = np.zeros(len(self.paths))
        for thread in self.threads:
            for move in thread.moves:
                if move.path != LOCAL:
                    amounts[move.path] += move.amount
        weights = np.repeat(amounts, self.paths.shape[1])
        links = len(self.capacity)
        return np.bincount(self.paths.ravel(), weights=weights, minlength=links + 1)[:links].astype(np.float64)
