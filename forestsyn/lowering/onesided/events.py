"""What each rank does for a group of pieces, in one order that cannot deadlock.

Every transfer is a departure at its source and an arrival at its destination. A rank handles them level by level, the
departures of a level before its arrivals. The wait for an arrival of level l needs the departure of level l at the
other end, before which stand only departures of levels up to l and arrivals of levels below l; by induction on
(level, departure or arrival) nothing waits for ever.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import accumulate
from math import gcd

import msgspec

from forestsyn.ir.schedule import Schedule


class Transfer(msgspec.Struct, frozen=True):
    """One transfer of a piece. number: its position among all; first, count: the chunks."""

    number: int
    piece: int
    source: int
    destination: int
    reduce: bool
    level: int
    first: int
    count: int
    root: int


class Level(msgspec.Struct):
    """The transfers of one level that leave and that reach one rank, in the order of the schedule."""

    departures: list[Transfer]
    arrivals: list[Transfer]


def list_transfers(schedule: Schedule, *, equal: bool = False) -> tuple[Transfer, ...]:
    """Every transfer, in the order of the schedule.

    equal: pieces are cut to the largest size that all are multiples of, so a transfer becomes several.
    """
    pieces = schedule.pieces
    size = gcd(*(piece.count for piece in pieces)) if equal else 0
    parts = [piece.count // size if equal else 1 for piece in pieces]
    first_part = list(accumulate(parts, initial=0))
    columns = (schedule.piece, schedule.source, schedule.destination, schedule.reduce, schedule.level)
    found: list[Transfer] = []
    for piece, source, destination, reduce, level in zip(*(column.tolist() for column in columns), strict=True):
        own = pieces[piece]
        for part in range(parts[piece]):
            found.append(
                Transfer(
                    len(found),
                    first_part[piece] + part,
                    source,
                    destination,
                    reduce,
                    level,
                    own.first + part * size,
                    size if equal else own.count,
                    own.root,
                )
            )
    return tuple(found)


class RankEvents:
    """The events of one rank for one group of pieces."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self._levels: dict[int, Level] = defaultdict(lambda: Level([], []))

    def levels(self) -> Iterator[Level]:
        """The levels that hold something, lowest first."""
        return (self._levels[level] for level in sorted(self._levels))

    def add_departure(self, transfer: Transfer) -> None:
        """`transfer` leaves this rank."""
        self._levels[transfer.level].departures.append(transfer)

    def add_arrival(self, transfer: Transfer) -> None:
        """`transfer` reaches this rank."""
        self._levels[transfer.level].arrivals.append(transfer)

    @property
    def destinations(self) -> list[int]:
        """The ranks that this one sends to, sorted."""
        return sorted({transfer.destination for level in self.levels() for transfer in level.departures})

    @property
    def sources(self) -> list[int]:
        """The ranks that this one receives from, sorted."""
        return sorted({transfer.source for level in self.levels() for transfer in level.arrivals})


def rank_events(transfers: tuple[Transfer, ...], rank_count: int, group: int, groups: int) -> list[RankEvents]:
    """The events of every rank for the pieces whose number is `group` modulo `groups`."""
    events = [RankEvents(rank) for rank in range(rank_count)]
    for transfer in transfers:
        if transfer.piece % groups == group:
            events[transfer.source].add_departure(transfer)
            events[transfer.destination].add_arrival(transfer)
    return events
