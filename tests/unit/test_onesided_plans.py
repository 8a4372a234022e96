"""Lowered plans are right on every machine, and refused where they do not fit."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import pairwise

import pytest

from forestsyn.errors import UnsupportedError
from forestsyn.ir.collective import Collective
from forestsyn.ir.plan import ChannelType, Plan
from forestsyn.ir.plan import PlanOperation as Op
from forestsyn.ir.program import Program, Protocol
from forestsyn.ir.target import EXECUTOR
from forestsyn.lowering import lower_schedule
from forestsyn.lowering.onesided import lower_plan
from forestsyn.pipeline.compile import port_pairs
from forestsyn.verify.plan import verify_plan
from tests.plans import crossing, machine_plan, scheduled

MACHINES = ("dgx1v", "dgx-a100", "dgx-a100:2", "dgx-h100", "dgx-h100:2", "mi300x")
PROTOCOLS = (Protocol.SIMPLE, Protocol.LL)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("collective", Collective)
@pytest.mark.parametrize("machine", MACHINES)
def test_plans_are_right(machine: str, collective: Collective, protocol: Protocol) -> None:
    for out_of_place in (False, True):
        plan = machine_plan(machine, collective, protocol, out_of_place=out_of_place)
        report = verify_plan(plan, strict=True)
        assert report.accepted, report.violations[:3]
        assert report.warnings == ()


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("collective", Collective)
@pytest.mark.parametrize("machine", MACHINES)
def test_plans_are_right_with_all_threadblocks(machine: str, collective: Collective, protocol: Protocol) -> None:
    plan = machine_plan(machine, collective, protocol, threadblocks=None)
    assert verify_plan(plan, strict=True).accepted


@pytest.mark.parametrize("collective", Collective)
@pytest.mark.parametrize("machine", ["dgx-a100", "dgx-a100:2", "dgx-h100:2"])
def test_plan_and_program_load_every_link_alike(machine: str, collective: Collective) -> None:
    topology, schedule = scheduled(machine, collective)
    program = lower_schedule(
        schedule,
        target=EXECUTOR,
        out_of_place=False,
        protocol=Protocol.SIMPLE,
        name="test",
        minimum_bytes=0,
        maximum_bytes=0,
    )
    paths: dict[tuple[int, int], tuple[int, ...]] = {}
    for source, destination, route in zip(
        schedule.source.tolist(), schedule.destination.tolist(), schedule.route.tolist(), strict=True
    ):
        assert paths.setdefault((source, destination), schedule.routes[route]) == schedule.routes[route]
    expected = _loads(_sent(program), paths)
    assert len(expected) > topology.rank_count
    for protocol in PROTOCOLS:
        assert _loads(crossing(machine_plan(machine, collective, protocol)), paths) == expected
    sliced = machine_plan(machine, collective, slice_bytes=4096)
    finer = max(sliced.gpus[0].input_chunks, sliced.gpus[0].output_chunks) // schedule.chunk_count
    assert finer == 2
    assert _loads(crossing(sliced), paths) == {link: finer * load for link, load in expected.items()}


def _sent(program: Program) -> dict[tuple[int, int], Fraction]:
    found: dict[tuple[int, int], Fraction] = defaultdict(Fraction)
    for rank, own in enumerate(program.ranks):
        for block in own.threadblocks:
            for step in block.steps:
                if step.operation.sends:
                    found[rank, block.send_peer] += step.count
    return found


def _loads(
    sent: dict[tuple[int, int], Fraction], paths: dict[tuple[int, int], tuple[int, ...]]
) -> dict[tuple[int, int], Fraction]:
    """Chunks that cross each link."""
    loads: dict[tuple[int, int], Fraction] = defaultdict(Fraction)
    for pair, chunks in sent.items():
        path = paths[pair]
        for link in pairwise(path):
            loads[link] += chunks
    return loads


def test_hosts_are_joined_by_ports_and_nothing_else_is() -> None:
    topology, schedule = scheduled("dgx-h100:2", Collective.ALLREDUCE)
    pairs = port_pairs(topology, schedule)
    assert pairs == {(b, a) for a, b in pairs}
    assert all(topology.rank_host(a) != topology.rank_host(b) for a, b in pairs)
    plan = machine_plan("dgx-h100:2", Collective.ALLREDUCE)
    joined = {
        (rank, peer): channels.channel_type
        for rank, gpu in enumerate(plan.gpus)
        for channels in gpu.channels
        for peer in channels.connected_to
    }
    assert {pair for pair, way in joined.items() if way is ChannelType.PORT} == pairs
    assert all((way is ChannelType.PORT) == (a // 8 != b // 8) for (a, b), way in joined.items())


def test_a_rack_of_nvlink_is_one_memory_domain() -> None:
    topology, schedule = scheduled("gb200-nvl72", Collective.BROADCAST)
    assert not port_pairs(topology, schedule)


def test_the_last_request_on_each_port_is_flushed() -> None:
    for collective in Collective:
        for gpu in machine_plan("dgx-a100:2", collective).gpus:
            for block in gpu.blocks:
                last: dict[int, Op] = {}
                for step in block.steps:
                    if step.operation in (Op.PUT_SIGNAL, Op.PUT_SIGNAL_FLUSH):
                        last |= dict.fromkeys(step.channel_ids, step.operation)
                assert set(last.values()) <= {Op.PUT_SIGNAL_FLUSH}


def test_threadblocks_share_nothing() -> None:
    for gpu in machine_plan("dgx-h100:2", Collective.ALLREDUCE, threadblocks=None).gpus:
        used = [
            (refs.channel_type, channel)
            for block in gpu.blocks
            for refs in block.channels
            for channel in refs.channel_ids
        ]
        assert len(set(used)) == len(used)
        assert not any(
            step.operation in (Op.BARRIER, Op.SEMAPHORE_ACQUIRE) for block in gpu.blocks for step in block.steps
        )


def test_more_threadblocks_take_what_one_cannot_hold() -> None:
    plan = machine_plan("dgx-h100:2", Collective.ALLREDUCE, Protocol.LL, threadblocks=1)
    assert len(plan.gpus[0].blocks) > 1
    assert max(len(block.steps) for gpu in plan.gpus for block in gpu.blocks) <= 64
    assert verify_plan(plan, strict=True).accepted


def test_ll128_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="no protocol LL128"):
        machine_plan("dgx-a100", Collective.ALLGATHER, Protocol.LL128)


def _window(minimum: int, maximum: int, protocol: Protocol = Protocol.SIMPLE, machine: str = "dgx-a100") -> Plan:
    topology, schedule = scheduled(machine, Collective.ALLREDUCE)
    ports = port_pairs(topology, schedule)
    return lower_plan(
        schedule,
        ports=ports,
        out_of_place=False,
        protocol=protocol,
        name="test",
        minimum_bytes=minimum,
        maximum_bytes=maximum,
        threadblocks=2,
    )


def test_windows_are_narrowed_to_what_fits() -> None:
    assert (_window(1024, 4096).minimum_bytes, _window(1024, 4096).maximum_bytes) == (1024, 4096)
    assert 2**31 < _window(0, 0).maximum_bytes < 2**32
    packets = _window(0, 0, Protocol.LL)
    assert packets.reuse_resources
    assert packets.use_double_scratch_buffer
    chunk = packets.maximum_bytes // packets.gpus[0].input_chunks
    assert 2**24 < 2 * chunk * packets.gpus[0].scratch_chunks <= 2**26
    # Shares of a chunk that cross a port must not be empty.
    assert _window(0, 0, machine="dgx-a100:2").minimum_bytes == 16 * 2 * 16


def test_windows_beyond_what_fits_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="the plan serves sizes up to"):
        _window(2**31, 0)
    with pytest.raises(UnsupportedError, match="the plan serves sizes up to"):
        _window(2**28, 0, Protocol.LL)
