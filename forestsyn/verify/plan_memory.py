"""Memory cells, and who touched them last: what two accesses without an order between them are called.

Every actor (threadblock, port, caller of a rank) numbers its actions. A clock tells for every actor the last action
that is known to have happened; two such clocks are kept, one for the order of execution and one for what is also
known to be visible (relaxed signals and packets give the first only). An access is in order when the last
conflicting ones are in the clock of its actor. What went through a switch must also have arrived there.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import numpy.typing as npt

from forestsyn.verify.plan_actions import Access

Clock = npt.NDArray[np.int32]  # int32[2, actors]: order, visibility
ORDER, VISIBLE = 0, 1
_Touch = tuple[int, int]  # actor, its action
Past = frozenset[tuple[int, int, int, int]]  # actor, its action, move, place in the range
Arrived = Callable[[_Touch, Clock], bool]


class Conflict(msgspec.Struct, frozen=True):
    """Two accesses without an order. relaxed: ordered, but what the first wrote may not be visible to the second.

    late: ordered, but what the first stored through a switch may not be there yet.
    """

    cell: int
    first: _Touch
    first_writes: bool
    second: _Touch
    second_writes: bool
    relaxed: bool = False
    late: bool = False


class Cells:
    """The memory of one rank in one area. values: as `plan_values` understands them, None where nothing was written.

    packets: the call in which a packet was last written there, −1 for none. senders: the clock of its writer. pasts:
    the moves that it came from. arrived: whether what an actor stored through a switch is there for the one with a
    clock.
    """

    def __init__(self, count: int, arrived: Arrived) -> None:
        self.values: list[int | None] = [None] * count
        self.packets = [-1] * count
        self.senders: list[Clock | None] = [None] * count
        self.pasts: list[Past] = [frozenset()] * count
        self._arrived = arrived
        self._switched = [False] * count
        self._writers: list[_Touch | None] = [None] * count
        self._readers: list[dict[int, int] | None] = [None] * count

    def read(self, cells: range, touch: _Touch, clock: Clock, report: Callable[[Conflict], None]) -> None:
        """`touch` reads plain data; who wrote it must have done so, visibly."""
        visible = clock[VISIBLE]
        for cell in cells:
            writer = self._writers[cell]
            if writer is not None and visible[writer[0]] < writer[1]:
                ordered = bool(clock[ORDER][writer[0]] >= writer[1])
                report(Conflict(cell, writer, True, touch, False, ordered))
            elif writer is not None and self._switched[cell] and not self._arrived(writer, clock):
                report(Conflict(cell, writer, True, touch, False, late=True))
        self.note_read(cells, touch)

    def note_read(self, cells: range, touch: _Touch) -> None:
        """`touch` reads packets, whose flags tell that they are there."""
        actor, time = touch
        for cell in cells:
            readers = self._readers[cell]
            if readers is None:
                self._readers[cell] = {actor: time}
            else:
                readers[actor] = time

    def write(
        self,
        cells: range,
        touch: _Touch,
        clock: Clock,
        report: Callable[[Conflict], None],
        *,
        switched: bool = False,
    ) -> None:
        """`touch` writes, perhaps through a switch; everyone who wrote or read there must be done."""
        order = clock[ORDER]
        for cell in cells:
            writer = self._writers[cell]
            if writer is not None and order[writer[0]] < writer[1] and writer != touch:
                report(Conflict(cell, writer, True, touch, True))
            elif writer is not None and self._switched[cell] and not switched and not self._arrived(writer, clock):
                report(Conflict(cell, writer, True, touch, True, late=True))
            readers = self._readers[cell]
            if readers is not None:
                for reader in readers.items():
                    if order[reader[0]] < reader[1] and reader != touch:
                        report(Conflict(cell, reader, False, touch, True))
                self._readers[cell] = None
            self._writers[cell] = touch
            self._switched[cell] = switched


def cells_of(access: Access, shift: int) -> range:
    """The cells of `access`, which in scratch begins at `shift`."""
    return range(access.start + shift, access.start + shift + access.count * (2 if access.packets else 1))
