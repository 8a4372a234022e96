"""One workload, measured in this process: `python -m benchmarks.measure NAME` prints a JSON object.

The driver gives every workload a process of its own, so that memory and warm-up do not spill over. Times are those of
`time.perf_counter` around calls of the core's public functions, exact optimum, allgather. Short runs are repeated and
the run with the median total is reported, so that its stages add up.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeVar

from benchmarks.workloads import chosen_workloads
from forestsyn.core import build_forest, solve_optimum, solve_time_units
from forestsyn.core.optimum import directed_network
from forestsyn.frontend import load_topology
from forestsyn.graph.flow import FlowSolver
from forestsyn.ir.collective import Collective
from forestsyn.ir.forest import Direction, Forest, Optimum
from forestsyn.ir.network import FlowNetwork
from forestsyn.ir.topology import Topology
from forestsyn.ir.turns import peers_per_rank
from forestsyn.pipeline.synthesize import synthesize
from forestsyn.verify import forest_load, verify_forest, verify_optimum

_Result = TypeVar("_Result")

#: Runs of one workload: as many as fit in so many seconds, an odd number, at most this many.
REPEAT_SECONDS = 3.0
REPEATS = 7

#: Bare flows timed at most; the time of N is taken in proportion beyond.
FLOOR_FLOWS = 2_048

#: The stages that make up the core time; each builds the flow network for itself.
CORE_STAGES = ("optimum", "time", "forest", "verification")


def measure(spec: str) -> dict[str, Any]:
    """All figures of one workload; see the README for what each means."""
    started = time.perf_counter()
    topology = load_topology(spec)
    loading = time.perf_counter() - started
    base_memory = _peak_memory()
    network = directed_network(topology, Direction.OUT)
    runs = _repeated(lambda: _core_run(topology))
    seconds, optimum, forest = _median_run(runs)
    core = sum(seconds[stage] for stage in CORE_STAGES)
    memory = _peak_memory()
    floor = sorted(_repeated(lambda: _bare_flows(network, optimum)))
    pipeline = sorted(_repeated(lambda: _pipeline_run(topology)))
    floor_seconds = floor[len(floor) // 2]
    return {
        "ranks": topology.rank_count,
        "vertices": network.vertex_count,
        "links": network.arc_count,
        "trees_per_root": optimum.trees_per_root,
        "algbw_exact": str(optimum.algbw),
        "seconds": {"topology": loading, **seconds},
        "core_seconds": core,
        "runs": len(runs),
        "floor_seconds": floor_seconds,
        "core_over_floor": core / floor_seconds,
        "pipeline_seconds": pipeline[len(pipeline) // 2],
        "peak_bytes": memory,
        "base_bytes": base_memory,
        "depth": forest.depth,
        "depth_mean": float(forest.depths().max(axis=1).mean()),
        "peers_max": int(peers_per_rank([forest]).max()),
        "trees": forest.tree_count,
        "load_over_bound": str(_load_over_bound(topology, optimum, forest)),
    }


def _core_run(topology: Topology) -> tuple[dict[str, float], Optimum, Forest]:
    """Seconds per stage, and what they gave; the verification raises unless every certificate holds."""
    times = [time.perf_counter()]

    def lap() -> None:
        times.append(time.perf_counter())

    directed_network(topology, Direction.OUT)
    lap()
    optimum = solve_optimum(topology, (1,) * topology.rank_count, Direction.OUT)
    lap()
    demand = (optimum.trees_per_root,) * topology.rank_count
    time_units = solve_time_units(topology, demand, Direction.OUT)
    lap()
    forest = build_forest(topology, demand, Direction.OUT, time_units)
    lap()
    verify_optimum(topology, optimum)
    verify_forest(topology, forest)
    lap()
    names = ("network", *CORE_STAGES)
    seconds = {name: end - start for name, start, end in zip(names, times, times[1:], strict=False)}
    return seconds, optimum, forest


def _median_run(
    runs: list[tuple[dict[str, float], Optimum, Forest]],
) -> tuple[dict[str, float], Optimum, Forest]:
    return sorted(runs, key=lambda run: sum(run[0].values()))[len(runs) // 2]


def _bare_flows(network: FlowNetwork, optimum: Optimum) -> float:
    """Seconds of N maximum flows s -> r at the optimal rate: one solver, built once, nothing else.

    Of more than FLOOR_FLOWS ranks as many, spread evenly, stand for all.
    """
    rate = optimum.inverse_rate * network.unit
    source = network.vertex_count
    started = time.perf_counter()
    solver = FlowSolver(
        network.vertex_count + 1,
        [*network.tails, *([source] * network.rank_count)],
        [*network.heads, *range(network.rank_count)],
        [*(capacity * rate.numerator for capacity in network.capacities), *([rate.denominator] * network.rank_count)],
    )
    count = min(network.rank_count, FLOOR_FLOWS)
    for number in range(count):
        rank = number * network.rank_count // count
        if solver.max_flow(source, rank) < rate.denominator * network.rank_count:
            raise AssertionError(f"the optimum does not reach rank {rank}")
    return (time.perf_counter() - started) * network.rank_count / count


def _pipeline_run(topology: Topology) -> float:
    """Seconds of all that `forestsyn forest T --trees exact` does after reading T: the same plus the ring's cut."""
    started = time.perf_counter()
    synthesize(topology, Collective.ALLGATHER, trees="exact")
    return time.perf_counter() - started


def _load_over_bound(topology: Topology, optimum: Optimum, forest: Forest) -> Fraction:
    reached = forest_load(topology, forest) * topology.rank_count / forest.chunk_count
    return reached / optimum.inverse_rate


def _repeated(run: Callable[[], _Result]) -> list[_Result]:
    """An odd number of results: one at least, more while they are quick."""
    started = time.perf_counter()
    results = [run()]
    once = time.perf_counter() - started
    fitting = min(REPEATS, int(REPEAT_SECONDS / max(once, 1e-6)))
    while len(results) < fitting or len(results) % 2 == 0:
        results.append(run())
    return results


def _peak_memory() -> int:
    """Bytes of resident memory of this process at its peak so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    (workload,) = chosen_workloads(sys.argv[1:], quick=False)
    print(json.dumps(measure(workload.spec)))
