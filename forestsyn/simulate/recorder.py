"""Records what every thread did and what it waited for, as activities with causes."""

from __future__ import annotations

from forestsyn.ir.simulation import Activity
from forestsyn.simulate.machine import Action, Machine


class Recorder:
    """Follows one run. Activities are numbered in the order in which they start, and renumbered at the end."""

    def __init__(self, machine: Machine, start_us: float) -> None:
        self._machine = machine
        self._ready = [start_us] * len(machine.threads)
        self._reason = ["threadblock"] * len(machine.threads)
        self._cause: list[int | None] = [None] * len(machine.threads)
        self._last: list[int | None] = [None] * len(machine.threads)
        self._rows: list[dict[str, object]] = []
        self._ends: list[float] = []
        #: Of each connection the activities that put slices into it, and those that took them out, in order.
        self._put: list[list[int]] = [[] for _ in machine.ends]
        self._took: list[list[int]] = [[] for _ in machine.ends]

    def start(self, thread: int, tile: int, action: Action, now: float) -> None:
        """A thread starts to work on a slice."""
        owner = self._machine.threads[thread]
        ends = self._machine.ends
        cause = self._cause[thread] if self._reason[thread] != "threadblock" else self._last[thread]
        self._rows.append(
            {
                "rank": owner.rank,
                "threadblock": owner.number,
                "step": action.step,
                "tile": tile,
                "operation": action.name,
                "ready_us": self._ready[thread],
                "start_us": now,
                "waited_for": self._reason[thread],
                "cause": cause,
                "peer_send": ends[owner.puts_into][1] if action.puts else None,
                "peer_receive": ends[owner.takes_from][0] if action.takes else None,
                "payload": 0,
            }
        )
        self._ends.append(now)
        self._last[thread] = len(self._rows) - 1
        if action.puts:
            self._put[owner.puts_into].append(len(self._rows) - 1)
        if action.takes:
            self._took[owner.takes_from].append(len(self._rows) - 1)
        self._reason[thread], self._cause[thread] = "threadblock", None

    def end(self, thread: int, size: float, now: float) -> None:
        """The slice that a thread works on is done; `size` bytes were moved."""
        last = self._last[thread]
        assert last is not None  # it was started
        self._ends[last] = now
        self._rows[last]["payload"] = round(size)
        self._ready[thread] = now

    def ready(self, thread: int, now: float) -> None:
        """A thread is free for its next action."""
        self._ready[thread] = now

    def depends(self, thread: int, other: int) -> None:
        """A thread that waited for another may go on."""
        self._reason[thread], self._cause[thread] = "dependency", self._last[other]

    def hears(self, thread: int, reason: str, connection: int, slices: int) -> None:
        """A thread that waited for a message or a slot may go on: `slices` have arrived or been freed so far."""
        rows = self._put[connection] if reason == "message" else self._took[connection]
        if reason in ("message", "slot"):
            self._reason[thread] = reason
            self._cause[thread] = rows[slices - 1] if 0 < slices <= len(rows) else None

    def finish(self) -> tuple[Activity, ...]:
        """All activities in the order of their ends."""
        order = sorted(range(len(self._rows)), key=lambda row: (self._ends[row], row))
        place = {row: position for position, row in enumerate(order)}
        activities = []
        for row in order:
            fields = dict(self._rows[row])
            cause = fields["cause"]
            fields["cause"] = place[cause] if isinstance(cause, int) else None
            activities.append(Activity(**fields, end_us=self._ends[row]))  # type: ignore[arg-type]
        return tuple(activities)
