"""What a simulated run of a program yields: its time, what the links carried, and why it took that long.

All times are floats of µs from the call on. A simulation predicts; bounds and verification are exact and elsewhere.
"""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt


class Activity(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One step of one threadblock working on one message, recorded on request.

    rank, threadblock, step: where in the program. tile: which repetition. operation: its name in the file.
    ready_us: when the threadblock came to it; start_us: when it could run; end_us: when it was done.
    waited_for: what it waited for last: `threadblock` (its own previous step), `dependency`, `message` or `slot`.
    cause: position of the activity that ended that wait in `Simulation.activities`, None at the start.
    peer_send, peer_receive: ranks at the other end, None where the step has no such side.
    payload: bytes sent, or copied where the step sends nothing.
    """

    rank: int
    threadblock: int
    step: int
    tile: int
    operation: str
    ready_us: float
    start_us: float
    end_us: float
    waited_for: str
    cause: int | None
    peer_send: int | None
    peer_receive: int | None
    payload: int


class Stuck(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run that cannot go on. waits: one sentence for each threadblock of the cycle (capped)."""

    waits: tuple[str, ...]


class Simulation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, eq=False):
    """A predicted run of a program on a topology for one message size.

    message_bytes: M as nccl-tests counts it. time_us: of the whole collective; infinity when stuck.
    link_bytes: float64[L], bytes on the wire of each link of the topology, in its order.
    link_busy: float64[L], share of `time_us` for which the link would be busy at full bandwidth, 0 to 1.
    tiles: repetitions of the program that the message needs. simulated_tiles: those that were run event by event;
    the time of the others follows from the steady period of these.
    rerouted: pairs of ranks whose messages had to pass through other ranks' GPUs, since no other path exists.
    activities: all of them in order of their end when recording was asked for, else empty.
    stuck: None for a run that finished.
    """

    message_bytes: int
    time_us: float
    link_bytes: npt.NDArray[np.float64]
    link_busy: npt.NDArray[np.float64]
    tiles: int
    simulated_tiles: int
    rerouted: tuple[tuple[int, int], ...] = ()
    activities: tuple[Activity, ...] = ()
    stuck: Stuck | None = None

    @property
    def algbw(self) -> float:
        """GB/s: message size over time."""
        return self.message_bytes / self.time_us / 1e3 if self.time_us > 0 else 0.0
