"""A good schedule with one thing wrong: the checker rejects each and says what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest

from forestsyn.errors import VerificationError
from forestsyn.ir.collective import Collective
from forestsyn.ir.schedule import Piece, Schedule
from forestsyn.verify.schedule import verify_schedule
from tests.samples import Transfer, chain_schedule, make_schedule, transfers_of

ALLGATHER, ALLREDUCE = chain_schedule(Collective.ALLGATHER), chain_schedule(Collective.ALLREDUCE)
REDUCE, BROADCAST = chain_schedule(Collective.REDUCE), chain_schedule(Collective.BROADCAST)


def _changed(schedule: Schedule, **changes: Any) -> Schedule:
    return msgspec.structs.replace(schedule, **changes)


def _with_cell(schedule: Schedule, field: str, index: int, value: int) -> Schedule:
    array = getattr(schedule, field).copy()
    array[index] = value
    return _changed(schedule, **{field: array})


def _rebuilt(schedule: Schedule, edit: Callable[[list[Transfer]], Any]) -> Schedule:
    """The same schedule after `edit` of its transfers, with levels and routes to match."""
    transfers = transfers_of(schedule)
    edit(transfers)
    return make_schedule(schedule.collective, schedule.rank_count, schedule.pieces, transfers, root=schedule.root)


def _set(number: int, transfer: Transfer) -> Callable[[list[Transfer]], None]:
    return lambda transfers: transfers.__setitem__(number, transfer)


def _with_pieces(schedule: Schedule, *pieces: tuple[int, int, int]) -> Schedule:
    return _changed(schedule, pieces=tuple(Piece(first=f, count=c, root=r) for f, c, r in pieces))


# The allreduce begins with piece 0 (root 0): 0: 2 -> 1 adds, 1: 1 -> 0 adds, 2: 0 -> 1, 3: 1 -> 2.
MUTANTS = {
    "the last transfer is lost": (
        _rebuilt(ALLGATHER, lambda transfers: transfers.pop()),
        r"piece 2 at rank 1 lacks the data of rank 2",
    ),
    "a contribution is never added": (
        _rebuilt(ALLREDUCE, _set(0, (0, 2, 1, False, []))),
        r"lacks the data of rank 1",
    ),
    "a contribution is added twice": (
        _rebuilt(REDUCE, lambda transfers: transfers.append((0, 2, 1, True, [0]))),
        r"piece 0 at rank 1 counts twice the data of rank 0",
    ),
    "a copy is added": (_rebuilt(ALLREDUCE, _set(2, (0, 0, 1, True, [1]))), r"rank 1 counts twice the data of rank"),
    "a broadcast adds": (_rebuilt(BROADCAST, _set(0, (0, 1, 2, True, []))), r"adds to what rank 2 does not hold"),
    "sent before it is held": (
        _rebuilt(ALLGATHER, _set(0, (0, 2, 1, False, []))),
        r"sends what rank 2 does not hold",
    ),
    "a dependency is lost": (
        _rebuilt(ALLREDUCE, _set(1, (0, 1, 0, True, []))),
        r"transfer 1 \(piece 0, rank 1 -> rank 0\) does not wait for transfer 0 \(piece 0, rank 2 -> rank 1\)",
    ),
    "a rank is overwritten while it sends": (
        _rebuilt(BROADCAST, lambda transfers: transfers.append((0, 1, 2, False, []))),
        r"transfer 2 .* does not wait for transfer 1",
    ),
    "a dependency on itself": (_with_cell(ALLREDUCE, "dependencies", 0, 1), r"transfer 1 depends on transfer 1"),
    "a dependency on what is to come": (_with_cell(ALLREDUCE, "dependencies", 0, 3), r"1 depends on transfer 3"),
    "a dependency on another piece": (
        _rebuilt(ALLREDUCE, _set(4, (1, 0, 2, True, [1]))),
        r"transfer 4 \(piece 1, .* depends on transfer 1 \(piece 0, .* brings it nothing",
    ),
    "a dependency on an arrival elsewhere": (
        _rebuilt(ALLREDUCE, _set(3, (0, 1, 2, False, [2, 1]))),
        r"transfer 3 .* depends on transfer 1 .* brings it nothing",
    ),
    "a level too low": (_with_cell(ALLREDUCE, "level", 2, 1), r"transfer 2 .* has level 1, expected 2"),
    "a level too high": (_with_cell(ALLREDUCE, "level", 0, 1), r"transfer 0 .* has level 1, expected 0"),
    "a route to another rank": (_with_cell(ALLREDUCE, "route", 0, 0), r"takes route 0, whose end, vertex"),
    "a route through a rank": (
        _changed(ALLREDUCE, routes=((0, 2, 1), *ALLREDUCE.routes[1:])),
        r"route 0 passes through rank 2",
    ),
    "a route that goes nowhere": (
        _changed(ALLREDUCE, routes=((0,), *ALLREDUCE.routes[1:])),
        r"route 0 has 1 vertices",
    ),
    "to itself": (_with_cell(ALLREDUCE, "destination", 0, 2), r"transfer 0 sends from rank 2 to itself"),
    "a rank that does not exist": (_with_cell(ALLREDUCE, "source", 0, 3), r"transfer 0 has source 3, of 3"),
    "a piece that does not exist": (_with_cell(ALLREDUCE, "piece", 0, 3), r"transfer 0 has piece 3, of 3"),
    "a gap between pieces": (_with_pieces(ALLREDUCE, (0, 1, 0), (2, 2, 1), (4, 2, 2)), r"should start at chunk 1"),
    "overlapping pieces": (_with_pieces(ALLREDUCE, (0, 3, 0), (2, 2, 1), (4, 2, 2)), r"should start at chunk 3"),
    "chunks left over": (_changed(ALLREDUCE, chunk_count=7), r"end at chunk 6, the message has 7"),
    "another owner": (_with_pieces(ALLGATHER, (0, 2, 0), (2, 2, 2), (4, 2, 1)), r"rank 2, which does not own"),
    "roots out of order": (_with_pieces(ALLREDUCE, (0, 2, 1), (2, 2, 0), (4, 2, 2)), r"rank 0, which does not own"),
    "no root": (_changed(REDUCE, root=None), r"root is None, expected a rank"),
    "another root": (_changed(REDUCE, root=0), r"rank 1, which does not own"),
    "a root too many": (_changed(ALLREDUCE, root=0), r"root is 0, expected none"),
    "another collective": (_changed(REDUCE, collective=Collective.BROADCAST), r"does not hold|wrongly|adds"),
    "another length": (_changed(ALLREDUCE, level=ALLREDUCE.level[:-1]), r"level is int32\[11\], expected 12"),
    "real numbers": (_changed(ALLREDUCE, level=ALLREDUCE.level.astype(np.float64)), r"level is float64"),
    "starts that fall": (_with_cell(ALLREDUCE, "dependency_starts", 1, 5), r"dependency_starts do not rise"),
}


@pytest.mark.parametrize("collective", Collective)
@pytest.mark.parametrize("rank_count", [2, 3, 5])
def test_the_originals_are_accepted(collective: Collective, rank_count: int) -> None:
    verify_schedule(chain_schedule(collective, rank_count))


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_rejected(name: str) -> None:
    schedule, message = MUTANTS[name]
    with pytest.raises(VerificationError, match=message):
        verify_schedule(schedule)


def test_additions_at_one_rank_need_no_order() -> None:
    transfers: list[Transfer] = [(0, 1, 0, True, []), (0, 2, 0, True, [])]
    pieces = (Piece(first=0, count=1, root=0),)
    verify_schedule(make_schedule(Collective.REDUCE, 3, pieces, transfers, root=0))


def test_violations_are_capped() -> None:
    good = chain_schedule(Collective.ALLREDUCE, 24)
    with pytest.raises(VerificationError) as caught:
        verify_schedule(_changed(good, level=good.level + 1))
    assert len(caught.value.violations) == 20
