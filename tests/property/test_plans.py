"""Plans along random forests: right by the verifier, and by executions with numbers in random order."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forestsyn.backends import emit_mscclpp_json
from forestsyn.frontend.mscclpp_json import parse_mscclpp_json
from forestsyn.ir.collective import Collective
from forestsyn.ir.forest import Direction
from forestsyn.ir.plan import Plan
from forestsyn.ir.plan import PlanOperation as Op
from forestsyn.ir.program import Protocol
from forestsyn.lowering import lower_forests
from forestsyn.lowering.onesided import lower_plan
from forestsyn.verify.plan import verify_plan
from tests.lowering_forests import random_forest, reversed_forest
from tests.plan_machine import misbehaves
from tests.plans import edit_all_steps, edit_steps, machine_plan, replace

_MEETING = frozenset({Op.RELAXED_SIGNAL, Op.RELAXED_WAIT})


@st.composite
def plans(draw: st.DrawFn) -> tuple[Plan, int]:
    """A plan along random forests, with ports between random pairs of ranks, and the root of its collective."""
    collective = draw(st.sampled_from(list(Collective)))
    ranks = draw(st.integers(2, 5))
    trees = draw(st.integers(1, 3))
    root = draw(st.integers(0, ranks - 1)) if collective.rooted else None
    demand = [trees if root in (None, rank) else 0 for rank in range(ranks)]
    seed = draw(st.integers(0, 2**32))
    copying = random_forest(seed, ranks, demand, Direction.OUT)
    reducing = (
        reversed_forest(copying) if draw(st.booleans()) else random_forest(seed + 1, ranks, demand, Direction.IN)
    )
    schedule = lower_forests(collective, out_forest=copying, in_forest=reducing, root=root)
    source = random.Random(seed)
    share = draw(st.sampled_from([0.0, 0.4, 1.0]))
    pairs = {(a, b) for a in range(ranks) for b in range(a) if source.random() < share}
    protocol = draw(st.sampled_from([Protocol.SIMPLE, Protocol.LL]))
    plan = lower_plan(
        schedule,
        ports=frozenset(pairs | {(b, a) for a, b in pairs}),
        out_of_place=draw(st.booleans()),
        protocol=protocol,
        name="random",
        threadblocks=draw(st.integers(1, 3)),
        slice_bytes=256 if protocol is Protocol.SIMPLE and draw(st.booleans()) else 0,
    )
    return plan, root or 0


@given(plans())
def test_plans_are_right(sample: tuple[Plan, int]) -> None:
    plan, root = sample
    read = parse_mscclpp_json(emit_mscclpp_json(plan), source="x")
    assert read.plan == plan
    report = verify_plan(read.plan, strict=True, root=root)
    assert report.accepted, report.violations[:3]


@given(plans(), st.integers(0, 2**32))
@settings(max_examples=25)
def test_plans_run_in_any_order_call_after_call(sample: tuple[Plan, int], seed: int) -> None:
    plan, root = sample
    assert misbehaves(plan, seed, root=root) is None


@given(plans(), st.randoms(use_true_random=False))
@settings(max_examples=25)
def test_what_misbehaves_without_an_operation_is_rejected(sample: tuple[Plan, int], source: random.Random) -> None:
    """The verifier is at least as strict as every execution that was tried."""
    plan, root = sample
    rank = source.randrange(len(plan.gpus))
    steps = plan.gpus[rank].blocks[0].steps
    at = source.randrange(len(steps))
    damaged = edit_steps(plan, rank, 0, lambda old: [*old[:at], *old[at + 1 :]])
    if any(misbehaves(damaged, seed, root=root, calls=3) for seed in range(3)):
        assert not verify_plan(damaged, strict=True, root=root).accepted


@pytest.mark.parametrize(
    ("machine", "collective", "protocol", "damage"),
    [
        ("full:3", Collective.ALLGATHER, Protocol.LL, {"use_double_scratch_buffer": False}),
        ("full:3", Collective.BROADCAST, Protocol.LL, _MEETING),
        ("full:3", Collective.ALLGATHER, Protocol.SIMPLE, _MEETING),
        ("full:3", Collective.REDUCE, Protocol.SIMPLE, _MEETING),
    ],
)
def test_executions_show_what_calls_do_to_each_other(
    machine: str, collective: Collective, protocol: Protocol, damage: dict[str, bool] | frozenset[Op]
) -> None:
    """Neither the machine nor the verifier is blind to a rank that runs ahead."""
    plan = machine_plan(machine, collective, protocol, threadblocks=1)
    if isinstance(damage, dict):
        damaged = replace(plan, **damage)
    else:
        damaged = edit_all_steps(plan, lambda steps: [step for step in steps if step.operation not in damage])
    assert not any(misbehaves(plan, seed) for seed in range(10))
    assert any(misbehaves(damaged, seed) for seed in range(40))
    assert not verify_plan(damaged, strict=True).accepted
