"""The channel of every transfer.

A piece stays on one channel, so that its transfers can be joined, and goes where its busiest connection has the
least to do. Only a tree with more neighbours at one rank than a channel allows is divided further, by the distance
(destination − source) mod N of its edges: in each of w equal classes of distances a rank has at most ⌈N/w⌉ peers.

For bandwidth, transfers are dealt out by level instead: each connection gets streams in proportion to its load, one
for the first levels of all trees, one for the next, and the phases of an allreduce have streams of their own. A
threadblock that does early steps then goes on to the next tile while those of later steps follow, like a pipeline;
one that does both would stand still until its tile has come all the way.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from forestsyn.errors import UnsupportedError
from forestsyn.ir.schedule import Schedule
from forestsyn.ir.target import Target
from forestsyn.lowering.remedies import remedy
from forestsyn.lowering.resources import Resources


def channel_choices(schedule: Schedule, target: Target, resources: Resources) -> Iterator[list[int]]:
    """The channel of each transfer, 0 … c−1 without gaps, for growing c up to the target's limit.

    Starts with the fewest that the busiest connection and the widest tree can do with, or with as many as `resources`
    spreads the trees over.
    Raises UnsupportedError when these are already more than the target has.
    """
    width = _fewest_classes(schedule, target)
    connections, load = _connection_loads(schedule)
    fewest = -(-int(load.max()) // target.steps_max)
    if fewest * width > target.channels_max:
        raise _too_many(schedule, target, int(np.flatnonzero(connections == load.argmax())[0]), fewest * width)
    distance = (schedule.destination.astype(np.int64) - schedule.source) % schedule.rank_count
    offset = distance * width // schedule.rank_count
    most = max(target.channels_max // width, 1)
    for groups in range(min(max(fewest, resources.streams), most), most + 1):
        if resources.streams:
            group = _deal_levels(schedule, connections, groups)
        else:
            group = np.array(_spread_pieces(schedule, connections, groups), dtype=np.int64)[schedule.piece]
        _, channels = np.unique(group * width + offset, return_inverse=True)
        yield channels.tolist()


def _fewest_classes(schedule: Schedule, target: Target) -> int:
    """1 when every tree fits on a channel, else the classes of distances that make all fit."""
    first = schedule.piece.astype(np.int64) * schedule.rank_count
    widest = max(int(np.bincount(first + end).max()) for end in (schedule.source, schedule.destination))
    if widest <= target.peers_per_channel_max:
        return 1
    return -(-schedule.rank_count // target.peers_per_channel_max)


def _connection_loads(schedule: Schedule) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The connection (source · N + destination, made dense) of each transfer; the transfers of each connection."""
    key = schedule.source.astype(np.int64) * schedule.rank_count + schedule.destination
    _, connections, load = np.unique(key, return_inverse=True, return_counts=True)
    return connections, load


def _deal_levels(schedule: Schedule, connections: npt.NDArray[np.int64], streams: int) -> npt.NDArray[np.int64]:
    """The group of each transfer: of each phase and connection, those of lower levels come first.

    The connection with the most transfers has `streams` groups, the others in proportion, rounded up.
    """
    _, rows = np.unique(connections * 2 + schedule.reduce, return_inverse=True)
    load = np.bincount(rows)
    share = -(-load * streams // load.max())
    order = np.lexsort((schedule.piece, schedule.level, rows))
    first = np.concatenate([[0], np.cumsum(load)])
    place = np.empty(len(rows), dtype=np.int64)
    place[order] = np.arange(len(rows)) - first[rows[order]]
    group: npt.NDArray[np.int64] = place * share[rows] // load[rows] * 2 + schedule.reduce
    return group


def _too_many(schedule: Schedule, target: Target, transfer: int, needed: int) -> UnsupportedError:
    source, destination = int(schedule.source[transfer]), int(schedule.destination[transfer])
    return UnsupportedError(
        f"{len(schedule.pieces)} pieces over {schedule.rank_count} ranks, with the busiest connection from rank "
        f"{source} to rank {destination}, need {needed} channels, {target.name} has {target.channels_max}",
        target=target.name,
        limit="channels_max",
        value=needed,
        rank=source,
        hint=remedy(target, "channels_max"),
    )


def _spread_pieces(schedule: Schedule, connections: npt.NDArray[np.int64], groups: int) -> list[int]:
    """The group of each piece: where the busiest connection among its own is the least busy."""
    load = np.zeros((groups, int(connections.max()) + 1), dtype=np.int64)
    order = np.argsort(schedule.piece, kind="stable")
    bounds = np.searchsorted(schedule.piece[order], np.arange(len(schedule.pieces) + 1))
    chosen = []
    for piece in range(len(schedule.pieces)):
        used = connections[order[bounds[piece] : bounds[piece + 1]]]
        loads = load[:, used]
        group = int(np.lexsort((loads.sum(axis=1), loads.max(axis=1)))[0])
        np.add.at(load[group], used, 1)
        chosen.append(group)
    return chosen
