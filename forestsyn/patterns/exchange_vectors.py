"""Steps of exchanges of whole messages: one-shot and recursive doubling. The message is one chunk."""

from __future__ import annotations

from collections.abc import Sequence

from forestsyn.ir.program import Buffer, Location
from forestsyn.patterns.composer import RankComposer
from forestsyn.patterns.exchange import Exchange

_OWN = Location(buffer=Buffer.INPUT, offset=0)
_RESULT = Location(buffer=Buffer.OUTPUT, offset=0)


def compose_one_shot(exchange: Exchange, ranks: Sequence[RankComposer]) -> None:
    """Everyone sends to all, then adds up in rank order, so that all ranks round alike.

    Each peer has a threadblock that sends to it first; sums follow one another from threadblock to threadblock, so
    the last one, which writes the output, comes after all sends of the input.
    """
    sums = [rank.take_scratch(1) if len(ranks) > 2 else _RESULT for rank in ranks]
    for source, rank in enumerate(ranks):
        for peer in range(len(ranks)):
            if peer != source:
                rank.send((peer, peer), _OWN, sums[peer])
    for number, rank in enumerate(ranks):
        _add_up(number, len(ranks), rank, sums[number])


def _add_up(number: int, count: int, rank: RankComposer, total: Location) -> None:
    """x₀ + x₁ + … from left to right. Rank 0 or 1 starts with its own, others with what rank 0 sends."""
    peers = [peer for peer in range(count) if peer != number]
    started = number < 2
    addend = _OWN if started else total
    for peer in peers:
        block = (peer, peer)
        last = peer == peers[-1] and number < count - 1
        if peer == 0 and not started:
            rank.receive(block, _OWN, total)
        else:
            result = _RESULT if last or count == 2 else total
            rank.receive_add(block, _OWN, addend, result)
            addend = total
        if peer == number - 1 and not started:
            rank.add(block, _OWN, total)
            if number == count - 1:
                rank.copy(block, total, _RESULT)


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
