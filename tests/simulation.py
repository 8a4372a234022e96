"""Small programs, networks and profiles for tests of the simulator. Rates are in GB/s, which is 1e3 bytes per µs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from forestsyn.ir.profile import LinkClass, Profile, ProtocolCost
from forestsyn.ir.program import (
    Buffer,
    Dependency,
    Location,
    Operation,
    Program,
    Protocol,
    RankProgram,
    Step,
    Threadblock,
)
from forestsyn.ir.topology import Topology
from tests.strategies import make_topology


def make_profile(
    *,
    message_bytes: int = 1000,
    messages_in_flight: int = 2,
    slices: int = 1,
    efficiency: float = 1.0,
    rate: float = 1.0,
    step_us: float = 0.0,
    latency_us: float = 0.0,
    launch_us: float = 0.0,
    copy: float = 1.0,
) -> Profile:
    """One protocol (Simple) whose costs are the same for all classes of links."""
    cost = ProtocolCost(
        message_bytes=message_bytes,
        messages_in_flight=messages_in_flight,
        slices=slices,
        efficiency=efficiency,
        threadblock_GBps=dict.fromkeys(LinkClass, rate),
        step_us=step_us,
        latency_us=dict.fromkeys(LinkClass, latency_us),
    )
    return Profile(name="made", launch_us=launch_us, copy_GBps=copy, protocols={Protocol.SIMPLE: cost}, sources={})


def step(operation: str, count: int = 1, *, waits: tuple[int, int] | None = None, flagged: bool = False) -> Step:
    """A step on chunk 0; `waits`: (threadblock, step)."""
    where = Location(buffer=Buffer.OUTPUT, offset=0)
    return Step(
        operation=Operation(operation),
        source=where,
        destination=where,
        count=count,
        depends_on=None if waits is None else Dependency(threadblock=waits[0], step=waits[1]),
        flagged=flagged,
    )


def block(send: int, receive: int, *steps: Step, channel: int = 0) -> Threadblock:
    """A threadblock with its peers, −1 for none."""
    return Threadblock(send_peer=send, receive_peer=receive, channel=channel, steps=steps)


def make_program(*ranks: Sequence[Threadblock], chunks: int = 1, protocol: Protocol = Protocol.SIMPLE) -> Program:
    """A program of the threadblocks of each rank."""
    return Program(
        name="made",
        collective="custom",
        protocol=protocol,
        chunk_count=chunks,
        channel_count=1 + max((own.channel for rank in ranks for own in rank), default=0),
        in_place=True,
        out_of_place=False,
        minimum_bytes=0,
        maximum_bytes=0,
        ranks=tuple(
            RankProgram(input_chunks=chunks, output_chunks=chunks, scratch_chunks=0, threadblocks=tuple(rank))
            for rank in ranks
        ),
    )


def network(ranks: int, links: Mapping[tuple[int, int], float], switches: int = 0) -> Topology:
    """Ranks 0 … ranks − 1, then switches; GB/s of each directed link."""
    return make_topology(ranks, switches, {ends: Fraction(rate) for ends, rate in links.items()}, gpus_per_host=64)
