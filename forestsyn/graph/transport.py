"""Transportation problems: supplies against rooms, over allowed pairs only.

Solved as one maximum flow; exact integers, with OR-Tools within int64 and refusal beyond.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt
from ortools.graph.python.max_flow import SimpleMaxFlow

from forestsyn.errors import InternalError
from forestsyn.graph.flow import INT64_SAFE


class Transport(msgspec.Struct, frozen=True, eq=False):
    """amounts: int64[supplies, rooms]. short: supply that found no room. Where it is not 0, `starved` are supplies
    that together ask for too little room, and `full` the rooms that they may use, all of them full."""

    amounts: npt.NDArray[np.int64]
    short: int
    starved: tuple[int, ...]
    full: frozenset[int]


def solve_transport(supplies: Sequence[int], rooms: Sequence[int], allowed: npt.NDArray[np.bool_]) -> Transport:
    """Place as much supply as possible. allowed: bool[supplies, rooms]. Sums must stay within int64."""
    total = sum(supplies)
    if total + sum(rooms) >= INT64_SAFE:
        raise InternalError("a transportation problem is beyond int64")
    lines, columns = np.nonzero(allowed)
    height, width = allowed.shape
    source, sink = height + width, height + width + 1
    solver = SimpleMaxFlow()
    amounts = np.array(supplies, dtype=np.int64)
    arcs = solver.add_arcs_with_capacity(
        np.concatenate([np.full(height, source), lines, height + np.arange(width)]),
        np.concatenate([np.arange(height), height + columns, np.full(width, sink)]),
        np.concatenate([amounts, amounts[lines], np.array(rooms, dtype=np.int64)]),
    )
    status = solver.solve(source, sink)
    if status != SimpleMaxFlow.OPTIMAL:
        raise InternalError(f"a transportation problem ended with {status}")
    placed = np.zeros((height, width), dtype=np.int64)
    placed[lines, columns] = solver.flows(arcs[height : height + len(lines)])
    short = total - int(solver.optimal_flow())
    if short == 0:
        return Transport(placed, 0, (), frozenset())
    side = sorted(solver.get_source_side_min_cut())
    return Transport(
        placed,
        short,
        tuple(vertex for vertex in side if vertex < height),
        frozenset(vertex - height for vertex in side if height <= vertex < source),
    )


def cheapest_transport(
    supplies: Sequence[int],
    rooms: Sequence[int],
    costs: npt.NDArray[np.int64],
    allowed: npt.NDArray[np.bool_],
) -> npt.NDArray[np.int64] | None:
    """int64[supplies, rooms]: all supply placed at the least sum of amount × cost.

    None where it cannot all be placed, or where the sums would leave int64.
    """
    from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

    total = sum(supplies)
    height, width = allowed.shape
    if (total + sum(rooms)) * int(costs.max()) * (height + width + 2) >= INT64_SAFE:
        return None
    lines, columns = np.nonzero(allowed)
    source, sink = height + width, height + width + 1
    amounts = np.array(supplies, dtype=np.int64)
    free = np.zeros(height, dtype=np.int64), np.zeros(width, dtype=np.int64)
    solver = SimpleMinCostFlow()
    arcs = solver.add_arcs_with_capacity_and_unit_cost(
        np.concatenate([np.full(height, source), lines, height + np.arange(width)]),
        np.concatenate([np.arange(height), height + columns, np.full(width, sink)]),
        np.concatenate([amounts, amounts[lines], np.array(rooms, dtype=np.int64)]),
        np.concatenate([free[0], costs[lines, columns], free[1]]),
    )
    solver.set_node_supply(source, total)
    solver.set_node_supply(sink, -total)
    if solver.solve() != SimpleMinCostFlow.OPTIMAL:
        return None
    placed = np.zeros((height, width), dtype=np.int64)
    placed[lines, columns] = solver.flows(arcs[height : height + len(lines)])
    return placed
