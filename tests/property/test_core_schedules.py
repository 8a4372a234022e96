"""Schedules lowered from random trees with uneven shares and unlike phases: the independent checker accepts all."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from forestsyn.ir.collective import Collective
from forestsyn.ir.forest import Direction, Forest
from forestsyn.lowering import lower_forests
from forestsyn.verify.schedule import verify_schedule
from tests.samples import Tree, make_forest


@given(st.sampled_from(Collective), st.integers(2, 6), st.integers(1, 4), st.data())
def test_lowered_forests_verify(collective: Collective, ranks: int, count: int, data: st.DataObject) -> None:
    root = data.draw(st.integers(0, ranks - 1)) if collective.rooted else None
    demand = [count if root in (None, rank) else 0 for rank in range(ranks)]
    if collective is Collective.ALLREDUCE:
        demand = data.draw(st.lists(st.integers(0, 4), min_size=ranks, max_size=ranks).filter(any))
    outward, inward = data.draw(out_forests(demand)), _turned_round(data.draw(out_forests(demand)))
    schedule = lower_forests(
        collective,
        out_forest=outward if collective.broadcasts else None,
        in_forest=inward if collective.reduces else None,
        root=root,
    )
    verify_schedule(schedule)
    assert schedule.chunk_count == sum(demand)


@st.composite
def out_forests(draw: st.DrawFn, demand: list[int]) -> Forest:
    """Random out-trees around one switch that add up to `demand`."""
    ranks = range(len(demand))
    routes = [(tail, len(demand), head) for tail in ranks for head in ranks if tail != head]
    number = {(route[0], route[2]): position for position, route in enumerate(routes)}
    trees: list[Tree] = []
    for root, left in enumerate(demand):
        while left:
            multiplicity = draw(st.integers(1, left))
            left -= multiplicity
            order = [root, *draw(st.permutations([rank for rank in ranks if rank != root]))]
            parent = {rank: order[draw(st.integers(0, place))] for place, rank in enumerate(order[1:])}
            trees.append((root, multiplicity, parent, {rank: number[parent[rank], rank] for rank in parent}))
    return make_forest(len(demand), routes, sorted(trees, key=lambda tree: (tree[0], -tree[1])))


def _turned_round(forest: Forest) -> Forest:
    routes = tuple(route[::-1] for route in forest.routes)
    return msgspec.structs.replace(forest, direction=Direction.IN, routes=routes)
