"""Exchanges: algorithms that a schedule of trees cannot say, as a form and an order of the ranks.

In a schedule a rank has one value for each piece, which it adds to or passes on. Two kinds of algorithm need more.
Where every rank adds up everything by itself (one-shot, recursive doubling of the whole message), it must send its
own contribution and add up others at the same time. And where the data of several roots travels together (recursive
doubling and Bruck), a step carries all of it: log₂ N steps instead of N − 1, which is what small messages want.

The forms, for ranks p₀ … pₙ₋₁ in the exchange's order:

ONE_SHOT  allreduce: everyone sends its whole message to all, and adds up what arrives, in rank order.
TWO_LEVEL allreduce: one-shot inside each host, of `host_size` ranks that follow each other in the order; then
          one-shot of the hosts' sums between the ranks at equal places of all hosts.
VECTORS   allreduce: in round j, pᵢ and p_{i xor 2ʲ} swap sums of the whole message. Ranks beyond the greatest power
          of two hand their message to a partner first, and get the result from it.
DOUBLING  in round j, pᵢ and p_{i xor 2ʲ} swap all 2ʲ shards that they have; N must be a power of two. Reductions run
          the rounds backwards with sums (recursive halving), an allreduce does both.
BRUCK     in round j, pᵢ sends up to 2ʲ shards, its own and those it has of the next ones, to p_{i − 2ʲ}; any N.

References. Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005); Bruck et al., IEEE TPDS 8 (1997).
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

import msgspec

from forestsyn.ir.collective import Collective

#: (source, destination, chunks) of the messages of a round, as a gather sends them.
Round = list[tuple[int, int, list[int]]]


class Form(StrEnum):
    """The algorithm of an exchange."""

    ONE_SHOT = "one-shot"
    TWO_LEVEL = "two-level"
    VECTORS = "vectors"
    DOUBLING = "doubling"
    BRUCK = "bruck"


class Exchange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """order: the rank at each position, all ranks once. The message has one chunk per rank, or one in all for
    ONE_SHOT, TWO_LEVEL and VECTORS. host_size: for TWO_LEVEL alone."""

    form: Form
    collective: Collective
    order: tuple[int, ...]
    host_size: int = 0

    @property
    def chunk_count(self) -> int:
        """Chunks of the message."""
        return 1 if self.form in (Form.ONE_SHOT, Form.TWO_LEVEL, Form.VECTORS) else len(self.order)


def gather_rounds(exchange: Exchange) -> list[Round]:
    """The rounds of DOUBLING or BRUCK, as an allgather runs them."""
    order, count = exchange.order, len(exchange.order)
    rounds = []
    for distance in _distances(count):
        messages: Round = []
        for position, rank in enumerate(order):
            if exchange.form is Form.DOUBLING:
                first = position & ~(distance - 1)
                held, other = range(first, first + distance), position ^ distance
            else:
                held = range(position, position + min(distance, count - distance))
                other = position - distance
            messages.append((rank, order[other], sorted(order[place % count] for place in held)))
        rounds.append(messages)
    return rounds


def one_shot_levels(exchange: Exchange) -> list[list[tuple[int, ...]]]:
    """The groups that add up their values among themselves, level by level."""
    order, size = exchange.order, exchange.host_size
    if exchange.form is Form.ONE_SHOT:
        return [[order]]
    return [
        [order[first : first + size] for first in range(0, len(order), size)],
        [order[n::size] for n in range(size)],
    ]


def talking_pairs(exchange: Exchange) -> Iterator[tuple[int, int]]:
    """The ordered pairs of ranks that send to each other, some perhaps twice; reductions send backwards."""
    order, count = exchange.order, len(exchange.order)
    if exchange.form in (Form.ONE_SHOT, Form.TWO_LEVEL):
        for groups in one_shot_levels(exchange):
            for group in groups:
                yield from ((first, second) for first in group for second in group if first != second)
        return
    if exchange.form is Form.VECTORS:
        power = 1 << (count.bit_length() - 1)
        for position in range(count):
            partners = [position ^ distance for distance in _distances(power)] if position < power else []
            partners += [position ^ power] if position ^ power < count else []
            yield from ((order[position], order[partner]) for partner in partners)
        return
    for messages in gather_rounds(exchange):
        for source, destination, _ in messages:
            if exchange.collective.broadcasts:
                yield source, destination
            if exchange.collective.reduces:
                yield destination, source


def _distances(count: int) -> list[int]:
    """1, 2, 4, … below `count`."""
    return [1 << bit for bit in range((count - 1).bit_length())]
