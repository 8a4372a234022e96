"""Profiles: what a runtime on a machine costs, besides the bandwidth of links.

The simulator takes bandwidth (and latency, where stated) from the topology and everything else from here. Each number
of a shipped profile names its source; `forestsyn fit` replaces the ones that a measurement can tell. Times are floats
of µs, rates floats of GB/s: a profile predicts, it proves nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from forestsyn.ir.program import Protocol


class LinkClass(StrEnum):
    """What a message crosses; the slowest class of its path sets its latency."""

    PEER = "peer"  # GPU to GPU inside a host: NVLink, NVSwitch, xGMI
    HOST = "host"  # PCIe, CPUs and their sockets
    NETWORK = "network"  # NICs and the fabric


class ProtocolCost(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One protocol of one runtime.

    message_bytes: payload of one message (`chunkEffectiveSize` of the runtime), above which chunks are tiled.
    messages_in_flight: FIFO depth of a connection, in messages. slices: parts of a message that travel one by one.
    efficiency: payload over bytes on the link (LL 1/2, LL128 15/16, Simple 1).
    threadblock_GBps: payload that one threadblock moves at most. step_us: a threadblock's overhead for each step.
    latency_us: from the end of sending a slice until its receiver sees it, by link class.
    """

    message_bytes: int
    messages_in_flight: int
    slices: int
    efficiency: float
    threadblock_GBps: Mapping[LinkClass, float]
    step_us: float
    latency_us: Mapping[LinkClass, float]


class Profile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Costs of one runtime on one kind of machine.

    launch_us: from the call until threadblocks run, once for each collective.
    copy_GBps: a threadblock's rate for local copies and reductions.
    sources: where each number comes from, by the name of its field.
    """

    name: str
    launch_us: float
    copy_GBps: float
    protocols: Mapping[Protocol, ProtocolCost]
    sources: Mapping[str, str]
