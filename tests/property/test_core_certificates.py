"""The checkers of certificates against slow ones: random damage is accepted exactly if it does no harm."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import pairwise

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from forestsyn.errors import VerificationError
from forestsyn.ir.collective import Collective
from forestsyn.ir.forest import Forest
from forestsyn.ir.schedule import Schedule
from forestsyn.ir.topology import Topology
from forestsyn.verify.forest import verify_forest
from forestsyn.verify.schedule import verify_schedule
from tests.samples import Transfer, chain_schedule, make_schedule, small_forest, small_topology, transfers_of


@given(st.data())
def test_damaged_forests(data: st.DataObject) -> None:
    topology, forest = small_topology(), _damaged_forest(data)
    try:
        verify_forest(topology, forest)
    except VerificationError:
        assert not _is_good(topology, forest)
    else:
        assert _is_good(topology, forest)


@given(st.sampled_from(Collective), st.integers(2, 4), st.data())
def test_damaged_schedules_that_pass_deliver_in_any_order(
    collective: Collective, rank_count: int, data: st.DataObject
) -> None:
    schedule = _damaged_schedule(chain_schedule(collective, rank_count), data)
    try:
        verify_schedule(schedule)
    except VerificationError:
        return
    assert _delivers(schedule, data)


@given(st.sampled_from(Collective), st.integers(2, 4), st.data())
def test_other_orders_of_a_good_schedule_pass(collective: Collective, rank_count: int, data: st.DataObject) -> None:
    good = chain_schedule(collective, rank_count)
    order = _any_order(good, data)
    position = {old: new for new, old in enumerate(order)}
    transfers = transfers_of(good)
    moved = [(*transfers[old][:4], [position[needed] for needed in transfers[old][4]]) for old in order]
    verify_schedule(make_schedule(collective, rank_count, good.pieces, moved, root=good.root))


def _damaged_forest(data: st.DataObject) -> Forest:
    forest = small_forest()
    small = st.integers(-1, 3)
    changes: dict[str, object] = {
        "time_units": data.draw(st.sampled_from([Fraction(1), Fraction(3, 2), Fraction(2)]))
    }
    for field in ("parents", "edge_routes"):
        array = getattr(forest, field).copy()
        for tree, rank in data.draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=2)):
            array[tree, rank] = data.draw(small)
        changes[field] = array
    routes = [*forest.routes, (1, 3, 0), (2, 3, 1), (0, 3, 2)]
    if data.draw(st.booleans()):
        routes[data.draw(st.integers(0, 6))] = tuple(data.draw(st.lists(small.filter(lambda v: v >= 0), max_size=4)))
    return msgspec.structs.replace(forest, routes=tuple(routes), **changes)


def _is_good(topology: Topology, forest: Forest) -> bool:
    """Out-trees only, one dictionary look-up after the other."""
    bandwidth = {(link.tail, link.head): link.bandwidth for link in topology.links}
    load: Counter[tuple[int, int]] = Counter()
    for route in forest.routes:
        hops = list(pairwise(route))
        if not hops or any(hop not in bandwidth for hop in hops) or set(route[1:-1]) & set(topology.ranks):
            return False
    for tree, root in enumerate(forest.roots):
        for rank in range(forest.rank_count):
            parent, number = int(forest.parents[tree, rank]), int(forest.edge_routes[tree, rank])
            if rank == root:
                if parent != -1 or number != -1:
                    return False
                continue
            if not 0 <= parent < forest.rank_count or not 0 <= number < len(forest.routes):
                return False
            route = forest.routes[number]
            if (route[0], route[-1]) != (topology.ranks[parent], topology.ranks[rank]):
                return False
            load.update(pairwise(route))
            ancestors = [rank]
            while ancestors[-1] != root:
                ancestors.append(int(forest.parents[tree, ancestors[-1]]))
                if not 0 <= ancestors[-1] < forest.rank_count or len(ancestors) > forest.rank_count:
                    return False
    return all(count <= forest.time_units * bandwidth[hop] for hop, count in load.items())


def _damaged_schedule(schedule: Schedule, data: st.DataObject) -> Schedule:
    transfers = transfers_of(schedule)
    for _ in range(data.draw(st.integers(0, 2))):
        number = data.draw(st.integers(0, len(transfers) - 1))
        piece, source, destination, reduce, needed = transfers[number]
        kind = data.draw(st.sampled_from(["drop dependencies", "flip", "reroute", "append", "depend"]))
        other = data.draw(st.integers(0, schedule.rank_count - 1))
        if kind == "drop dependencies":
            transfers[number] = (piece, source, destination, reduce, [])
        elif kind == "flip":
            transfers[number] = (piece, source, destination, not reduce, needed)
        elif kind == "reroute":
            transfers[number] = (piece, source, other, reduce, needed)
        elif kind == "depend" and number:
            transfers[number] = (piece, source, destination, reduce, [*needed, data.draw(st.integers(0, number - 1))])
        else:
            late: Transfer = (piece, destination, other, data.draw(st.booleans()), [number])
            transfers.append(late)
    return make_schedule(schedule.collective, schedule.rank_count, schedule.pieces, transfers, root=schedule.root)


def _any_order(schedule: Schedule, data: st.DataObject) -> list[int]:
    """An order of the transfers that the dependencies allow."""
    left, order = list(range(schedule.transfer_count)), list[int]()
    while left:
        ready = [number for number in left if set(schedule.dependencies_of(number).tolist()) <= set(order)]
        order.append(data.draw(st.sampled_from(ready)))
        left.remove(order[-1])
    return order


def _delivers(schedule: Schedule, data: st.DataObject) -> bool:
    everyone = range(schedule.rank_count)
    collective = schedule.collective
    held = {
        (number, rank): Counter([rank] if collective.reduces or rank == piece.root else [])
        for number, piece in enumerate(schedule.pieces)
        for rank in everyone
    }
    transfers = transfers_of(schedule)
    for transfer in _any_order(schedule, data):
        piece, source, destination, reduce, _ = transfers[transfer]
        sent = Counter(held[piece, source])
        held[piece, destination] = held[piece, destination] + sent if reduce else sent
    return all(
        held[number, rank] == Counter(everyone if collective.reduces else [piece.root])
        for number, piece in enumerate(schedule.pieces)
        for rank in everyone
        if collective.broadcasts or rank == piece.root
    )
