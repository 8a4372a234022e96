"""Chains: transfers that are joined by fused steps.

A transfer that arrives at v in the threadblock through which the next one leaves v is joined to it: one step
receives and forwards. A chain is a maximal row of joined transfers; it has one step for each rank that it passes. In
a phase, v joins at most one arriving transfer of a piece to at most one leaving one, since a threadblock has one peer
each way. At the root of an allreduce, the last contribution may also be joined to a first copy.

Invariant. A chain that passes one threadblock twice does so at positions at least the piece's chunk count apart. Only
a join at a root can lead it round, and is left out otherwise. `timetable` needs this.
"""

from __future__ import annotations

from collections import defaultdict

from forestsyn.ir.schedule import Schedule
from forestsyn.lowering.threadblocks import Threadblocks


def join_transfers(schedule: Schedule, threadblocks: Threadblocks, *, fused: bool) -> list[list[int]]:
    """Chains as rows of transfers, in the order of their first transfers; every transfer is in exactly one.

    fused: False for targets whose steps cannot receive and send at once; every transfer is then a chain of its own,
    also where a rank is so crowded that its receivers and senders share threadblocks.
    """
    if not fused:
        return [[transfer] for transfer in range(schedule.transfer_count)]
    after = [-1] * schedule.transfer_count
    before = [-1] * schedule.transfer_count
    at_roots: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    reduce, level, piece = schedule.reduce.tolist(), schedule.level.tolist(), schedule.piece.tolist()
    starts, dependencies = schedule.dependency_starts.tolist(), schedule.dependencies.tolist()
    for leaving in range(schedule.transfer_count):
        for arriving in dependencies[starts[leaving] : starts[leaving + 1]]:
            if threadblocks.receive_block[arriving] != threadblocks.send_block[leaving]:
                continue
            if reduce[arriving] == reduce[leaving]:
                after[arriving], before[leaving] = leaving, arriving
            else:
                at_roots[piece[leaving]].append((-level[arriving], arriving, leaving))
    for carried, candidates in sorted(at_roots.items()):
        count = schedule.pieces[carried].count
        for _, arriving, leaving in sorted(candidates):
            row = _walk(before, arriving)[::-1] + _walk(after, leaving)
            if _passes_apart(row, threadblocks, count):
                after[arriving], before[leaving] = leaving, arriving
                break
    return [_walk(after, head) for head, previous in enumerate(before) if previous < 0]


def _walk(links: list[int], transfer: int) -> list[int]:
    row = []
    while transfer >= 0:
        row.append(transfer)
        transfer = links[transfer]
    return row


def _passes_apart(row: list[int], threadblocks: Threadblocks, count: int) -> bool:
    seen: dict[int, int] = {}
    for position, block in enumerate(chain_blocks(row, threadblocks)):
        if block in seen and position - seen[block] < count:
            return False
        seen[block] = position
    return True


def chain_blocks(chain: list[int], threadblocks: Threadblocks) -> list[int]:
    """The threadblock (global id) of each step of a chain: one more than it has transfers."""
    return [threadblocks.send_block[chain[0]], *(threadblocks.receive_block[transfer] for transfer in chain)]
