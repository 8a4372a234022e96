"""Simulated runs as Chrome trace events, which Perfetto and chrome://tracing open.

Ranks are processes, threadblocks threads, activities complete events (`X`), messages flow arrows (`s` to `f`).
Times are µs. Format: Trace Event Format (Google, 2016).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from forestsyn.ir.simulation import Activity, Simulation
from forestsyn.ir.topology import Topology


def emit_trace(simulation: Simulation, topology: Topology) -> str:
    """The JSON text for a simulation that was recorded."""
    events = [*_names(simulation, topology), *_activities(simulation)]
    return json.dumps({"displayTimeUnit": "ns", "traceEvents": events}, separators=(",", ":")) + "\n"


def _names(simulation: Simulation, topology: Topology) -> Iterator[dict[str, Any]]:
    for rank, name in enumerate(topology.rank_name(rank) for rank in range(topology.rank_count)):
        yield {"ph": "M", "name": "process_name", "pid": rank, "tid": 0, "args": {"name": f"rank {rank}, {name}"}}
    for rank, block in sorted({(activity.rank, activity.threadblock) for activity in simulation.activities}):
        yield {"ph": "M", "name": "thread_name", "pid": rank, "tid": block, "args": {"name": f"threadblock {block}"}}


def _activities(simulation: Simulation) -> Iterator[dict[str, Any]]:
    for number, activity in enumerate(simulation.activities):
        yield {
            "ph": "X",
            "name": activity.operation,
            "cat": "step",
            "ts": activity.start_us,
            "dur": activity.end_us - activity.start_us,
            **_place(activity),
            "args": {
                "step": activity.step,
                "tile": activity.tile,
                "bytes": activity.payload,
                "to_rank": activity.peer_send,
                "from_rank": activity.peer_receive,
                "waited_us": activity.start_us - activity.ready_us,
                "waited_for": activity.waited_for,
            },
        }
        if activity.waited_for == "message" and activity.cause is not None:
            sender = simulation.activities[activity.cause]
            flow = {"name": "message", "cat": "message", "id": number}
            yield {"ph": "s", **flow, "ts": sender.start_us, **_place(sender)}
            yield {"ph": "f", "bp": "e", **flow, "ts": activity.start_us, **_place(activity)}


def _place(activity: Activity) -> dict[str, int]:
    return {"pid": activity.rank, "tid": activity.threadblock}
