"""Chains and timetable: what the proof of deadlock freedom needs, and how full threadblocks are."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import pytest

from forestsyn.ir.collective import Collective
from forestsyn.ir.forest import Direction
from forestsyn.ir.schedule import Schedule
from forestsyn.ir.target import EXECUTOR
from forestsyn.lowering import lower_forests
from forestsyn.lowering.chains import chain_blocks, join_transfers
from forestsyn.lowering.resources import LEAST
from forestsyn.lowering.threadblocks import Threadblocks, choose_threadblocks
from forestsyn.lowering.timetable import Timetable, make_timetable
from tests.lowering_forests import Shape, random_forest, reversed_forest, ring, star


def plan(
    collective: Collective, demand: list[int], shapes: tuple[Shape, ...], *, separate: bool = False
) -> tuple[Schedule, Threadblocks, list[list[int]], Timetable]:
    forest = random_forest(1, len(demand), demand, Direction.OUT, shapes)
    schedule = lower_forests(collective, out_forest=forest, in_forest=reversed_forest(forest), root=None)
    threadblocks = choose_threadblocks(schedule, EXECUTOR, reserved=(0,) * len(demand), resources=LEAST)
    chains = join_transfers(schedule, threadblocks, fused=not separate)
    return schedule, threadblocks, chains, make_timetable(schedule, threadblocks, chains, separate_reduction=separate)


@pytest.mark.parametrize("ranks", [3, 5, 16])
def test_a_ring_is_busy_all_the_time(ranks: int) -> None:
    """N − 1 hops from every rank at once, and one unit for the last receive."""
    _, threadblocks, chains, timetable = plan(Collective.ALLGATHER, [1] * ranks, (ring,))
    assert all(len(own) == 1 for own in threadblocks.blocks)
    assert len(chains) == ranks
    assert max(timetable.arrivals) == ranks


def test_a_star_sends_at_once() -> None:
    _, _, _, timetable = plan(Collective.ALLGATHER, [3] * 8, (star,))
    assert set(timetable.send_times) == {0}


@pytest.mark.parametrize("separate", [False, True])
@pytest.mark.parametrize("collective", [Collective.ALLREDUCE, Collective.REDUCE_SCATTER])
def test_constraints_of_the_proof(collective: Collective, separate: bool) -> None:
    schedule, threadblocks, chains, timetable = plan(collective, [4] * 7, (ring, star, binary), separate=separate)
    assert sorted(transfer for chain in chains for transfer in chain) == list(range(schedule.transfer_count))
    intervals: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for chain in chains:
        start = timetable.send_times[chain[0]]
        count = schedule.pieces[schedule.piece[chain[0]]].count
        assert [timetable.send_times[transfer] for transfer in chain] == list(range(start, start + len(chain)))
        for position, block in enumerate(chain_blocks(chain, threadblocks)):
            intervals[block].append((start + position, start + position + count))
    for own in intervals.values():
        assert all(earlier[1] <= later[0] for earlier, later in pairwise(sorted(own)))
    joined = {after: before for chain in chains for before, after in pairwise(chain)}
    for transfer in range(schedule.transfer_count):
        for needed in schedule.dependencies_of(transfer).tolist():
            if joined.get(transfer) != needed:
                assert timetable.arrivals[needed] <= timetable.send_times[transfer]


def binary(source: object, ranks: int, root: int) -> tuple[int, ...]:
    """A binary tree over the ranks, counted from the root."""
    parents = [-1] * ranks
    for place in range(1, ranks):
        parents[(root + place) % ranks] = (root + (place - 1) // 2) % ranks
    return tuple(parents)
