"""Plans through switches that add up and replicate: domains, loads, the choice between them and trees, results."""

from __future__ import annotations

from fractions import Fraction

import pytest

from forestsyn.backends import emit_mscclpp_json
from forestsyn.errors import UnsupportedError
from forestsyn.frontend import load_topology
from forestsyn.frontend.mscclpp_json import parse_mscclpp_json
from forestsyn.ir.collective import Collective
from forestsyn.ir.plan import ChannelType
from forestsyn.ir.plan import PlanOperation as Op
from forestsyn.ir.program import Protocol
from forestsyn.ir.target import EXECUTOR, MSCCLPP
from forestsyn.ir.topology import Topology
from forestsyn.lowering.onesided import find_domains, lower_switch_plan, switch_schedule
from forestsyn.lowering.onesided.switching import Domain
from forestsyn.patterns.network import Network
from forestsyn.pipeline.compile import compile_topology
from forestsyn.pipeline.switches import link_algbw, switch_moves
from forestsyn.verify.plan import verify_plan
from tests.plan_machine import misbehaves
from tests.plans import able, replace, switch_plan

SHAPES = [(1, 2), (1, 3), (1, 8), (2, 2), (2, 3), (3, 4)]


@pytest.mark.parametrize("collective", Collective)
@pytest.mark.parametrize(("hosts", "ranks"), SHAPES)
def test_plans_are_right(hosts: int, ranks: int, collective: Collective) -> None:
    if collective.rooted and hosts > 1:
        pytest.skip("trees are as good there")
    for out_of_place in (False, True):
        for slice_bytes in (0, 4096):
            plan = switch_plan(hosts, ranks, collective, out_of_place=out_of_place, slice_bytes=slice_bytes, root=1)
            assert parse_mscclpp_json(emit_mscclpp_json(plan), source="x").plan == plan
            report = verify_plan(plan, strict=True)
            assert report.accepted, report.violations[:3]
            assert report.warnings == ()
            assert any(gpu.channels[-1].channel_type is ChannelType.SWITCH for gpu in plan.gpus)
            assert misbehaves(plan, 7, root=1, calls=2) is None


@pytest.mark.parametrize("collective", [Collective.ALLREDUCE, Collective.ALLGATHER, Collective.REDUCE_SCATTER])
def test_a_rack_meets_over_several_threadblocks(collective: Collective) -> None:
    plan = switch_plan(1, 36, collective, threadblocks=6)
    assert verify_plan(plan, strict=True).accepted
    assert len(plan.gpus[0].blocks) == 6  # two shares of three lanes
    assert all(len(block.channels[0].channel_ids) <= 16 for block in plan.gpus[0].blocks)
    used = [
        sum(step.operation in (Op.GROUP_LOAD_REDUCE_STORE, Op.GROUP_STORE) for step in block.steps)
        for block in plan.gpus[0].blocks
    ]
    assert used == [1] * 6


def test_domains_hang_on_able_switches() -> None:
    assert find_domains(load_topology("dgx-a100:2")) == ()
    assert find_domains(load_topology("full:4")) == ()
    hosts = find_domains(able(load_topology("dgx-a100:2")))
    assert [domain.ranks for domain in hosts] == [tuple(range(8)), tuple(range(8, 16))]
    topology = able(load_topology("dgx-a100:2"))
    assert find_domains(replace(topology, ranks=topology.ranks[:-1])) == ()  # of unequal size
    assert find_domains(replace(topology, ranks=(topology.ranks[0], topology.ranks[8]))) == ()  # of one rank


def test_narrow_groups_have_two_ranks_or_three() -> None:
    for size in range(2, 9):
        domain = Domain(ranks=tuple(range(10, 10 + size)), switch=0)
        groups = {domain.mates(rank) for rank in domain.ranks}
        assert sorted(rank for group in groups for rank in group) == list(domain.ranks)
        assert {len(group) for group in groups} <= {2, 3}
        assert all(rank in domain.mates(rank) for rank in domain.ranks)


def _algbw(machine: str, collective: Collective, *, overlapping: bool = True) -> Fraction:
    topology = able(load_topology(machine))
    schedule = switch_schedule(collective, find_domains(topology), 0 if collective.rooted else None)
    assert schedule is not None
    moves = switch_moves(topology, schedule, Network(topology))
    return link_algbw(topology, moves, schedule.chunk_count, overlapping=overlapping)


def test_loads_are_those_of_the_theory() -> None:
    """NVLink of 450 GB/s, 8 NICs of 50 GB/s: the figures of the module, by hand."""
    assert _algbw("dgx-h100", Collective.ALLREDUCE) == 450 * Fraction(8, 9)
    assert _algbw("dgx-h100", Collective.ALLGATHER) == 450
    assert _algbw("dgx-h100", Collective.BROADCAST) == 450
    assert _algbw("dgx-h100", Collective.REDUCE_SCATTER) == 450 * Fraction(8, 9)
    assert _algbw("dgx-h100:2", Collective.ALLREDUCE) == 450 * Fraction(8, 11)
    assert _algbw("dgx-h100:4", Collective.ALLREDUCE) == 400 * Fraction(4, 6)
    steps = Fraction(9, 8 * 450) + 2 * Fraction(1, 16 * 50) + Fraction(1, 450)
    assert _algbw("dgx-h100:2", Collective.ALLREDUCE, overlapping=False) == 1 / steps


def _compiled(topology: Topology, collective: Collective, **options: object) -> tuple[bool, str, set[Op]]:
    result = compile_topology(topology, collective, target=MSCCLPP, minimum_bytes=1 << 20, **options)  # type: ignore[arg-type]
    assert result.switches is not None
    gpus = result.program.gpus  # type: ignore[union-attr]
    operations = {
        step.operation
        for gpu in gpus
        for block in gpu.blocks
        for outer in block.steps
        for step in (outer, *outer.steps)
    }
    used = result.switches.schedule is not None
    assert used == bool(operations & {Op.GROUP_LOAD_REDUCE_STORE, Op.GROUP_STORE})
    return used, result.switches.reason, operations


def test_switches_are_taken_where_their_links_take_less_time() -> None:
    one, two = able(load_topology("dgx-h100")), able(load_topology("dgx-h100:2"))
    assert _compiled(one, Collective.ALLREDUCE)[0]
    assert not _compiled(one, Collective.ALLREDUCE, nvls="off")[0]
    assert not _compiled(one, Collective.ALLREDUCE, protocol=Protocol.LL)[0]
    assert not _compiled(one, Collective.ALLGATHER)[0]
    assert _compiled(one, Collective.ALLGATHER, nvls="on")[0]
    assert not _compiled(two, Collective.ALLREDUCE)[0]  # its steps follow one another
    assert _compiled(two, Collective.ALLREDUCE, slice_bytes=1 << 18)[0]
    assert "trees" in _compiled(two, Collective.BROADCAST)[1]


def test_switches_that_cannot_be_used_are_refused_by_name() -> None:
    one = able(load_topology("dgx-h100"))
    for topology, collective, options, text in (
        (load_topology("dgx-a100"), Collective.ALLREDUCE, {"target": MSCCLPP}, "no switches that add up"),
        (one, Collective.ALLREDUCE, {"target": MSCCLPP, "protocol": Protocol.LL}, "not the packets"),
        (one, Collective.ALLREDUCE, {"target": EXECUTOR}, "no word for them"),
        (able(load_topology("dgx-h100:2")), Collective.BROADCAST, {"target": MSCCLPP}, "reaches its bound"),
    ):
        with pytest.raises(UnsupportedError, match=text) as caught:
            compile_topology(topology, collective, nvls="on", **options)  # type: ignore[arg-type]
        assert "--nvls" in str(caught.value)
    with pytest.raises(UnsupportedError, match="cuts its own slices"):
        compile_topology(one, Collective.ALLREDUCE, target=EXECUTOR, slice_bytes=4096)


def test_packets_do_not_pass_through_this_lowering() -> None:
    schedule = switch_schedule(Collective.ALLGATHER, [Domain(ranks=(0, 1), switch=0)], None)
    assert schedule is not None
    with pytest.raises(UnsupportedError, match="not the packets of LL"):
        lower_switch_plan(schedule, ports=frozenset(), out_of_place=False, protocol=Protocol.LL, name="x")
