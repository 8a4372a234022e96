"""Plans over several threadblocks of a rank, and plans that move data in slices."""

from __future__ import annotations

import pytest

from forestsyn.errors import UnsupportedError
from forestsyn.ir.collective import Collective
from forestsyn.ir.plan import Iteration
from forestsyn.ir.plan import PlanOperation as Op
from forestsyn.ir.program import Protocol
from forestsyn.lowering.onesided.draft import Draft
from forestsyn.lowering.onesided.lanes import spread_peers
from forestsyn.lowering.onesided.limits import count_shares
from forestsyn.verify.plan import verify_plan
from tests.plan_machine import misbehaves
from tests.plans import machine_plan, switch_plan

PROTOCOLS = (Protocol.SIMPLE, Protocol.LL)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("collective", Collective)
def test_peers_beyond_one_threadblock_are_spread_over_several(collective: Collective, protocol: Protocol) -> None:
    plan = machine_plan("full:18", collective, protocol, out_of_place=collective is Collective.ALLREDUCE)
    report = verify_plan(plan, strict=True)
    assert report.accepted, report.violations[:3]
    assert report.warnings == ()
    assert any(step.operation is Op.BARRIER for block in plan.gpus[0].blocks for step in block.steps)
    assert misbehaves(machine_plan("full:18", collective, protocol, threadblocks=1), 1, calls=1) is None


@pytest.mark.parametrize("collective", Collective)
@pytest.mark.parametrize("machine", ["dgx1v", "dgx-a100:2"])
def test_slices_pass_through_pipelines(machine: str, collective: Collective) -> None:
    plan = machine_plan(machine, collective, slice_bytes=4096)
    report = verify_plan(plan, strict=True)
    assert report.accepted, report.violations[:3]
    assert report.warnings == ()
    steps = [step for gpu in plan.gpus for block in gpu.blocks for step in block.steps]
    assert {step.iteration for step in steps if step.operation is Op.PIPELINE} == {
        Iteration(unit_size=4096, chunk_count=1)
    }
    assert not any(part.share for step in steps for part in (step, *step.steps))
    chunks = plan.gpus[0].output_chunks if collective is Collective.ALLGATHER else plan.gpus[0].input_chunks
    assert plan.maximum_bytes <= 4096 * 65535 * chunks
    if machine == "dgx1v":
        assert misbehaves(machine_plan(machine, collective, slice_bytes=4096, threadblocks=1), 1, calls=2) is None


def test_slices_that_cannot_be_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="packets move whole"):
        machine_plan("dgx-a100", Collective.ALLGATHER, Protocol.LL, slice_bytes=4096)
    with pytest.raises(UnsupportedError, match="expected a multiple of 16"):
        machine_plan("dgx-a100", Collective.ALLGATHER, slice_bytes=1000)
    with pytest.raises(UnsupportedError, match="cannot pass in slices"):
        switch_plan(2, 18, Collective.ALLREDUCE, slice_bytes=4096)


def test_peers_are_spread_evenly_by_what_is_reached_of_them() -> None:
    everyone = range(1, 72)
    assert spread_peers(0, frozenset(), dict.fromkeys(range(1, 17), 1)) == {}
    lanes = spread_peers(0, frozenset(), dict.fromkeys(everyone, 1))
    assert [list(lanes.values()).count(lane) for lane in range(5)] == [15, 14, 14, 14, 14]
    assert max(spread_peers(0, frozenset(), dict.fromkeys(everyone, 2)).values()) == 8
    ports = frozenset((0, peer) for peer in range(1, 17))
    assert max(spread_peers(0, ports, dict.fromkeys(range(1, 33), 1)).values(), default=0) == 0


def test_too_many_threadblocks_and_barriers_are_refused_by_name() -> None:
    one, several = Draft(0, frozenset()), Draft(0, frozenset(), {1: 0, 2: 1})
    assert count_shares([[one]], 24) == 24
    assert count_shares([[several]], 64) == 16
    for drafts, noun in (([[one]] * 81, "81 threadblocks"), ([[several]] * 17, "17 barriers")):
        with pytest.raises(UnsupportedError, match=noun) as caught:
            count_shares(drafts, 24)
        assert "--max-peers" in str(caught.value)
