"""Cut pieces that are longer than one step may carry."""

from __future__ import annotations

from itertools import chain, pairwise

import msgspec
import numpy as np

from forestsyn.ir.schedule import Piece, Schedule


def cut_pieces(schedule: Schedule, count_max: int) -> Schedule:
    """The same schedule with every piece of more than `count_max` chunks cut into parts that differ by at most one.

    The transfers of a cut piece are repeated, part by part; parts do not depend on each other.
    """
    parts = np.array([-(-piece.count // count_max) for piece in schedule.pieces], dtype=np.int64)
    if (parts <= 1).all():
        return schedule
    first_part = np.concatenate([[0], np.cumsum(parts)])
    copies = parts[schedule.piece]
    first_copy = np.concatenate([[0], np.cumsum(copies)])
    part = np.arange(first_copy[-1]) - np.repeat(first_copy[:-1], copies)
    counts = np.repeat(np.diff(schedule.dependency_starts), copies)
    starts = np.concatenate([[0], np.cumsum(counts)])
    original = np.repeat(np.arange(schedule.transfer_count), copies)
    entry = np.arange(starts[-1]) - np.repeat(starts[:-1] - schedule.dependency_starts[original], counts)
    pieces = [_cut(piece, count) for piece, count in zip(schedule.pieces, parts.tolist(), strict=True)]
    return msgspec.structs.replace(
        schedule,
        pieces=tuple(chain.from_iterable(pieces)),
        piece=(first_part[schedule.piece[original]] + part).astype(np.int32),
        source=schedule.source[original],
        destination=schedule.destination[original],
        reduce=schedule.reduce[original],
        level=schedule.level[original],
        route=schedule.route[original],
        dependency_starts=starts.astype(np.int32),
        dependencies=(first_copy[schedule.dependencies[entry]] + np.repeat(part, counts)).astype(np.int32),
    )


def _cut(piece: Piece, parts: int) -> list[Piece]:
    bounds = [piece.first + piece.count * part // parts for part in range(parts + 1)]
    return [Piece(first=begin, count=end - begin, root=piece.root) for begin, end in pairwise(bounds)]
