"""Execution plans as text: written, read back, and read as the loader does."""

from __future__ import annotations

import json

import pytest

from forestsyn.backends import emit_mscclpp_json
from forestsyn.frontend.mscclpp_json import parse_mscclpp_json
from forestsyn.ir.collective import Collective
from forestsyn.ir.plan import Iteration, PlanStep, RankGroup, Semaphore
from forestsyn.ir.plan import PlanOperation as Op
from forestsyn.ir.program import Protocol
from forestsyn.verify.plan import verify_plan
from tests.determinism import assert_same_output
from tests.plans import edit_gpu, edit_steps, machine_plan, replace


@pytest.mark.parametrize("protocol", [Protocol.SIMPLE, Protocol.LL])
@pytest.mark.parametrize("collective", Collective)
def test_what_is_written_reads_back_the_same(collective: Collective, protocol: Protocol) -> None:
    plan = machine_plan("dgx-a100:2", collective, protocol)
    text = emit_mscclpp_json(plan)
    read = parse_mscclpp_json(text, source="x")
    assert read.plan == plan
    assert read.findings == ()
    assert emit_mscclpp_json(read.plan) == text


def test_every_attribute_survives() -> None:
    plan = machine_plan("dgx-a100", Collective.ALLREDUCE)
    inner = PlanStep(operation=Op.SEMAPHORE_ACQUIRE, semaphore_ids=(0, 1))
    steps = (
        PlanStep(operation=Op.BARRIER, barrier_id=3, threadblock_count=2),
        PlanStep(operation=Op.PIPELINE, iteration=Iteration(unit_size=1024, chunk_count=2), steps=(inner,)),
    )
    plan = edit_steps(plan, 0, 0, lambda old: (*old, *steps))
    switch = replace(
        plan.gpus[0].channels[0],
        channel_type="switch",
        connected_to=(),
        buffer="i",
        rank_groups=(RankGroup(size=8, ranks=tuple(range(8))),),
    )
    plan = edit_gpu(plan, 0, semaphores=(Semaphore(init_value=2),), channels=(*plan.gpus[0].channels, switch))
    assert emit_mscclpp_json(parse_mscclpp_json(emit_mscclpp_json(plan), source="x").plan) == emit_mscclpp_json(plan)


def test_the_text_names_the_attributes_of_the_format() -> None:
    value = json.loads(emit_mscclpp_json(machine_plan("dgx-a100", Collective.REDUCE_SCATTER)))
    assert value["collective"] == "reducescatter"
    assert {"name", "protocol", "inplace", "gpus", "reuse_resources", "use_double_scratch_buffer"} < set(value)
    assert {"buffer_alignment", "num_threads_per_block", "min_message_size", "max_message_size"} < set(value)
    gpu = value["gpus"][3]
    assert set(gpu) == {
        *("id", "input_chunks", "output_chunks", "scratch_chunks"),
        *("threadblocks", "channels", "remote_buffers", "semaphores"),
    }
    assert set(gpu["threadblocks"][1]) == {"id", "ops", "channels", "remote_buffer_refs"}
    put = next(op for op in gpu["threadblocks"][1]["ops"] if op["name"] == "put")
    assert set(put) == {"name", "src_buff", "dst_buff", "channel_type", "tbg_info"}
    assert set(put["src_buff"][0]) == {"type", "index", "size"}
    assert set(put["dst_buff"][0]) == {"buffer_id", "index", "size"}


def test_the_text_does_not_depend_on_the_hash_seed() -> None:
    assert_same_output(
        "from forestsyn.backends import emit_mscclpp_json\n"
        "from forestsyn.ir.collective import Collective\n"
        "from forestsyn.ir.program import Protocol\n"
        "from tests.plans import machine_plan\n"
        "for protocol in (Protocol.SIMPLE, Protocol.LL):\n"
        "    print(emit_mscclpp_json(machine_plan('dgx-a100:2', Collective.ALLREDUCE, protocol)))\n"
    )


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("", "json", "not JSON"),
        ("<algo/>", "json", "not JSON"),
        ('{"name": "x"}', "form", "required field"),
        ("[1, 2]", "form", "object"),
        ("[" * 5000, "json", ""),
        (b"\xff\xfe{}", "json", ""),
    ],
)
def test_what_is_no_plan_is_told(text: str | bytes, kind: str, words: str) -> None:
    read = parse_mscclpp_json(text, source="x")
    assert read.plan is None
    assert read.findings[0].kind == kind
    assert words in read.findings[0].message
    report = verify_plan(read.plan, findings=read.findings)
    assert not report.accepted
    assert not report.loads


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("gpus", 0, "threadblocks", 0, "ops", 0, "name"), "jump", "ops[0].name"),
        (("gpus", 0, "id"), "zero", "gpus[0].id"),
        (("gpus", 1, "remote_buffers", 0, "type"), "x", "remote_buffers[0].type"),
        (("gpus", 0, "channels", 0, "channel_type"), "wire", "channels[0].channel_type"),
        (("inplace",), 1, "inplace"),
    ],
)
def test_wrong_values_are_told_with_their_path(path: tuple[str | int, ...], value: object, words: str) -> None:
    document = json.loads(emit_mscclpp_json(machine_plan("dgx-a100", Collective.ALLGATHER)))
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    read = parse_mscclpp_json(json.dumps(document), source="x")
    assert read.plan is None
    assert words in read.findings[0].message


def test_unknown_attributes_are_ignored_with_a_note() -> None:
    plan = machine_plan("dgx-a100", Collective.ALLGATHER)
    document = json.loads(emit_mscclpp_json(plan))
    document["author"] = "someone"
    for op in document["gpus"][0]["threadblocks"][0]["ops"]:
        op["comment"] = "why"
    read = parse_mscclpp_json(json.dumps(document), source="x")
    assert read.plan == plan
    assert {finding.message.split("'")[1] for finding in read.findings} == {
        "/author",
        "/gpus/threadblocks/ops/comment",
    }
    assert verify_plan(read.plan, findings=read.findings).accepted
