"""Plans for tests: of catalog machines, and small ones made by hand; edits; what crosses each pair of ranks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache

import msgspec

from forestsyn.frontend import load_topology
from forestsyn.ir.collective import Collective
from forestsyn.ir.forest import Direction
from forestsyn.ir.plan import (
    BlockBuffers,
    BlockChannels,
    BufferRange,
    ChannelType,
    GpuChannels,
    Plan,
    PlanBlock,
    PlanGpu,
    PlanStep,
    RemoteBuffer,
)
from forestsyn.ir.program import Buffer, Protocol
from forestsyn.ir.schedule import Schedule
from forestsyn.ir.topology import Topology, VertexKind
from forestsyn.ir.turns import expanded
from forestsyn.lowering import lower_forests
from forestsyn.lowering.onesided import lower_plan, lower_switch_plan, switch_schedule
from forestsyn.lowering.onesided.switching import Domain
from forestsyn.pipeline.compile import port_pairs
from forestsyn.pipeline.synthesize import synthesize

replace = msgspec.structs.replace
Edit = Callable[[Sequence[PlanStep]], Sequence[PlanStep]]


@cache
def scheduled(machine: str, collective: Collective) -> tuple[Topology, Schedule]:
    """The schedule that the compiler makes for a machine of the catalog."""
    topology = load_topology(machine)
    result = synthesize(topology, collective, None, chunked=True)
    forests = {forest.direction: expanded(forest) for forest in result.forests}
    schedule = lower_forests(
        collective,
        out_forest=forests.get(Direction.OUT),
        in_forest=forests.get(Direction.IN),
        root=result.bound.root,
    )
    return topology, schedule


@cache
def machine_plan(
    machine: str,
    collective: Collective,
    protocol: Protocol = Protocol.SIMPLE,
    *,
    out_of_place: bool = False,
    threadblocks: int | None = 2,
    slice_bytes: int = 0,
) -> Plan:
    """The plan for a machine of the catalog; few threadblocks keep the tests fast."""
    topology, schedule = scheduled(machine, collective)
    return lower_plan(
        schedule,
        ports=port_pairs(topology, schedule),
        out_of_place=out_of_place,
        protocol=protocol,
        name="test",
        threadblocks=threadblocks,
        slice_bytes=slice_bytes,
    )


def able(topology: Topology) -> Topology:
    """`topology` with switches that add up and replicate."""
    vertices = tuple(
        replace(vertex, multicast=True, reduce=True) if vertex.kind is VertexKind.SWITCH else vertex
        for vertex in topology.vertices
    )
    return replace(topology, vertices=vertices)


@cache
def switch_plan(
    hosts: int,
    ranks: int,
    collective: Collective,
    *,
    out_of_place: bool = False,
    threadblocks: int | None = 2,
    root: int = 0,
    slice_bytes: int = 0,
) -> Plan:
    """The plan through the switches of so many hosts with so many ranks each, joined by ports."""
    domains = [Domain(ranks=tuple(range(host * ranks, (host + 1) * ranks)), switch=host) for host in range(hosts)]
    schedule = switch_schedule(collective, domains, root if collective.rooted else None)
    assert schedule is not None, "broadcast and reduce have one domain"
    everyone = range(hosts * ranks)
    return lower_switch_plan(
        schedule,
        ports=frozenset((a, b) for a in everyone for b in everyone if a // ranks != b // ranks),
        out_of_place=out_of_place,
        protocol=Protocol.SIMPLE,
        name="test",
        threadblocks=threadblocks,
        slice_bytes=slice_bytes,
    )


def edit_gpu(plan: Plan, rank: int, **changes: object) -> Plan:
    """`plan` with other attributes of one GPU."""
    gpus = list(plan.gpus)
    gpus[rank] = replace(gpus[rank], **changes)
    return replace(plan, gpus=tuple(gpus))


def edit_block(plan: Plan, rank: int, block: int, **changes: object) -> Plan:
    """`plan` with other attributes of one threadblock."""
    blocks = list(plan.gpus[rank].blocks)
    blocks[block] = replace(blocks[block], **changes)
    return edit_gpu(plan, rank, blocks=tuple(blocks))


def edit_steps(plan: Plan, rank: int, block: int, edit: Edit) -> Plan:
    """`plan` with other operations of one threadblock."""
    return edit_block(plan, rank, block, steps=tuple(edit(plan.gpus[rank].blocks[block].steps)))


def edit_all_steps(plan: Plan, edit: Edit) -> Plan:
    """`plan` with the operations of every threadblock edited."""
    for rank, gpu in enumerate(plan.gpus):
        for block in range(len(gpu.blocks)):
            plan = edit_steps(plan, rank, block, edit)
    return plan


def crossing(plan: Plan) -> dict[tuple[int, int], Fraction]:
    """Chunks that each rank puts into each other one's buffers, over all rounds of pipelines."""
    found: dict[tuple[int, int], Fraction] = defaultdict(Fraction)
    for rank, gpu in enumerate(plan.gpus):
        for block in gpu.blocks:
            behind = {refs.access_channel_type: refs.remote_buffer_ids for refs in block.remote_buffers}
            for step in (each for outer in block.steps for each in (outer, *outer.steps)):
                part = Fraction(1, step.share.size) if step.share else Fraction(1)
                for item in step.destinations:
                    if item.remote is not None:
                        assert step.channel_type is not None
                        peer = gpu.remote_buffers[behind[step.channel_type][item.remote]].rank
                        found[rank, peer] += item.size * part
    return dict(found)


def local(buffer: str, index: int = 0, size: int = 1) -> BufferRange:
    """A range of an own buffer."""
    return BufferRange(buffer=Buffer(buffer), index=index, size=size)


def remote(number: int, index: int = 0, size: int = 1) -> BufferRange:
    """A range of a remote buffer."""
    return BufferRange(remote=number, index=index, size=size)


def pair_gpu(rank: int, blocks: Sequence[Sequence[PlanStep]], *, way: str = "memory", **changes: object) -> PlanGpu:
    """One of two ranks of an allreduce of 2 chunks; every threadblock has the only channel and the peer's output."""
    kind = ChannelType(way)
    gpu = PlanGpu(
        id=rank,
        input_chunks=2,
        output_chunks=2,
        scratch_chunks=2,
        channels=(GpuChannels(channel_type=kind, connected_to=(1 - rank,)),),
        remote_buffers=(
            RemoteBuffer(rank=1 - rank, buffer=Buffer.OUTPUT, access_channel_types=(kind,)),
            RemoteBuffer(rank=1 - rank, buffer=Buffer.SCRATCH, access_channel_types=(kind,)),
        ),
        blocks=tuple(
            PlanBlock(
                id=number,
                steps=tuple(steps),
                channels=(BlockChannels(channel_type=kind, channel_ids=(0,)),),
                remote_buffers=(BlockBuffers(access_channel_type=kind, remote_buffer_ids=(0, 1)),),
            )
            for number, steps in enumerate(blocks)
        ),
    )
    return replace(gpu, **changes)
