"""The certificate of a schedule: it delivers the collective in every order that its dependencies allow.

Form first: shapes, ranges, the pieces' ownership, dependencies, levels, ends of routes. Then each piece is executed
symbolically. A value is a multiset of contributions, kept as two bit masks over the ranks: those held at least once
and those held at least twice; an addition is exact on both. The order of the array is only one of those that may
happen, so every two transfers that touch a piece at the same rank must be ordered by the dependencies, unless both
read or both add. Then all orders give the same values, and checking one is enough.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from forestsyn.ir.collective import Collective
from forestsyn.ir.schedule import Piece, Schedule
from forestsyn.verify.certificate import MAXIMUM_VIOLATIONS, reject_if_any

_Value = tuple[int, int]
_NOTHING: _Value = (0, 0)


def verify_schedule(schedule: Schedule) -> None:
    """Check form, order and result of `schedule`; raises VerificationError listing what it found."""
    form = (_malformed, _out_of_range, _wrong_pieces, _wrong_dependencies, _wrong_levels, _wrong_routes)
    for check in (*form, _wrong_results):
        reject_if_any("the schedule", check(schedule))


def _malformed(schedule: Schedule) -> list[str]:
    count = len(schedule.piece)
    fields = dict.fromkeys(("piece", "source", "destination", "level", "route"), ("i", count))
    fields |= {
        "reduce": ("b", count),
        "dependency_starts": ("i", count + 1),
        "dependencies": ("i", len(schedule.dependencies)),
    }
    violations = []
    for name, (kind, length) in fields.items():
        array: npt.NDArray[Any] = getattr(schedule, name)
        if array.shape != (length,) or array.dtype.kind != kind:
            expected = "integers" if kind == "i" else "truth values"
            violations.append(f"{name} is {array.dtype}{list(array.shape)}, expected {length} {expected}")
    if schedule.rank_count < 2 or schedule.chunk_count < 1:
        violations.append(f"it has {schedule.rank_count} ranks and {schedule.chunk_count} chunks, expected 2 and 1")
    rooted, root = schedule.collective.rooted, schedule.root
    if (root is not None) != rooted or (root is not None and not 0 <= root < schedule.rank_count):
        violations.append(f"its root is {root}, expected {'a rank' if rooted else 'none'} for {schedule.collective}")
    return violations


def _out_of_range(schedule: Schedule) -> list[str]:
    limits = {
        "piece": (schedule.piece, len(schedule.pieces)),
        "source": (schedule.source, schedule.rank_count),
        "destination": (schedule.destination, schedule.rank_count),
        "route": (schedule.route, len(schedule.routes)),
    }
    violations = [
        f"transfer {transfer} has {name} {array[transfer]}, of {limit}"
        for name, (array, limit) in limits.items()
        for transfer in _first((array < 0) | (array >= limit))
    ]
    for transfer in _first(schedule.source == schedule.destination):
        violations.append(f"transfer {transfer} sends from rank {schedule.source[transfer]} to itself")
    starts = schedule.dependency_starts
    if starts[0] != 0 or starts[-1] != len(schedule.dependencies) or (np.diff(starts) < 0).any():
        violations.append(f"dependency_starts do not rise from 0 to {len(schedule.dependencies)}")
    return violations


def _wrong_pieces(schedule: Schedule) -> list[str]:
    """Pieces that leave chunks out or hold them twice, or belong to the wrong rank."""
    violations = []
    expected, previous_root = 0, 0
    for piece in sorted(schedule.pieces, key=lambda piece: piece.first):
        text = f"the piece of chunks {piece.first}..{piece.first + piece.count - 1}"
        if piece.count < 1 or piece.first != expected:
            violations.append(f"{text} should start at chunk {expected} and hold at least one")
        if not 0 <= piece.root < schedule.rank_count:
            violations.append(f"{text} belongs to rank {piece.root}, of {schedule.rank_count}")
        elif not _owns(schedule, piece, previous_root):
            violations.append(f"{text} belongs to rank {piece.root}, which does not own these chunks")
        expected, previous_root = piece.first + piece.count, piece.root
    if expected != schedule.chunk_count:
        violations.append(f"the pieces end at chunk {expected}, the message has {schedule.chunk_count}")
    if schedule.collective.shards and schedule.chunk_count % schedule.rank_count:
        violations.append(f"{schedule.chunk_count} chunks do not divide among {schedule.rank_count} ranks")
    return violations


def _owns(schedule: Schedule, piece: Piece, previous_root: int) -> bool:
    if schedule.root is not None:
        return piece.root == schedule.root
    if schedule.collective is Collective.ALLREDUCE:
        return piece.root >= previous_root
    share = max(schedule.chunk_count // schedule.rank_count, 1)
    return piece.first // share == (piece.first + piece.count - 1) // share == piece.root


def _wrong_dependencies(schedule: Schedule) -> list[str]:
    """Dependencies must point back and be arrivals of the same piece at the rank that sends."""
    needed = schedule.dependencies
    waiting = np.repeat(np.arange(schedule.transfer_count), np.diff(schedule.dependency_starts))
    forward = (needed < 0) | (needed >= waiting)
    violations = [
        f"transfer {waiting[index]} depends on transfer {needed[index]}, which is not before it"
        for index in _first(forward)
    ]
    if violations:
        return violations
    unrelated = (schedule.piece[needed] != schedule.piece[waiting]) | (
        schedule.destination[needed] != schedule.source[waiting]
    )
    return [
        f"{_name(schedule, waiting[index])} depends on {_name(schedule, needed[index])}, "
        f"which brings it nothing to send"
        for index in _first(unrelated)
    ]


def _wrong_levels(schedule: Schedule) -> list[str]:
    expected = np.zeros(schedule.transfer_count, dtype=np.int64)
    waiting = np.repeat(np.arange(schedule.transfer_count), np.diff(schedule.dependency_starts))
    # Each level is compared with the claimed ones before it, so by induction all of them are right or one is named.
    np.maximum.at(expected, waiting, schedule.level[schedule.dependencies].astype(np.int64) + 1)
    return [
        f"{_name(schedule, transfer)} has level {schedule.level[transfer]}, expected {expected[transfer]}"
        for transfer in _first(schedule.level != expected)
    ]


def _wrong_routes(schedule: Schedule) -> list[str]:
    """Routes must agree on which vertex each rank is, no two ranks on one, and pass through no rank."""
    vertex_of: dict[int, int] = {}
    rank_at: dict[int, int] = {}
    violations = []
    uses = np.unique(np.stack([schedule.route, schedule.source, schedule.destination], axis=1), axis=0)
    for number, source, destination in uses.tolist():
        route = schedule.routes[number]
        if len(route) < 2:
            violations.append(f"route {number} has {len(route)} vertices, expected at least 2")
            continue
        for rank, vertex in ((source, route[0]), (destination, route[-1])):
            if vertex_of.setdefault(rank, vertex) != vertex or rank_at.setdefault(vertex, rank) != rank:
                violations.append(
                    f"rank {source} -> rank {destination} takes route {number}, whose end, vertex {vertex}, "
                    f"is not rank {rank}"
                )
    for number, route in enumerate(schedule.routes):
        passed = [rank_at[vertex] for vertex in route[1:-1] if vertex in rank_at]
        if passed:
            violations.append(f"route {number} passes through rank {passed[0]}, which does not forward")
    return violations


def _wrong_results(schedule: Schedule) -> list[str]:
    order = np.argsort(schedule.piece, kind="stable")
    ends = np.searchsorted(schedule.piece[order], np.arange(len(schedule.pieces) + 1)).tolist()
    violations: list[str] = []
    for number, (start, end) in enumerate(pairwise(ends)):
        values = _initial_values(schedule, schedule.pieces[number])
        transfers = order[start:end].tolist()
        violations += _misordered(schedule, transfers)
        violations += _execute(schedule, transfers, values)
        violations += _unfinished(schedule, number, values)
        if len(violations) >= MAXIMUM_VIOLATIONS:
            break
    return violations


def _initial_values(schedule: Schedule, piece: Piece) -> list[_Value]:
    if schedule.collective.reduces:
        return [(1 << rank, 0) for rank in range(schedule.rank_count)]
    return [(1 << rank, 0) if rank == piece.root else _NOTHING for rank in range(schedule.rank_count)]


def _misordered(schedule: Schedule, transfers: list[int]) -> list[str]:
    """Pairs of transfers of one piece that meet at a rank, conflict, and no chain of dependencies orders."""
    reads, copies, additions = ([0] * schedule.rank_count for _ in range(3))
    before: dict[int, int] = {}  # per transfer, a bit mask over positions in `transfers`
    violations = []
    for position, transfer in enumerate(transfers):
        source, destination = int(schedule.source[transfer]), int(schedule.destination[transfer])
        earlier = 0
        for needed in schedule.dependencies_of(transfer).tolist():
            earlier |= before[needed]
        conflicts = copies[source] | additions[source] | reads[destination] | copies[destination]
        if schedule.reduce[transfer]:
            additions[destination] |= 1 << position
        else:
            conflicts |= additions[destination]
            copies[destination] |= 1 << position
        reads[source] |= 1 << position
        before[transfer] = earlier | 1 << position
        unordered = conflicts & ~earlier
        if unordered:
            other = transfers[unordered.bit_length() - 1]
            violations.append(f"{_name(schedule, transfer)} does not wait for {_name(schedule, other)}")
    return violations


def _execute(schedule: Schedule, transfers: list[int], values: list[_Value]) -> list[str]:
    violations = []
    for transfer in transfers:
        source, destination = int(schedule.source[transfer]), int(schedule.destination[transfer])
        once, twice = values[source]
        if not once:
            violations.append(f"{_name(schedule, transfer)} sends what rank {source} does not hold")
        if not schedule.reduce[transfer]:
            values[destination] = (once, twice)
            continue
        held_once, held_twice = values[destination]
        if not held_once:
            violations.append(f"{_name(schedule, transfer)} adds to what rank {destination} does not hold")
        values[destination] = (once | held_once, twice | held_twice | once & held_once)
    return violations


def _unfinished(schedule: Schedule, number: int, values: list[_Value]) -> list[str]:
    """Ranks that must hold the result of a piece and do not."""
    root = schedule.pieces[number].root
    wanted = (1 << schedule.rank_count) - 1 if schedule.collective.reduces else 1 << root
    everywhere = schedule.collective.broadcasts
    violations = []
    for rank, (once, twice) in enumerate(values):
        if not everywhere and rank != root:
            continue
        for fault, mask in (("lacks", wanted & ~once), ("counts twice", twice), ("wrongly has", once & ~wanted)):
            if mask:
                contribution = (mask & -mask).bit_length() - 1
                violations.append(
                    f"at the end, piece {number} at rank {rank} {fault} the data of rank {contribution}"
                )
    return violations


def _name(schedule: Schedule, transfer: int) -> str:
    source, destination = schedule.source[transfer], schedule.destination[transfer]
    return f"transfer {transfer} (piece {schedule.piece[transfer]}, rank {source} -> rank {destination})"


def _first(mask: npt.NDArray[np.bool_]) -> list[int]:
    indices: list[int] = np.flatnonzero(mask)[:MAXIMUM_VIOLATIONS].tolist()
    return indices
