"""A timetable for the steps: the order of every threadblock, without a deadlock.

Problem. Order the steps of each threadblock so that both ends of a connection agree, no wait cycle exists whatever
the runtime makes of the steps, and threadblocks idle little. A step of q chunks may run as one message or as ⌈q/a⌉
messages of a chunks (the runtime picks a from the message size); a connection holds at least two messages.

Method. Time counts in chunks. The step at position p of a chain that starts at s takes the interval
[s+p, s+p+q) of its threadblock: the chunks pass through the chain as through a pipe. Chains are placed one by one,
the one that can start first before the others, each at the earliest s at which all its intervals are free, which may
be a gap. Free starts are found with integers as bit sets, all positions at once.

Constraints. (1) Intervals of a threadblock are disjoint. (2) A step starts when what it needs has ended: all
dependencies of the transfer it sends. (3) Intervals that add to the same partial sum are disjoint, so contributions
follow one another. Threadblocks run their steps by time.

Guarantee. No deadlock at any FIFO depth d ≥ 2, for every a. Give message j of a step that starts at σ the time σ+ja.
Everything that a message waits for has an earlier time:
 - the message before it in its threadblock: σ+(j−1)a in the same step; at most σ'+q'−1 < σ in the step before (1);
 - when it receives: the matching message, sent at time σ−1+ja by the step before it in the chain. Both ends of a
   connection agree on the order of messages, as each is received one unit after it is sent;
 - when it sends message number n of a connection: the receipt of message n−d. Send times of a connection grow by at
   least 1 from message to message, so n−d was sent at σ+ja−2 at the latest, and received at σ+ja−1;
 - when it waits for another threadblock: all messages of that step, at most σ'+q'−1 < σ by (2) and (3).
A chain that passes a threadblock twice keeps (1) because its passes are q apart (see `chains`). Times strictly fall
along waits, so no cycle exists. Repeating the program for each tile adds a period longer than the table to all times.
At depth 1 the third case fails (time σ+ja): a ring that is busy everywhere cannot move. No runtime has depth 1.

A total order on chains (each chain at one place in the order of all threadblocks) would be safe at depth 1 as well,
but makes a ring of N ranks take turns: 2N units for an allgather instead of N.

Complexity. O(M) operations on bit sets as long as the table. Exactness: integers only.
References. List scheduling (Graham 1966); deadlock freedom by an order on waits (Dally and Seitz 1987).
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from itertools import pairwise

import msgspec

from forestsyn.errors import InternalError
from forestsyn.ir.schedule import Schedule
from forestsyn.lowering.chains import chain_blocks
from forestsyn.lowering.threadblocks import Threadblocks


class Timetable(msgspec.Struct, frozen=True, kw_only=True):
    """send_times: when the step that sends each transfer starts; the step that receives it starts one later.

    arrivals: when the piece is ready for use at the destination. Units: chunks; both in the order of transfers.
    """

    send_times: tuple[int, ...]
    arrivals: tuple[int, ...]


def make_timetable(
    schedule: Schedule, threadblocks: Threadblocks, chains: list[list[int]], *, separate_reduction: bool
) -> Timetable:
    """Start times of all steps. separate_reduction: a receiver adds in a second step (`re`) after the first."""
    planner = _Planner(schedule, threadblocks, chains, separate_reduction)
    waiting = [(0, -planner.tails[chain], chain) for chain in range(len(chains)) if not planner.missing[chain]]
    heapq.heapify(waiting)
    placed = 0
    while waiting:
        ready, _, chain = heapq.heappop(waiting)
        placed += 1
        for freed in planner.place(chain, ready):
            heapq.heappush(waiting, (planner.ready_time(freed), -planner.tails[freed], freed))
    if placed != len(chains):
        raise InternalError(f"{len(chains) - placed} of {len(chains)} chains wait for each other")
    return Timetable(send_times=tuple(planner.send_times), arrivals=tuple(planner.arrivals))


class _Planner:
    """What is known while chains are placed."""

    def __init__(
        self, schedule: Schedule, threadblocks: Threadblocks, chains: list[list[int]], separate_reduction: bool
    ) -> None:
        self.chains = chains
        self.blocks = [chain_blocks(chain, threadblocks) for chain in chains]
        self.separate_reduction = separate_reduction
        self.counts = [schedule.pieces[piece].count for piece in schedule.piece.tolist()]
        self.reduce = schedule.reduce.tolist()
        self.sums = list(zip(schedule.piece.tolist(), schedule.destination.tolist(), strict=True))
        self.busy: list[int] = [0] * sum(len(own) for own in threadblocks.blocks)
        self.adding: dict[tuple[int, int], int] = defaultdict(int)
        self.send_times = [0] * schedule.transfer_count
        self.arrivals = [0] * schedule.transfer_count
        starts, dependencies = schedule.dependency_starts.tolist(), schedule.dependencies.tolist()
        needed_by = [dependencies[begin:end] for begin, end in pairwise(starts)]
        self.tails = _measure_tails(chains, needed_by, self.counts)
        #: Of each chain, the transfers it waits for, and at which position; and how many of them are not placed.
        self.needs = [
            [
                (needed, position)
                for position, transfer in enumerate(chain)
                for needed in needed_by[transfer]
                if position == 0 or needed != chain[position - 1]
            ]
            for chain in chains
        ]
        self.missing = [len(needs) for needs in self.needs]
        self.waiters: dict[int, list[int]] = defaultdict(list)
        for number, needs in enumerate(self.needs):
            for needed, _ in needs:
                self.waiters[needed].append(number)

    def ready_time(self, chain: int) -> int:
        """The earliest start that the chain's dependencies, all placed, allow."""
        return max((self.arrivals[needed] - position for needed, position in self.needs[chain]), default=0)

    def place(self, number: int, ready: int) -> list[int]:
        """Place a chain at the first free start from `ready` on; return the chains that now miss nothing."""
        chain, blocks = self.chains[number], self.blocks[number]
        count, last = self.counts[chain[0]], len(chain)
        separate = self.separate_reduction and self.reduce[chain[-1]]
        adds_at = last + count if separate else last
        taken = 0
        for position, block in enumerate(blocks):
            length = 2 * count if separate and position == last else count
            taken |= _blocked_starts(self.busy[block], position, length)
        if self.reduce[chain[-1]]:
            taken |= _blocked_starts(self.adding[self.sums[chain[-1]]], adds_at, count)
        start = max(ready, 0)
        start += _lowest_clear_bit(taken >> start)
        interval = (1 << count) - 1
        for position, block in enumerate(blocks):
            self.busy[block] |= interval << start + position
        if separate:
            self.busy[blocks[last]] |= interval << start + adds_at
        if self.reduce[chain[-1]]:
            self.adding[self.sums[chain[-1]]] |= interval << start + adds_at
        for position, transfer in enumerate(chain):
            self.send_times[transfer] = start + position
            self.arrivals[transfer] = start + position + 1 + count
        self.arrivals[chain[-1]] = start + adds_at + count
        return [waiter for transfer in chain for waiter in self.waiters.get(transfer, ()) if self._found(waiter)]

    def _found(self, waiter: int) -> bool:
        self.missing[waiter] -= 1
        return self.missing[waiter] == 0


def _measure_tails(chains: list[list[int]], needed_by: list[list[int]], counts: list[int]) -> list[int]:
    """For each chain, how long the longest row of transfers takes that starts with it."""
    tails = [1 + count for count in counts]
    joined_to = {transfer: before for chain in chains for before, transfer in pairwise(chain)}
    for transfer in reversed(range(len(tails))):
        for needed in needed_by[transfer]:
            delay = 1 if joined_to.get(transfer) == needed else 1 + counts[needed]
            tails[needed] = max(tails[needed], delay + tails[transfer])
    return [tails[chain[0]] for chain in chains]


def _blocked_starts(busy: int, position: int, length: int) -> int:
    """The starts s, as bits, for which [s + position, s + position + length) meets a set bit of `busy`."""
    covered = 1
    while covered < length:
        step = min(covered, length - covered)
        busy |= busy >> step
        covered += step
    return busy >> position


def _lowest_clear_bit(bits: int) -> int:
    return (~bits & (bits + 1)).bit_length() - 1
