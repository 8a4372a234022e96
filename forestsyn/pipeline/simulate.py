"""A program file and a topology → simulated runs, next to the bound of the collective."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import msgspec

from forestsyn.ir.collective import Collective
from forestsyn.ir.profile import Profile
from forestsyn.ir.program import Program
from forestsyn.ir.simulation import Activity, Simulation
from forestsyn.ir.topology import Topology
from forestsyn.pipeline.bound import bound
from forestsyn.pipeline.stages import Root
from forestsyn.simulate import critical_path, prepare, simulate


class SimulateResult(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Runs of one program, one for each size. limit_algbw: GB/s that no schedule exceeds, None where not known.

    path: what the last finished activity waited for, and so on back to the start; of the last size, on request.
    """

    program: Program
    topology: Topology
    profile: Profile
    collective: Collective | None
    limit_algbw: Fraction | None
    runs: tuple[Simulation, ...]
    path: tuple[Activity, ...]


def simulate_file(
    program: Program,
    topology: Topology,
    profile: Profile,
    sizes: Sequence[int],
    *,
    root: Root = None,
    record: bool = False,
) -> SimulateResult:
    """Simulate a program at several message sizes (bytes). record: keep the activities of the last one.

    Raises InputError where program and topology do not fit.
    """
    prepared = prepare(program, topology, profile)
    runs = [simulate(prepared, size, record=record and size == sizes[-1]) for size in sizes]
    collective = next((known for known in Collective if str(known) == program.collective), None)
    limit = None
    if collective is not None:
        limit = bound(topology, collective, root if collective.rooted else None).limit_algbw
    return SimulateResult(
        program=program,
        topology=topology,
        profile=profile,
        collective=collective,
        limit_algbw=limit,
        runs=tuple(runs),
        path=critical_path(runs[-1]) if record else (),
    )


def simulate_summary(result: SimulateResult) -> dict[str, Any]:
    """The result as plain data."""
    factor = result.collective.busbw_factor(result.topology.rank_count) if result.collective else Fraction(1)
    return {
        "program": result.program.name,
        "collective": result.program.collective,
        "protocol": str(result.program.protocol),
        "topology": result.topology.name,
        "rates": result.topology.rates,
        "profile": result.profile.name,
        "limit_algbw_GBps": None if result.limit_algbw is None else float(result.limit_algbw),
        "runs": [_run_data(result, run, float(factor)) for run in result.runs],
        "critical_path": [_activity_data(activity) for activity in result.path],
    }


def _run_data(result: SimulateResult, run: Simulation, factor: float) -> dict[str, Any]:
    links = sorted(range(len(run.link_busy)), key=lambda link: (-float(run.link_busy[link]), link))[:5]
    names = [vertex.name for vertex in result.topology.vertices]
    program = result.program
    served = program.minimum_bytes <= run.message_bytes and (
        not program.maximum_bytes or run.message_bytes <= program.maximum_bytes
    )
    return {
        "bytes": run.message_bytes,
        "time_us": None if run.stuck else run.time_us,
        "algbw_GBps": run.algbw,
        "busbw_GBps": run.algbw * factor,
        "share_of_limit": None if result.limit_algbw is None else run.algbw / float(result.limit_algbw),
        "tiles": run.tiles,
        "simulated_tiles": run.simulated_tiles,
        "used_by_runtime": served and run.message_bytes % program.chunk_count == 0,
        "busiest_links": [
            {
                "from": names[result.topology.links[link].tail],
                "to": names[result.topology.links[link].head],
                "busy": float(run.link_busy[link]),
            }
            for link in links
            if run.link_busy[link] > 0
        ],
        "rerouted_pairs": [list(pair) for pair in run.rerouted],
        "stuck": list(run.stuck.waits) if run.stuck else None,
    }


def _activity_data(activity: Activity) -> dict[str, Any]:
    return {
        "rank": activity.rank,
        "threadblock": activity.threadblock,
        "step": activity.step,
        "tile": activity.tile,
        "operation": activity.operation,
        "start_us": activity.start_us,
        "end_us": activity.end_us,
        "waited_for": activity.waited_for,
    }
