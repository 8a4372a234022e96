"""The machine that a program runs on: threads, their actions and connections, in numbers.

The neutral form that the engine executes. A *thread* repeats a row of actions, once for each tile. An action may wait
for another thread, take slices from one connection and put slices into another. `build_machine` makes it from a
threadblock program; other kinds of program need only a builder of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from forestsyn.errors import InputError
from forestsyn.ir.profile import LinkClass, ProtocolCost
from forestsyn.ir.program import Operation, Program, RankProgram, Step
from forestsyn.ir.topology import Topology
from forestsyn.simulate.routing import Router, link_class


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a thread on `count` chunks.

    takes, puts: it receives from, sends to, the thread's connections. moves: it copies or adds, locally or not.
    waits: (thread, step) pairs that must be done in this tile; step is −1 where that never comes.
    step: its number in the file. name: its operation there.
    """

    count: int
    takes: bool
    puts: bool
    moves: bool
    waits: tuple[tuple[int, int], ...]
    step: int
    name: str


class Thread(msgspec.Struct, frozen=True, kw_only=True):
    """A sequential executor. takes_from, puts_into: its connections, −1 for none; rank, number: where it belongs."""

    rank: int
    number: int
    takes_from: int
    puts_into: int
    actions: tuple[Action, ...]


class Machine(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """All threads, and the flows that they start: a thread has at most one at a time, so flows are threads.

    senders, receivers: int[K], the thread at either end of each connection, −1 for none. ends: their ranks.
    latency_us: float[K]. paths: int64[T, P], links of each thread's flow, padded with the number of links.
    capacity: float64[L], payload that each link carries, bytes per µs. wire: bytes on the link per byte of payload.
    limit: float64[T], bytes per µs of each thread.
    """

    threads: tuple[Thread, ...]
    senders: tuple[int, ...]
    receivers: tuple[int, ...]
    ends: tuple[tuple[int, int], ...]
    latency_us: tuple[float, ...]
    paths: npt.NDArray[np.int64]
    capacity: npt.NDArray[np.float64]
    wire: float
    limit: npt.NDArray[np.float64]
    rerouted: tuple[tuple[int, int], ...]


def build_machine(
    program: Program, topology: Topology, cost: ProtocolCost, copy_GBps: float, router: Router
) -> Machine:
    """The machine for a threadblock program. Raises InputError where program and topology do not fit."""
    if len(program.ranks) != topology.rank_count:
        raise InputError(
            f"the program is for {len(program.ranks)} ranks, {topology.name} has {topology.rank_count}",
            where=program.name,
            hint="choose the topology that the program was made for",
        )
    connections = _Connections(program, topology, cost, router)
    threads: list[Thread] = []
    paths: list[tuple[int, ...]] = []
    limit: list[float] = []
    for rank, own in enumerate(program.ranks):
        first = len(threads)
        for number, block in enumerate(own.threadblocks):
            takes = connections.number(block.receive_peer, rank, block.channel)
            puts = connections.number(rank, block.send_peer, block.channel)
            threads.append(
                Thread(
                    rank=rank,
                    number=number,
                    takes_from=takes,
                    puts_into=puts,
                    actions=_actions(own, first, block.steps),
                )
            )
            paths.append(connections.links[puts] if puts >= 0 else ())
            classes = [connections.classes[end] for end in (puts, takes) if end >= 0]
            rates = [cost.threadblock_GBps[kind] for kind in classes] or [copy_GBps]
            limit.append(1e3 * min(rates))
    capacity = np.array([float(link.bandwidth) * cost.efficiency * 1e3 for link in topology.links])
    senders, receivers = connections.threads(threads)
    return Machine(
        threads=tuple(threads),
        senders=senders,
        receivers=receivers,
        ends=tuple(connections.ends),
        latency_us=tuple(connections.latency),
        paths=_padded(paths, len(topology.links)),
        capacity=capacity,
        wire=1 / cost.efficiency,
        limit=np.array(limit),
        rerouted=tuple(sorted(router.rerouted)),
    )


class _Connections:
    """(source, destination, channel) made dense, with what each one costs."""

    def __init__(self, program: Program, topology: Topology, cost: ProtocolCost, router: Router) -> None:
        used = {
            key
            for rank, own in enumerate(program.ranks)
            for block in own.threadblocks
            for key in (
                (rank, block.send_peer, block.channel)
                if any(step.operation.sends for step in block.steps)
                else (-1, -1, 0),
                (block.receive_peer, rank, block.channel)
                if any(step.operation.receives for step in block.steps)
                else (-1, -1, 0),
            )
            if min(key[:2]) >= 0
        }
        self._numbers = {key: number for number, key in enumerate(sorted(used))}
        self.ends = [(source, destination) for source, destination, _ in self._numbers]
        self.links = [router.links(*key) for key in self._numbers]
        self.classes = [link_class(topology, links) for links in self.links]
        self.latency = [
            _latency(topology, links, kind, cost) for links, kind in zip(self.links, self.classes, strict=True)
        ]

    def number(self, source: int, destination: int, channel: int) -> int:
        return self._numbers.get((source, destination, channel), -1)

    def threads(self, threads: Sequence[Thread]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        senders, receivers = [-1] * len(self._numbers), [-1] * len(self._numbers)
        for number, thread in enumerate(threads):
            if thread.puts_into >= 0:
                senders[thread.puts_into] = number
            if thread.takes_from >= 0:
                receivers[thread.takes_from] = number
        return tuple(senders), tuple(receivers)


def _latency(topology: Topology, links: Sequence[int], kind: LinkClass, cost: ProtocolCost) -> float:
    """The profile's latency and, on top, what the topology states for its links."""
    stated = [topology.links[link].latency for link in links]
    return cost.latency_us[kind] + sum(float(latency) for latency in stated if latency is not None)


def _actions(rank: RankProgram, first: int, steps: Sequence[Step]) -> tuple[Action, ...]:
    actions = []
    waits: list[tuple[int, int]] = []
    for number, step in enumerate(steps):
        if step.depends_on is not None:
            block = step.depends_on.threadblock
            waits.append((first + block, _flagged(rank, block, step.depends_on.step)))
        if step.operation is Operation.NOP and number + 1 < len(steps):
            continue
        actions.append(
            Action(
                count=max(step.count, 1),
                takes=step.operation.receives,
                puts=step.operation.sends,
                moves=step.operation is not Operation.NOP,
                waits=tuple(waits),
                step=number,
                name=str(step.operation),
            )
        )
        waits = []
    return tuple(actions)


def _flagged(rank: RankProgram, block: int, step: int) -> int:
    """The first step from `step` on whose end others hear of; −1 when there is none."""
    if not 0 <= block < len(rank.threadblocks):
        return -1
    steps = rank.threadblocks[block].steps
    return next((number for number in range(max(step, 0), len(steps)) if steps[number].flagged), -1)


def _padded(paths: Sequence[tuple[int, ...]], none: int) -> npt.NDArray[np.int64]:
    width = max(1, max(map(len, paths), default=1))
    return np.array([(*path, *[none] * (width - len(path))) for path in paths], dtype=np.int64).reshape(-1, width)
