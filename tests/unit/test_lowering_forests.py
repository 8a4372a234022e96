"""Forests to schedules: pieces, order, dependencies, and what is refused."""

from __future__ import annotations

import random

import numpy as np
import pytest

from forestsyn.errors import InternalError
from forestsyn.ir.collective import Collective
from forestsyn.ir.forest import Direction
from forestsyn.ir.schedule import Piece, Schedule
from forestsyn.lowering import lower_forests
from forestsyn.lowering.pieces import cut_pieces
from forestsyn.verify.schedule import verify_schedule
from tests.lowering_forests import make_forest, random_forest, reversed_forest, ring, star


def pieces_of(in_parts: list[int], out_parts: list[int]) -> list[int]:
    """The pieces of root 0 of 4 ranks, whose runs the two forests divide as given."""
    parents = [(-1, 0, 0, 0), (-1, 0, 1, 2), (-1, 0, 1, 0), (-1, 0, 0, 1)]
    schedule = lower_forests(
        Collective.ALLREDUCE,
        in_forest=make_forest(4, list(zip([0] * 4, in_parts, parents, strict=False)), Direction.IN),
        out_forest=make_forest(4, list(zip([0] * 4, out_parts, parents[::-1], strict=False)), Direction.OUT),
        root=None,
    )
    verify_schedule(schedule)
    return [piece.count for piece in schedule.pieces]


def test_pieces_are_the_common_refinement() -> None:
    assert pieces_of([5], [5]) == [5]
    assert pieces_of([4, 2], [2, 4]) == [4, 2]
    assert pieces_of([3, 3, 2], [5, 3]) == [3, 3, 2]
    assert pieces_of([5, 3], [4, 4]) == [4, 1, 3]


def test_reversed_forest_divides_nothing_further() -> None:
    forest = random_forest(5, 6, [4, 0, 7, 1, 2, 3], Direction.OUT)
    schedule = lower_forests(Collective.ALLREDUCE, out_forest=forest, in_forest=reversed_forest(forest), root=None)
    assert len(schedule.pieces) == forest.tree_count
    assert schedule.depth == 2 * forest.depth


@pytest.mark.parametrize("collective", list(Collective))
@pytest.mark.parametrize("seed", range(4))
def test_schedules_verify(collective: Collective, seed: int) -> None:
    root = 3 if collective.rooted else None
    demand = [3] * 7 if root is None else [0, 0, 0, 5, 0, 0, 0]
    schedule = lower_forests(
        collective,
        out_forest=random_forest(seed, 7, demand, Direction.OUT),
        in_forest=random_forest(seed + 100, 7, demand, Direction.IN),
        root=root,
    )
    verify_schedule(schedule)
    verify_schedule(cut_pieces(schedule, 2))
    phases = 2 if collective is Collective.ALLREDUCE else 1
    assert schedule.transfer_count == phases * 6 * len(schedule.pieces)


def test_reduce_scatter_of_a_star() -> None:
    forest = make_forest(3, [(0, 2, (-1, 0, 0)), (1, 2, (1, -1, 1)), (2, 2, (2, 2, -1))], Direction.IN)
    schedule = lower_forests(Collective.REDUCE_SCATTER, out_forest=None, in_forest=forest, root=None)
    assert schedule.pieces == tuple(Piece(first=2 * rank, count=2, root=rank) for rank in range(3))
    assert schedule.source.tolist() == [1, 2, 0, 2, 0, 1]
    assert schedule.destination.tolist() == [0, 0, 1, 1, 2, 2]
    assert schedule.reduce.all()
    assert len(schedule.dependencies) == 0


def test_cut_pieces() -> None:
    forest = make_forest(3, [(0, 7, (-1, 0, 1)), (1, 2, (1, -1, 1))], Direction.OUT)
    schedule = lower_forests(Collective.ALLREDUCE, out_forest=forest, in_forest=reversed_forest(forest), root=None)
    assert cut_pieces(schedule, 7) is schedule
    cut = cut_pieces(schedule, 3)
    assert [(piece.first, piece.count) for piece in cut.pieces] == [(0, 2), (2, 2), (4, 3), (7, 2)]
    assert cut.transfer_count == 4 * 4
    for transfer in range(cut.transfer_count):
        needed = cut.dependencies_of(transfer)
        assert (cut.piece[needed] == cut.piece[transfer]).all()
        assert (cut.destination[needed] == cut.source[transfer]).all()


def broken(**changes: object) -> Schedule:
    forest = make_forest(3, [(rank, 1, star(random.Random(), 3, rank)) for rank in range(3)], Direction.OUT)
    arguments: dict[str, object] = {"out_forest": forest, "in_forest": reversed_forest(forest), "root": None}
    collective = changes.pop("collective", Collective.ALLREDUCE)
    return lower_forests(collective, **{**arguments, **changes})  # type: ignore[arg-type]


def test_misuse_is_an_internal_error() -> None:
    chain = make_forest(3, [(0, 1, ring(random.Random(), 3, 0))], Direction.IN)
    for changes in (
        {"out_forest": None},
        {"in_forest": chain},
        {"in_forest": reversed_forest(chain)},
        {"root": 0},
        {"collective": Collective.BROADCAST},
        {"collective": Collective.REDUCE, "root": 1},
        {"collective": Collective.REDUCE_SCATTER, "in_forest": chain},
    ):
        with pytest.raises(InternalError):
            broken(**changes)


def test_arrays_have_the_types_of_the_contract() -> None:
    schedule = broken()
    for array in (schedule.piece, schedule.source, schedule.destination, schedule.level, schedule.route):
        assert array.dtype == np.int32
    assert schedule.reduce.dtype == np.bool_
    assert schedule.dependencies.dtype == schedule.dependency_starts.dtype == np.int32
