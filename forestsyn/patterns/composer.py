"""Composes a program from steps in one order, and finds what each of them must wait for.

The composer is told the steps of all ranks in an order in which they could run one after the other. It keeps that
meaning while threadblocks run at the same time: a step waits for those that wrote what it reads, and for those that
read or wrote what it writes, unless its own threadblock or other waits imply it. Further waits are put on nops.

No deadlock. Threadblocks keep the given order, and a send comes before its receive there; so the first step in that
order that is not finished can always run, as long as the queue between two ranks has room for what is sent before it
is received. Callers send at most one step ahead on a connection, and keep steps of several chunks, which a runtime
may send as several messages, on threadblocks that only send or only receive.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from forestsyn.ir.program import (
    Buffer,
    Dependency,
    Location,
    Operation,
    RankProgram,
    Step,
    Threadblock,
)

#: (send peer, receive peer) of a threadblock, −1 for none.
Block = tuple[int, int]
LOCAL: Block = (-1, -1)
_Cell = tuple[Buffer, int]
_NOWHERE = Location(buffer=Buffer.INPUT, offset=-1)


@dataclass(eq=False, slots=True)
class _Entry:
    block: Block
    operation: Operation
    source: Location
    destination: Location
    count: int
    waits: list[int] = field(default_factory=list)
    before: int = 0  # bit mask of the steps of this rank that are finished when this one starts


class RankComposer:
    """The steps of one rank.

    output_start: the chunk of the input that chunk 0 of the output lies on when a call is in place; None when the
    program uses only one of the two for the data they share. fused: the target receives and adds in one step.
    """

    def __init__(self, *, output_start: int | None, fused: bool) -> None:
        self._output_start = output_start
        self._fused = fused
        self._entries: list[_Entry] = []
        self._last: dict[Block, int] = {}
        self._writer: dict[_Cell, int] = {}
        self._readers: dict[_Cell, list[int]] = defaultdict(list)
        self._staging: dict[Block, tuple[int, int]] = {}
        self._turn = -1
        self.scratch_chunks = 0

    def take_scratch(self, count: int) -> Location:
        """`count` chunks of scratch that nothing else uses."""
        self.scratch_chunks += count
        return Location(buffer=Buffer.SCRATCH, offset=self.scratch_chunks - count)

    def send(self, block: Block, source: Location, landing: Location, count: int = 1) -> None:
        """Send `source`; `landing` is where the peer puts it."""
        self._add(block, Operation.SEND, source, landing, count, reads=(source,), writes=())

    def receive(self, block: Block, origin: Location, destination: Location, count: int = 1) -> None:
        """Receive into `destination`; `origin` is where the peer has it."""
        self._add(block, Operation.RECV, origin, destination, count, reads=(), writes=(destination,))

    def receive_in_turn(self, block: Block, origin: Location, destination: Location, count: int) -> None:
        """Receive a final value, after all earlier steps that write such values in turn.

        What waits for the last of several arrivals then waits for all of them with one wait. Steps that used the
        destination before need no wait: the final value depends on them, through messages.
        """
        self._add(
            block, Operation.RECV, origin, destination, count, reads=(), writes=(destination,), after=self._turn
        )
        self._turn = len(self._entries) - 1

    def receive_add(self, block: Block, origin: Location, addend: Location, result: Location, count: int = 1) -> None:
        """result = what arrives + addend. result and addend may be one; result is scratch or a final value."""
        if self._fused:
            operation = Operation.RECV_REDUCE_COPY
            self._add(block, operation, addend, result, count, reads=(addend,), writes=(result,))
            return
        if result.buffer is Buffer.SCRATCH and result != addend:
            self.receive(block, origin, result, count)
            self.add(block, addend, result, count)
            return
        staging = self._stage(block, count)
        self.receive(block, origin, staging, count)
        if result == addend:
            self.add(block, staging, result, count)
        else:
            # In place, `result` may lie on `addend`, so the sum is made elsewhere and then copied.
            self.add(block, addend, staging, count)
            self.copy(block, staging, result, count)

    def add(self, block: Block, addend: Location, result: Location, count: int = 1) -> None:
        """result = result + addend."""
        self._add(block, Operation.REDUCE, addend, result, count, reads=(addend, result), writes=(result,))

    def copy(self, block: Block, source: Location, destination: Location, count: int = 1) -> None:
        """destination = source."""
        self._add(block, Operation.COPY, source, destination, count, reads=(source,), writes=(destination,))

    def begin_turn(self) -> None:
        """The last step writes a result in turn."""
        self._turn = len(self._entries) - 1

    def _stage(self, block: Block, count: int) -> Location:
        """Scratch of a threadblock for what it is about to add; its own order makes using it again safe."""
        offset, size = self._staging.get(block, (0, 0))
        if size < count:
            offset = self.take_scratch(count).offset
            self._staging[block] = offset, count
        return Location(buffer=Buffer.SCRATCH, offset=offset)

    def _add(
        self,
        block: Block,
        operation: Operation,
        source: Location,
        destination: Location,
        count: int,
        *,
        reads: tuple[Location, ...],
        writes: tuple[Location, ...],
        after: int | None = None,
    ) -> None:
        number = len(self._entries)
        entry = _Entry(block, operation, source, destination, count)
        needed = set()
        read_cells = [cell for location in reads for cell in self._cells(location, count)]
        written_cells = [cell for location in writes for cell in self._cells(location, count)]
        if after is not None:
            needed.add(after)
        else:
            needed.update(self._writer.get(cell, -1) for cell in (*read_cells, *written_cells))
            needed.update(reader for cell in written_cells for reader in self._readers[cell])
        if block in self._last:
            entry.before = self._entries[self._last[block]].before | 1 << self._last[block]
        for step in sorted(needed - {-1}, reverse=True):
            if not entry.before >> step & 1:
                entry.waits.append(step)
                entry.before |= self._entries[step].before | 1 << step
        for cell in read_cells:
            self._readers[cell].append(number)
        for cell in written_cells:
            self._writer[cell] = number
            self._readers[cell] = []
        self._last[block] = number
        self._entries.append(entry)

    def _cells(self, location: Location, count: int) -> list[_Cell]:
        """The chunks of a location; those of the output under the names that they have in place."""
        buffer, first = location.buffer, location.offset
        if buffer is Buffer.OUTPUT and self._output_start is not None:
            buffer, first = Buffer.INPUT, first + self._output_start
        return [(buffer, first + chunk) for chunk in range(count)]

    def program(self, *, input_chunks: int, output_chunks: int) -> RankProgram:
        """The threadblocks, in the order of their first steps, that of local copies last."""
        blocks = sorted(self._last, key=lambda block: block == LOCAL)
        numbers = {block: number for number, block in enumerate(blocks)}
        rows: list[list[Step]] = [[] for _ in blocks]
        places: list[Dependency] = []
        for entry in self._entries:
            row = rows[numbers[entry.block]]
            waits = [places[step] for step in entry.waits]
            row += [
                Step(operation=Operation.NOP, source=_NOWHERE, destination=_NOWHERE, count=0, depends_on=wait)
                for wait in waits[1:]
            ]
            places.append(Dependency(threadblock=numbers[entry.block], step=len(row)))
            row.append(
                Step(
                    operation=entry.operation,
                    source=entry.source,
                    destination=entry.destination,
                    count=entry.count,
                    depends_on=waits[0] if waits else None,
                )
            )
        return RankProgram(
            input_chunks=input_chunks,
            output_chunks=output_chunks,
            scratch_chunks=self.scratch_chunks,
            threadblocks=tuple(
                Threadblock(send_peer=block[0], receive_peer=block[1], channel=0, steps=steps)
                for block, steps in zip(blocks, _flagged(rows), strict=True)
            ),
        )


def _flagged(rows: list[list[Step]]) -> list[tuple[Step, ...]]:
    """The steps, those that others wait for flagged."""
    waited = {(wait.threadblock, wait.step) for row in rows for step in row if (wait := step.depends_on) is not None}
    return [
        tuple(
            Step(
                operation=step.operation,
                source=step.source,
                destination=step.destination,
                count=step.count,
                depends_on=step.depends_on,
                flagged=(block, number) in waited,
            )
            for number, step in enumerate(row)
        )
        for block, row in enumerate(rows)
    ]
