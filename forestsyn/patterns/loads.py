"""What a schedule can reach at best: the time that its busiest link needs."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np

from forestsyn.ir.schedule import Schedule
from forestsyn.ir.topology import Topology


def bandwidth_bound(topology: Topology, schedule: Schedule) -> Fraction:
    """GB/s algbw that `schedule` cannot exceed: message size over the longest time that any link is busy.

    The phases of an allreduce count as overlapping, so that this is an upper bound whatever the runtime does.
    """
    counts = np.array([piece.count for piece in schedule.pieces], dtype=np.int64)
    units = np.zeros(len(schedule.routes), dtype=np.int64)
    np.add.at(units, schedule.route, counts[schedule.piece])
    loads: dict[tuple[int, int], int] = {}
    for route, amount in zip(schedule.routes, units.tolist(), strict=True):
        for ends in pairwise(route):
            loads[ends] = loads.get(ends, 0) + amount
    bandwidths = {(link.tail, link.head): link.bandwidth for link in topology.links}
    longest = max(load / bandwidths[ends] for ends, load in loads.items())
    return schedule.chunk_count / longest
