"""Resources: how many threadblocks a program spends, and on what.

Small messages want few threadblocks and chunks that pass through them at once; the defaults spend the least. Large
ones want links that are never idle: threadblocks enough for the bandwidth of each link, and none that stands still
because a step that comes later in the tile must be done first.
"""

from __future__ import annotations

import msgspec


class Resources(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a program may spend.

    instances: copies of the whole program, each for a part of every chunk (see `instances`); every connection gets
    that many times more threadblocks. streams: 0 puts all on as few channels as fit; s ≥ 1 deals transfers out by
    level (see `channels`), s channels for the busiest connection, and lets a receiver and a sender share a
    threadblock only where everything received is sent on.
    """

    instances: int = 1
    streams: int = 0


LEAST = Resources()
