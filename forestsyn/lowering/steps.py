"""Steps: one draft for each thing a threadblock does, with its place in time and the draft it waits for.

Every step waits for at most one step of another threadblock: the copy that it forwards, or the contribution added
before it to the same partial sum, since contributions follow one another and the sum is sent after the last. So no
program needs a `nop`. Writing a chunk over an earlier use of it needs no wait either: `placement` never reuses a
chunk but for the final value of an allreduce, which depends on that use through messages.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise

from forestsyn.ir.program import Location, Operation
from forestsyn.ir.schedule import Piece, Schedule
from forestsyn.lowering.chains import chain_blocks
from forestsyn.lowering.placement import Placement
from forestsyn.lowering.threadblocks import Threadblocks
from forestsyn.lowering.timetable import Timetable


@dataclass(eq=False, slots=True)
class Draft:
    """A step without a number. block: global id, or −1 − rank for the local copies of a rank. time: its start."""

    block: int
    time: int
    operation: Operation
    source: Location
    destination: Location
    count: int
    after: Draft | None = None


def draft_steps(
    schedule: Schedule,
    threadblocks: Threadblocks,
    chains: list[list[int]],
    timetable: Timetable,
    placement: Placement,
    *,
    count_max: int,
) -> list[Draft]:
    """All steps of all ranks, in no particular order. Takes scratch from `placement`."""
    drafter = _Drafter(schedule, threadblocks, timetable, placement)
    if placement.copies_own:
        drafter.copy_own(count_max)
    for chain in chains:
        drafter.draft_chain(chain)
    drafter.tie()
    return drafter.drafts


class _Drafter:
    """Drafts by transfer: `arrival[t]` is the step after which transfer t's piece is ready at its destination."""

    def __init__(
        self, schedule: Schedule, threadblocks: Threadblocks, timetable: Timetable, placement: Placement
    ) -> None:
        self.schedule = schedule
        self.threadblocks = threadblocks
        self.timetable = timetable
        self.placement = placement
        self.pieces = [schedule.pieces[piece] for piece in schedule.piece.tolist()]
        self.source = schedule.source.tolist()
        self.destination = schedule.destination.tolist()
        self.reduce = schedule.reduce.tolist()
        self.drafts: list[Draft] = []
        self.copies: dict[int, list[tuple[int, Draft]]] = {}
        self.arrival: dict[int, Draft] = {}
        self.waits: list[tuple[Draft, int]] = []
        self.sums = self._order_contributions()
        self.previous = {later: earlier for row in self.sums.values() for earlier, later in pairwise(row)}
        self.staging = {} if placement.fused else self._take_staging()

    def _order_contributions(self) -> dict[tuple[int, int], list[int]]:
        """The transfers that rank r adds up for the piece at chunk f, by (f, r), in the order of their times."""
        sums: dict[tuple[int, int], list[int]] = defaultdict(list)
        for transfer, reduce in enumerate(self.reduce):
            if reduce:
                sums[self.pieces[transfer].first, self.destination[transfer]].append(transfer)
        for row in sums.values():
            row.sort(key=lambda transfer: self.timetable.arrivals[transfer])
        return sums

    def _take_staging(self) -> dict[int, Location]:
        """One scratch area for each threadblock that receives before it adds; its own order makes reuse safe."""
        sizes: dict[int, int] = {}
        ranks: dict[int, int] = {}
        for transfer, block in enumerate(self.threadblocks.receive_block):
            if self.reduce[transfer] and not self._lands_in_sum(transfer):
                sizes[block] = max(sizes.get(block, 0), self.pieces[transfer].count)
                ranks[block] = self.destination[transfer]
        return {block: self.placement.take_scratch(ranks[block], sizes[block]) for block in sorted(sizes)}

    def _lands_in_sum(self, transfer: int) -> bool:
        """Without fused operations: the first contribution of a rank that is not the root starts the sum itself."""
        return transfer not in self.previous and self.destination[transfer] != self.pieces[transfer].root

    def copy_own(self, count_max: int) -> None:
        """Each root copies its run of chunks, before time 0: these steps wait for nothing."""
        runs: dict[int, list[Piece]] = defaultdict(list)
        for piece in self.schedule.pieces:
            runs[piece.root].append(piece)
        for rank, pieces in sorted(runs.items()):
            first, last = pieces[0].first, pieces[-1].first + pieces[-1].count
            parts = -(-(last - first) // count_max)
            bounds = [first + (last - first) * part // parts for part in range(parts + 1)]
            self.copies[rank] = []
            for number, (begin, end) in enumerate(pairwise(bounds)):
                draft = Draft(
                    block=-1 - rank,
                    time=number - parts,
                    operation=Operation.COPY,
                    source=self.placement.own(rank, begin),
                    destination=self.placement.result(rank, begin),
                    count=end - begin,
                )
                self.copies[rank].append((end, draft))
                self.drafts.append(draft)

    def draft_chain(self, chain: list[int]) -> None:
        """One step at each rank that the chain passes; two at the end where adding is a step of its own."""
        blocks = chain_blocks(chain, self.threadblocks)
        start = self.timetable.send_times[chain[0]]
        send = self._draft(
            chain[0],
            blocks[0],
            start,
            Operation.SEND,
            self._origin(chain[0]),
            self._landing(chain[0], joined=chain[1:]),
        )
        needed = max(self.schedule.dependencies_of(chain[0]).tolist(), key=self._arrival_time, default=-1)
        if needed >= 0:
            self.waits.append((send, needed))
        for position, transfer in enumerate(chain):
            joined = chain[position + 1 :]
            time = start + position + 1
            if not self.reduce[transfer]:
                operation = Operation.RECV_COPY_SEND if joined else Operation.RECV
                source, destination = self._origin(transfer), self._landing(transfer, joined=joined)
                self.arrival[transfer] = self._draft(
                    transfer, blocks[position + 1], time, operation, source, destination
                )
            elif self.placement.fused:
                self._receive_and_add(transfer, blocks[position + 1], time, joined)
            else:
                self._receive_then_add(transfer, blocks[position + 1], time)

    def _arrival_time(self, transfer: int) -> tuple[int, int]:
        return self.timetable.arrivals[transfer], transfer

    def _receive_and_add(self, transfer: int, block: int, time: int, joined: list[int]) -> None:
        operation = Operation.RECV_REDUCE_COPY
        if joined:
            reduces_on = self.reduce[joined[0]]
            operation = Operation.RECV_REDUCE_SEND if reduces_on else Operation.RECV_REDUCE_COPY_SEND
        draft = self._draft(
            transfer, block, time, operation, self._addend(transfer), self._landing(transfer, joined=joined)
        )
        self.arrival[transfer] = draft
        if transfer in self.previous:
            self.waits.append((draft, self.previous[transfer]))

    def _receive_then_add(self, transfer: int, block: int, time: int) -> None:
        piece, rank = self.pieces[transfer], self.destination[transfer]
        landing = self._landing(transfer, joined=[])
        self._draft(transfer, block, time, Operation.RECV, self._origin(transfer), landing)
        addend = self.placement.own(rank, piece.first) if self._lands_in_sum(transfer) else landing
        adding = self._draft(
            transfer, block, time + piece.count, Operation.REDUCE, addend, self._partial_sum(rank, piece)
        )
        self.arrival[transfer] = adding
        if transfer in self.previous:
            self.waits.append((adding, self.previous[transfer]))
        elif rank == piece.root:
            adding.after = next(draft for end, draft in self.copies[rank] if end >= piece.first + piece.count)

    def _draft(
        self, transfer: int, block: int, time: int, operation: Operation, source: Location, destination: Location
    ) -> Draft:
        draft = Draft(block, time, operation, source, destination, self.pieces[transfer].count)
        self.drafts.append(draft)
        return draft

    def _origin(self, transfer: int) -> Location:
        """Where the source of a transfer has the piece."""
        piece, rank = self.pieces[transfer], self.source[transfer]
        summed = (piece.first, rank) in self.sums
        if self.reduce[transfer]:
            return self._partial_sum(rank, piece) if summed else self.placement.own(rank, piece.first)
        if rank != piece.root or summed:
            return self.placement.result(rank, piece.first)
        return self.placement.own(rank, piece.first)

    def _landing(self, transfer: int, *, joined: list[int]) -> Location:
        """The destination operand of the step that receives a transfer; `joined`: those forwarded after it."""
        piece, rank = self.pieces[transfer], self.destination[transfer]
        if not self.reduce[transfer]:
            return self.placement.result(rank, piece.first)
        if not self.placement.fused and not self._lands_in_sum(transfer):
            return self.staging[self.threadblocks.receive_block[transfer]]
        if joined and self.reduce[joined[0]]:
            return self._addend(transfer)
        return self._partial_sum(rank, piece)

    def _addend(self, transfer: int) -> Location:
        """What a contribution is added to: the rank's own one, or the sum so far."""
        piece, rank = self.pieces[transfer], self.destination[transfer]
        if transfer in self.previous:
            return self._partial_sum(rank, piece)
        return self.placement.own(rank, piece.first)

    def _partial_sum(self, rank: int, piece: Piece) -> Location:
        return self.placement.partial_sum(rank, piece.root, piece.first, piece.count)

    def tie(self) -> None:
        """Let each step wait for the arrival it needs."""
        for draft, needed in self.waits:
            draft.after = self.arrival[needed]
