"""Resources: how many threadblocks a program spends, and on what.

Small messages want few threadblocks and messages that pass through them at once. Large ones want links that are never
idle: enough threadblocks for the bandwidth of each link, and none that stands still because another step of its own
comes first. The four choices:

 - instances: copies of the whole program (see `instances`); every connection gets that many threadblocks.
 - spread: the least number of channels that trees are dealt out to; a connection that many trees use gets many
   threadblocks, one that few use gets few, and each threadblock waits for fewer others.
 - separate_phases: an allreduce reduces on other channels than it hands out, so that the threadblocks that reduce
   go on to the next tile meanwhile.
 - overlap: a receiver and a sender share a threadblock only where everything received is sent on, so that receiving
   and sending overlap.
"""

from __future__ import annotations

import msgspec


class Resources(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a program may spend; the defaults spend the least. See the module."""

    instances: int = 1
    spread: int = 1
    separate_phases: bool = False
    overlap: bool = False


LEAST = Resources()
