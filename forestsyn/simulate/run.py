"""Simulated runs: a program made ready for a topology, then run for any message size.

A chunk larger than a message is done in tiles: the program repeats for each part of `message_bytes` of every chunk.
Few tiles are run event by event. Of many, as many as a budget of slices allows; the rest follow at the steady period,
the mean time from one tile's end to the next in the later half of those that were run. The time is never taken below
what the busiest link or thread needs for all bytes, so no extrapolation can beat a bound.

Facts on messages and tiles: msccl_interpreter.h (maxAllowedCount, tiles) and prims_simple.h (a message is cut into
slices only above 1/32 of its full size).
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
import numpy.typing as npt

from forestsyn.errors import InputError
from forestsyn.ir.profile import Profile, ProtocolCost
from forestsyn.ir.program import Program
from forestsyn.ir.simulation import Simulation, Stuck
from forestsyn.ir.topology import Topology
from forestsyn.simulate.engine import Engine, Load
from forestsyn.simulate.machine import Machine, build_machine
from forestsyn.simulate.routing import Router, Routes
from forestsyn.simulate.sharing import Sharing
from forestsyn.simulate.stuck import describe_wait

#: Slices that one simulation may run event by event, and the fewest tiles that show a steady state.
_BUDGET = 60_000
_FEWEST_TILES = 6
#: A window is this share of the time that the run must take at least.
_WINDOW = 5e-5
_COUNT_MAX = 71
_SLICING = 32


class Prepared(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A program on a topology, ready to be run for message sizes.

    link_chunks: float64[L], chunks that pass each link in all. thread_chunks: the most that one thread works on,
    over its limit in bytes per µs.
    """

    program: Program
    topology: Topology
    launch_us: float
    cost: ProtocolCost
    machine: Machine
    sharing: Sharing
    link_chunks: npt.NDArray[np.float64]
    thread_chunks: float

    @property
    def busy_us_per_byte(self) -> float:
        """µs that the busiest link or thread needs for each byte of a chunk: no run is faster."""
        return max(float((self.link_chunks / self.machine.capacity).max()), self.thread_chunks)

    def least_us(self, message_bytes: int) -> float:
        """A lower limit of `simulate` that costs nothing, µs."""
        return self.launch_us + message_bytes / self.program.chunk_count * self.busy_us_per_byte


def prepare(program: Program, topology: Topology, profile: Profile, *, routes: Routes | None = None) -> Prepared:
    """Translate `program` for simulation; `routes` replaces the paths a runtime would take, see `routing`.

    Raises InputError where program, topology and profile do not fit.
    """
    if program.protocol not in profile.protocols:
        raise InputError(f"the profile {profile.name} has no costs for {program.protocol}", where=profile.name)
    cost = profile.protocols[program.protocol]
    machine = build_machine(program, topology, cost, profile.copy_GBps, Router(topology, routes))
    work = [
        sum(action.count for action in thread.actions if action.moves and (action.puts or action.takes))
        for thread in machine.threads
    ]
    puts = np.array([sum(a.count for a in thread.actions if a.puts) for thread in machine.threads], dtype=np.float64)
    chunks = np.bincount(
        machine.paths.ravel(),
        weights=np.repeat(puts, machine.paths.shape[1]),
        minlength=len(topology.links) + 1,
    )
    return Prepared(
        program=program,
        topology=topology,
        launch_us=profile.launch_us,
        cost=cost,
        machine=machine,
        sharing=Sharing(machine.paths, machine.capacity, machine.limit),
        link_chunks=chunks[: len(topology.links)].astype(np.float64),
        thread_chunks=max((count / limit for count, limit in zip(work, machine.limit, strict=True)), default=0.0),
    )


def simulate(prepared: Prepared, message_bytes: int, *, record: bool = False, budget: int = _BUDGET) -> Simulation:
    """Run `prepared` for a message of `message_bytes` (as nccl-tests counts it).

    record: keep every activity; then all tiles are run, whatever their number. budget: slices to run event by event.
    """
    if message_bytes <= 0:
        raise InputError(f"a message of {message_bytes} bytes cannot be simulated", where="size")
    cost = prepared.cost
    chunk = message_bytes / prepared.program.chunk_count
    tiles = max(1, math.ceil(chunk / cost.message_bytes))
    tile_bytes = min(chunk, float(cost.message_bytes))
    load = _load(prepared, tile_bytes)
    simulated = tiles if record else min(tiles, _affordable(prepared, load, budget))
    run = Engine(prepared.machine, prepared.sharing, load, simulated, record=record).run()
    if run.blocked:
        return _stuck(prepared, message_bytes, tiles, dict(run.blocked))
    time = run.tile_ends[-1]
    if tiles > simulated:
        half = simulated // 2
        period = (run.tile_ends[-1] - run.tile_ends[half - 1]) / (simulated - half)
        time += period * (chunk / tile_bytes - simulated)
    elif tiles > 1:  # all were run, the last one at full size
        time -= (tiles - chunk / tile_bytes) * (run.tile_ends[-1] - run.tile_ends[-2])
    time = max(time, prepared.least_us(message_bytes))
    carried = prepared.link_chunks * chunk
    return Simulation(
        message_bytes=message_bytes,
        time_us=time,
        link_bytes=carried * prepared.machine.wire,
        link_busy=carried / prepared.machine.capacity / time,
        tiles=tiles,
        simulated_tiles=simulated,
        rerouted=prepared.machine.rerouted,
        activities=run.activities,
    )


def simulate_program(
    program: Program,
    topology: Topology,
    profile: Profile,
    message_bytes: int,
    *,
    routes: Routes | None = None,
    record: bool = False,
) -> Simulation:
    """`prepare` and `simulate` in one."""
    return simulate(prepare(program, topology, profile, routes=routes), message_bytes, record=record)


def _load(prepared: Prepared, tile_bytes: float) -> Load:
    cost = prepared.cost
    chunks = min(max(int(cost.message_bytes // math.ceil(tile_bytes)), 1), _COUNT_MAX)
    slices = cost.slices if tile_bytes * chunks * _SLICING * cost.slices > cost.message_bytes else 1
    return Load(
        chunk_bytes=tile_bytes,
        message_chunks=chunks,
        slices=slices,
        slots=cost.messages_in_flight * slices,
        step_us=cost.step_us,
        start_us=prepared.launch_us,
        window=_WINDOW * (tile_bytes * prepared.busy_us_per_byte + cost.step_us),
    )


def _affordable(prepared: Prepared, load: Load, budget: int) -> int:
    slices = sum(
        math.ceil(action.count / load.message_chunks) * load.slices
        for thread in prepared.machine.threads
        for action in thread.actions
    )
    return max(_FEWEST_TILES, budget // max(slices, 1))


def _stuck(prepared: Prepared, message_bytes: int, tiles: int, blocked: dict[int, str]) -> Simulation:
    nothing = np.zeros(len(prepared.topology.links))
    return Simulation(
        message_bytes=message_bytes,
        time_us=math.inf,
        link_bytes=nothing,
        link_busy=nothing,
        tiles=tiles,
        simulated_tiles=0,
        rerouted=prepared.machine.rerouted,
        stuck=Stuck(waits=describe_wait(prepared.machine, blocked)),
    )
