"""The public sample plans, written by MSCCL++'s own language, are accepted; what is known of each is found."""

from __future__ import annotations

import pytest

from forestsyn.frontend.mscclpp_json import parse_mscclpp_json
from forestsyn.verify.plan import verify_plan
from forestsyn.verify.program_report import Report
from tests.conftest import SHARED

pytestmark = pytest.mark.shared

SAMPLES = ("allgather_2", "allgather_pkt_4", "allreduce_4", "allreduce_nvls_4", "multi_allgather_2x4")


def _verify(name: str, *, old: str = "", new: str = "") -> Report:
    text = (SHARED / "data" / "programs" / "mscclpp-json" / f"{name}.json").read_text(encoding="utf-8")
    assert old in text
    read = parse_mscclpp_json(text.replace(old, new, 1) if old else text, source=name)
    return verify_plan(read.plan, source=name, findings=read.findings)


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_are_accepted(name: str) -> None:
    report = _verify(name)
    assert report.accepted, report.violations
    assert "offsets" in {warning.kind for warning in report.warnings}


def test_the_switch_sample_rests_on_relaxed_signals_alone() -> None:
    warned = {name: {warning.kind for warning in _verify(name).warnings} for name in SAMPLES}
    assert {name for name, kinds in warned.items() if "relaxed" in kinds} == {"allreduce_nvls_4"}


@pytest.mark.parametrize(
    ("name", "old", "new", "kind"),
    [
        ("allgather_2", '"input_chunks": 1', '"input_chunks": 0', "chunks"),
        ("allgather_2", '"name": "signal"', '"name": "nop"', "pairing"),
        ("allgather_pkt_4", '"use_double_scratch_buffer": true', '"use_double_scratch_buffer": false', "overwritten"),
        ("allreduce_4", '"name": "rres"', '"name": "rre"', "operands"),
        ("allreduce_nvls_4", '"name": "glres"', '"name": "gstore"', "operands"),
        ("multi_allgather_2x4", '"name": "pwsf"', '"name": "pws"', "unflushed"),
    ],
)
def test_damaged_samples_are_rejected(name: str, old: str, new: str, kind: str) -> None:
    report = _verify(name, old=old, new=new)
    assert kind in {violation.kind for violation in report.violations}
