"""Steps of exchanges of whole messages: one-shot, on one level or two, and recursive doubling.

The message is one chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from forestsyn.ir.program import Buffer, Location
from forestsyn.patterns.composer import RankComposer
from forestsyn.patterns.exchange import Exchange, one_shot_levels

_OWN = Location(buffer=Buffer.INPUT, offset=0)
_RESULT = Location(buffer=Buffer.OUTPUT, offset=0)


def compose_one_shot(exchange: Exchange, ranks: Sequence[RankComposer]) -> None:
    """Everyone sends to all of its group, then adds up in the order of the group, so that all ranks round alike.

    Each peer has a threadblock that sends to it first; sums follow one another from threadblock to threadblock, so
    the last one, which writes the output, comes after all sends of the input.
    """
    levels = one_shot_levels(exchange)
    values = [_OWN] * len(ranks)
    for groups in levels:
        last = groups is levels[-1]
        totals = [rank.take_scratch(1) if not last or len(groups[0]) > 2 else _RESULT for rank in ranks]
        results = [_RESULT] * len(ranks) if last else totals
        for group in groups:
            for source, peer in permutations(group, 2):
                ranks[source].send((peer, peer), values[source], totals[peer])
        for group in groups:
            for place, rank in enumerate(group):
                _add_up(group, place, ranks[rank], values, totals[rank], results[rank])
        values = results


def _add_up(
    group: Sequence[int],
    place: int,
    rank: RankComposer,
    values: Sequence[Location],
    total: Location,
    result: Location,
) -> None:
    """x₀ + x₁ + … from left to right. The first two start with their own value, others with what the first sends."""
    own, ends_with_own = values[group[place]], place == len(group) - 1 and place > 1
    others = [peer for peer in group if peer != group[place]]
    for number, peer in enumerate(others):
        block = (peer, peer)
        if number == 0 and place > 1:
            rank.receive(block, values[peer], total)
        else:
            last = number == len(others) - 1 and not ends_with_own
            rank.receive_add(block, values[peer], own if number == 0 else total, result if last else total)
        if number == place - 1 and place > 1:
            rank.add(block, own, total)
    if ends_with_own and result != total:
        rank.copy((others[-1], others[-1]), total, result)


def compose_vectors(exchange: Exchange, ranks: Sequence[RankComposer]) -> None:
    """Recursive doubling; the sum after each round has a place of its own, the last one the output."""
    order, count = exchange.order, len(exchange.order)
    power = 1 << (count.bit_length() - 1)
    places = dict.fromkeys(range(count), _OWN)
    for extra in range(power, count):
        place = ranks[order[extra - power]].take_scratch(1)
        _swap(order, ranks, [(extra, extra - power)], places, {extra - power: place})
    distance = 1
    while distance < power:
        last = 2 * distance == power
        results = {position: _RESULT if last else ranks[order[position]].take_scratch(1) for position in range(power)}
        _swap(order, ranks, [(position, position ^ distance) for position in range(power)], places, results)
        distance *= 2
    for extra in range(power, count):
        source, destination = order[extra - power], order[extra]
        ranks[source].send((destination, destination), _RESULT, _RESULT)
        ranks[destination].receive((source, source), _RESULT, _RESULT)


def _swap(
    order: Sequence[int],
    ranks: Sequence[RankComposer],
    messages: Sequence[tuple[int, int]],
    places: dict[int, Location],
    results: dict[int, Location],
) -> None:
    """Messages (source, destination) as positions: all are sent, then all are added to what the destinations have."""
    for source, destination in messages:
        peer = order[destination]
        ranks[order[source]].send((peer, peer), places[source], results[destination])
    arrived = dict(places)
    for source, destination in messages:
        peer = order[source]
        ranks[order[destination]].receive_add((peer, peer), places[source], places[destination], results[destination])
        arrived[destination] = results[destination]
    places.update(arrived)
