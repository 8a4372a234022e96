"""How a rank spreads its peers over threadblocks, where one cannot hold them all.

A threadblock holds 16 channels and 16 remote buffers of each type. A rank with more peers in one group of pieces
gets several threadblocks for it, its lanes; every peer belongs to one of them. Ranks do this each for themselves,
since the ends of a channel find each other by rank and order alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from forestsyn.ir.plan import ChannelType
from forestsyn.lowering.onesided.events import RankEvents
from forestsyn.lowering.onesided.limits import CHANNELS_MAX, REMOTE_BUFFERS_MAX
from forestsyn.lowering.onesided.storage import Storage


def spread_peers(rank: int, ports: frozenset[tuple[int, int]], buffers: Mapping[int, int]) -> dict[int, int]:
    """The lane of each peer, as many peers in each lane as in the others; empty where one lane holds all.

    buffers: for each peer how many of its buffers `rank` reaches.
    """
    ways: dict[ChannelType, list[int]] = {}
    for peer in sorted(buffers):
        ways.setdefault(ChannelType.PORT if (rank, peer) in ports else ChannelType.MEMORY, []).append(peer)
    lanes = max((_lanes([buffers[peer] for peer in peers]) for peers in ways.values()), default=1)
    if lanes == 1:
        return {}
    return {peer: number * lanes // len(peers) for peers in ways.values() for number, peer in enumerate(peers)}


def event_buffers(events: RankEvents, storage: Storage) -> dict[int, int]:
    """For each peer in `events` how many of its buffers this rank reaches."""
    reached: dict[int, set[object]] = {peer: set() for peer in events.sources}
    for level in events.levels():
        for item in level.departures:
            reached.setdefault(item.destination, set()).add(storage.landing(item).buffer)
    return {peer: len(found) for peer, found in reached.items()}


def _lanes(buffers: list[int]) -> int:
    room = min(CHANNELS_MAX, REMOTE_BUFFERS_MAX // max(1, *buffers))
    return -(-len(buffers) // room)
