"""Simulated runs: a program made ready for a topology, then run for any message size.

A chunk larger than a message is done in tiles: the program repeats for each part of `message_bytes` of every chunk,
the last one smaller, and threadblocks go through tiles without waiting for each other. Few tiles are run event by
event. Of many, as many as a budget of moves allows; each further one takes the steady period: the mean time between
the ends of tiles in the middle of the run, where neither filling nor draining shows, and never less than what the
busiest link and the busiest thread need for a tile. The time of the whole is never taken below what these need for
all bytes, so no extrapolation beats a bound.

What depends on the size is prepared once for each way in which steps split into slices, of which there are few.

Facts on messages and tiles: msccl_interpreter.h (maxAllowedCount, tiles) and prims_simple.h (a slice has at least
1/32 of the size of a full one; what is left over are empty slices, which cost nothing).
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
from forestsyn.simulate.connections import Connections, find_connections
from forestsyn.simulate.engine import Engine, Run
from forestsyn.simulate.machine import Machine
from forestsyn.simulate.programs import Splitting, message_sizes, translate_program
from forestsyn.simulate.recorder import Recorder
from forestsyn.simulate.routing import Router, Routes
from forestsyn.simulate.sharing import Sharing
from forestsyn.simulate.stuck import describe_waits

#: Moves that one simulation may run event by event, and the fewest tiles that show a steady state.
BUDGET = 120_000
_FEWEST_TILES = 6
#: A refill costs about as much as this many moves plus one for so many threads.
_REFILL_MOVES, _REFILL_THREADS = 3, 80
_FEWEST_REFILLS = 200
_COUNT_MAX = 71
_SLICING = 32


class Plan(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A machine for one way of splitting, and what its links and threads need at least.

    link_chunks: float64[L]. delays, work: float64[T], µs of each thread for a tile and for each byte of a chunk.
    """

    machine: Machine
    sharing: Sharing
    link_chunks: npt.NDArray[np.float64]
    delays: npt.NDArray[np.float64]
    work: npt.NDArray[np.float64]

    def least_us(self, chunk_bytes: float, tiles: int) -> float:
        """What the busiest link or thread needs for `tiles` tiles with `chunk_bytes` of each chunk in all, µs."""
        links = self.link_chunks * chunk_bytes / self.machine.capacity
        threads = self.delays * tiles + self.work * chunk_bytes
        return max(float(links.max(initial=0.0)), float(threads.max(initial=0.0)))


class Prepared(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A program on a topology, ready to be run for message sizes. `plans` fills up as sizes are asked for."""

    program: Program
    topology: Topology
    profile: Profile
    cost: ProtocolCost
    connections: Connections
    plans: dict[Splitting, Plan] = {}

    def least_us(self, message_bytes: int) -> float:
        """A lower limit of `simulate` that costs little, µs."""
        size = _Size(self, message_bytes)
        return self.profile.launch_us + size.plan.least_us(size.chunk_bytes, size.tiles)


def prepare(program: Program, topology: Topology, profile: Profile, *, routes: Routes | None = None) -> Prepared:
    """Route `program` for simulation; `routes` replaces the paths that a runtime would take, see `routing`.

    Raises InputError where program, topology and profile do not fit, or the program is malformed.
    """
    if program.protocol not in profile.protocols:
        raise InputError(
            f"the profile {profile.name} has no costs for {program.protocol}",
            where=program.name,
            hint=f"it has {', '.join(profile.protocols)}",
        )
    if len(program.ranks) != topology.rank_count:
        raise InputError(
            f"the program is for {len(program.ranks)} ranks, {topology.name} has {topology.rank_count}",
            where=program.name,
            hint="choose the topology that the program was made for",
        )
    cost = profile.protocols[program.protocol]
    connections = find_connections(program, topology, cost, Router(topology, routes))
    return Prepared(program=program, topology=topology, profile=profile, cost=cost, connections=connections, plans={})


def simulate(prepared: Prepared, message_bytes: int, *, record: bool = False, budget: int = BUDGET) -> Simulation:
    """Run `prepared` for a message of `message_bytes`, as nccl-tests counts it.

    record: keep the activities of the tiles that were run; changes no time. budget: moves to run event by event.
    """
    if message_bytes <= 0:
        raise InputError(
            f"a message of {message_bytes} bytes cannot be simulated", where="size", hint="give 1 or more"
        )
    size = _Size(prepared, message_bytes)
    tile_bytes = size.tile_bytes(budget)
    recorder = Recorder(size.plan.machine, tile_bytes) if record else None
    run = _run(prepared, size.plan, tile_bytes, recorder)
    if run.blocked:
        return _stuck(prepared, size, run)
    launch = prepared.profile.launch_us
    time = run.tile_ends[-1] + (size.tiles - len(tile_bytes)) * _period(size.plan, run, tile_bytes[0])
    time = max(time, launch + size.plan.least_us(size.chunk_bytes, size.tiles))
    carried = size.plan.link_chunks * size.chunk_bytes
    return Simulation(
        message_bytes=message_bytes,
        time_us=time,
        link_bytes=carried,
        link_busy=carried / size.plan.machine.capacity / time,
        tiles=size.tiles,
        simulated_tiles=len(tile_bytes),
        rerouted=prepared.connections.rerouted,
        activities=recorder.activities() if recorder else (),
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
    """`prepare` and `simulate` in one; raises as they do."""
    return simulate(prepare(program, topology, profile, routes=routes), message_bytes, record=record)


class _Size:
    """A message size: how chunks are cut into tiles or joined into messages, and the plan for that."""

    def __init__(self, prepared: Prepared, message_bytes: int) -> None:
        cost, program = prepared.cost, prepared.program
        self.message_bytes = message_bytes
        self.chunk_bytes = message_bytes / program.chunk_count
        self.full = min(self.chunk_bytes, float(cost.message_bytes))
        self.tiles = math.ceil(self.chunk_bytes / cost.message_bytes)
        most = max(
            (step.count for own in program.ranks for block in own.threadblocks for step in block.steps), default=1
        )
        chunks = min(max(int(cost.message_bytes // math.ceil(self.full)), 1), _COUNT_MAX, max(most, 1))
        least = cost.message_bytes / cost.slices / _SLICING
        slices = [
            (count, min(cost.slices, max(1, math.ceil(count * self.full / least))))
            for count in sorted(message_sizes(program, chunks))
        ]
        splitting = Splitting(message_chunks=chunks, slices=tuple(slices))
        if splitting not in prepared.plans:
            prepared.plans[splitting] = _plan(prepared, splitting)
        self.plan = prepared.plans[splitting]

    def tile_bytes(self, budget: int) -> tuple[float, ...]:
        """The bytes of a chunk in each tile that is run; the last one has what full tiles leave."""
        moves = max(1, self.plan.machine.move_count)
        tiles = min(self.tiles, max(_FEWEST_TILES, budget // moves))
        last = self.chunk_bytes - (self.tiles - 1) * self.full
        return (*[self.full] * (tiles - 1), last)


def _plan(prepared: Prepared, splitting: Splitting) -> Plan:
    machine = translate_program(
        prepared.program,
        prepared.topology,
        prepared.connections,
        prepared.cost,
        1e3 * prepared.profile.copy_GBps,
        splitting,
    )
    return Plan(
        machine=machine,
        sharing=Sharing(machine.paths, machine.capacity),
        link_chunks=machine.link_chunks(),
        delays=np.array([sum(move.delay for move in thread.moves) for thread in machine.threads]),
        work=np.array([sum(move.amount / move.rate for move in thread.moves) for thread in machine.threads]),
    )


def _run(prepared: Prepared, plan: Plan, tile_bytes: tuple[float, ...], recorder: Recorder | None) -> Run:
    """Refills are allowed to take about as long as everything else."""
    machine = plan.machine
    moves = machine.move_count * len(tile_bytes)
    refills = moves / (_REFILL_MOVES + len(machine.threads) / _REFILL_THREADS)
    engine = Engine(
        machine,
        plan.sharing,
        tile_bytes,
        start_us=prepared.profile.launch_us,
        window_share=1 / max(_FEWEST_REFILLS, refills),
        least_us=plan.least_us(sum(tile_bytes), len(tile_bytes)),
        recorder=recorder,
    )
    return engine.run()


def _period(plan: Plan, run: Run, tile_bytes: float) -> float:
    """µs that one more full tile takes: the slowest half of the run after the first tile.

    While pipes fill, tiles take longer, and while they drain, less, as fewer share the links: a run cannot tell where
    draining begins, so the half with the most time is taken. Where tiles alternate, an even number of them is fair.
    """
    ends = run.tile_ends
    span = 2 * (len(ends) // 4)
    measured = [(late - early) / span for early, late in zip(ends, ends[span:-1], strict=False)] if span else []
    return max([*measured, plan.least_us(tile_bytes, 1)])


def _stuck(prepared: Prepared, size: _Size, run: Run) -> Simulation:
    nothing = np.zeros(len(prepared.topology.links))
    return Simulation(
        message_bytes=size.message_bytes,
        time_us=math.inf,
        link_bytes=nothing,
        link_busy=nothing,
        tiles=size.tiles,
        simulated_tiles=0,
        rerouted=prepared.connections.rerouted,
        stuck=Stuck(waits=describe_waits(size.plan.machine, run.blocked, run.at)),
    )
