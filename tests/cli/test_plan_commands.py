"""`forestsyn compile --target mscclpp` and `forestsyn verify` on plans."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run


@pytest.mark.parametrize("collective", ["allgather", "reduce-scatter", "allreduce", "broadcast", "reduce"])
def test_what_is_written_verifies(run: Run, tmp_path: Path, collective: str) -> None:
    path = tmp_path / "plan.json"
    outcome = run("compile", "full:4", "-c", collective, "--target", "mscclpp", "-o", path, "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.data["target"] == "mscclpp"
    assert outcome.data["byte_count_divisor"] == 16 * outcome.data["chunks"]
    assert outcome.data["steps_max"] <= 64
    assert outcome.data["in_place"]
    assert not outcome.data["out_of_place"]
    assert outcome.data["files"] == [str(path)]
    assert json.loads(path.read_text(encoding="utf-8"))["inplace"] is True
    verdict = run("verify", path)
    assert (verdict.code, verdict.out) == (0, f"{path}: ok for mscclpp\n")


def test_people_are_told_what_it_serves(run: Run) -> None:
    outcome = run(
        "compile", "dgx-a100", "-c", "allreduce", "--target", "mscclpp", "--protocol", "LL", "--out-of-place"
    )
    assert outcome.code == 0
    assert "mscclpp, LL, out-of-place" in outcome.out
    assert "whose bytes are divisible by 128" in outcome.out


def test_a_broken_plan_is_rejected(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    assert run("compile", "full:4", "--target", "mscclpp", "-o", path).code == 0
    path.write_text(path.read_text(encoding="utf-8").replace('"name": "wait"', '"name": "nop"', 1), encoding="utf-8")
    outcome = run("verify", path)
    assert outcome.code == 5
    assert "REJECTED for mscclpp" in outcome.out
    assert "pairing" in outcome.out
    assert run("verify", path, "--json").data["files"][0]["violations"][0]["kind"] == "pairing"


def test_files_of_the_other_kind_are_told(run: Run, tmp_path: Path) -> None:
    plan, program = tmp_path / "plan.json", tmp_path / "program.xml"
    assert run("compile", "full:4", "--target", "mscclpp", "-o", plan).code == 0
    assert run("compile", "full:4", "-o", program).code == 0
    assert run("verify", plan, program).code == 0
    assert run("verify", plan, "--target", "executor").code == 5
    assert "not JSON" in run("verify", program, "--target", "mscclpp").out


def test_what_does_not_fit_is_refused(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    outcome = run("compile", "full:4", "--target", "mscclpp", "--min-bytes", "5G", "-o", path)
    assert outcome.code == 4
    assert "--max-bytes" in outcome.err
    assert not path.exists()
