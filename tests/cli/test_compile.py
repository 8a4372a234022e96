"""`forestsyn compile` and `forestsyn verify`, from a topology to a file and back."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from forestsyn.backends import emit_msccl_xml
from forestsyn.ir.program import Program
from forestsyn.ir.target import Target
from tests.cli.conftest import Run
from tests.determinism import assert_same_output

COLLECTIVES = ("allgather", "reduce-scatter", "allreduce", "broadcast", "reduce")
KEYS = (
    "inverse_rate",
    "algbw_GBps",
    "algbw_exact",
    "bottleneck",
    "trees_per_root",
    "tree_count",
    "depth",
    "peers_per_rank_max",
    "load_over_bound",
    "channels",
    "threadblocks_max",
    "steps_max",
    "verified",
    "files",
    "seconds",
)


@pytest.mark.parametrize("target", ["msccl", "executor", "rccl"])
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_what_is_written_verifies(run: Run, tmp_path: Path, collective: str, target: str) -> None:
    path = tmp_path / "x.xml"
    outcome = run("compile", "full:5", "-c", collective, "--target", target, "-o", path, "--json")
    assert outcome.code == 0, outcome.err
    data = outcome.data
    assert [key for key in KEYS if key not in data] == []
    assert data["verified"] is True
    assert data["files"] == [str(path)]
    assert run("verify", path, "--target", target).code == 0


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_exact_programs_reach_the_bound(run: Run, collective: str) -> None:
    data = run("compile", "dgx-a100:2", "-c", collective, "--trees", "exact", "--json").data
    assert data["load_over_bound"] == 1.0
    assert data["load_over_bound_exact"] == "1"
    assert data["files"] == []


def test_the_element_counts_served_are_told(run: Run) -> None:
    data = run("compile", "dgx1v", "-c", "allreduce", "--json").data
    assert data["element_count_divisor"] == data["chunks"]
    assert data["serves_powers_of_two_from"] == data["chunks"]
    assert f"divisible by {data['chunks']}" in data["serves"]
    data = run("compile", "dgx1v", "-c", "allgather", "--json").data
    assert data["element_count_divisor"] == data["trees_per_root"]


def test_nothing_is_written_without_a_name(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = run("compile", "dgx1v")
    assert outcome.code == 0
    assert "none written; name one with -o FILE" in outcome.out
    assert list(tmp_path.iterdir()) == []


def test_standard_output_carries_the_program_alone(run: Run, tmp_path: Path) -> None:
    run("compile", "ring:4", "-o", tmp_path / "x.xml")
    outcome = run("compile", "ring:4", "-o", "-")
    assert outcome.out == (tmp_path / "x.xml").read_text()
    assert "ring:4: allgather over 4 ranks" in outcome.err


def test_window_protocol_and_place_reach_the_file(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "x.xml"
    options = ("--protocol", "LL", "--min-bytes", "64K", "--max-bytes", "1M", "--out-of-place")
    data = run("compile", "ring:4", *options, "-o", path, "--json").data
    assert (data["protocol"], data["minimum_bytes"], data["maximum_bytes"]) == ("LL", 65536, 1048576)
    assert data["out_of_place"] is True
    assert 'proto="LL"' in path.read_text()
    assert 'minBytes="65536" maxBytes="1048576"' in path.read_text()


@pytest.mark.parametrize("place", ["missing/x.xml", "."])
def test_a_place_that_cannot_be_written(run: Run, tmp_path: Path, place: str) -> None:
    outcome = run("compile", "ring:4", "-o", tmp_path / place)
    assert outcome.code == 2
    assert outcome.out == ""
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_no_file(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    outcome = run("compile", "ring:4", "-o", tmp_path / "x.xml", "--json")
    assert outcome.code == 2
    assert "No space left on device" in outcome.data["error"]["message"]
    assert list(tmp_path.iterdir()) == []


def test_what_fails_is_not_written(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def emit_broken(program: Program, target: Target) -> str:
        text = emit_msccl_xml(program, target)
        start = text.index("      <step")
        return text[:start] + text[text.index("\n", start) + 1 :]

    monkeypatch.setattr("forestsyn.pipeline.compile.emit_msccl_xml", emit_broken)
    outcome = run("compile", "ring:4", "-o", tmp_path / "x.xml", "--json")
    assert outcome.code == 5
    error = outcome.data["error"]
    assert error["kind"] == "VerificationError"
    assert any("rank" in violation for violation in error["violations"])
    assert list(tmp_path.iterdir()) == []


def test_the_same_bytes_under_any_hash_seed() -> None:
    code = "from forestsyn.cli.main import main; main(['compile', 'dgx-a100:2', '-c', 'allreduce', '-o', '-'])"
    assert assert_same_output(code).startswith(b"<algo ")


def test_verify_judges_many_files(run: Run, tmp_path: Path) -> None:
    good, bad, missing = tmp_path / "good.xml", tmp_path / "bad.xml", tmp_path / "missing.xml"
    run("compile", "ring:4", "-o", good)
    text = good.read_text()
    start = text.index("  <step") if "  <step" in text else text.index("<step")
    bad.write_text(text[:start] + text[text.index("\n", start) + 1 :])
    assert run("verify", good, good).code == 0
    outcome = run("verify", good, bad, missing)
    assert outcome.code == 5
    assert f"{good}: ok for " in outcome.out
    assert f"{bad}: REJECTED" in outcome.out
    assert f"{missing}: UNREADABLE" in outcome.err
    assert run("verify", good, missing).code == 2
    data = run("verify", good, bad, "--json").data
    assert data["accepted"] is False
    assert [file["accepted"] for file in data["files"]] == [True, False]
    assert data["files"][1]["violations"][0]["message"]


def test_verify_takes_any_bytes(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "noise"
    for noise in (b"", b"\x00\xff\xfe", b"<algo", b"<?xml version='1.0'?>", "größe".encode()):
        path.write_bytes(noise)
        assert run("verify", path).code == 5
    assert run("verify", tmp_path).code == 2


def test_verify_reads_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    text = run("compile", "ring:4", "-o", "-").out.encode()
    for data, code, verdict in ((text, 0, "ok for "), (text[:-8], 5, "REJECTED for ")):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        outcome = run("verify", "-")
        assert outcome.code == code
        assert outcome.out.startswith(f"standard input: {verdict}")


def test_the_same_fault_elsewhere_is_counted_as_places(run: Run, tmp_path: Path) -> None:
    run("compile", "ring:4", "-c", "allreduce", "-o", tmp_path / "x.xml")
    [line] = [line for line in run("verify", tmp_path / "x.xml").out.splitlines() if "not for rccl" in line]
    assert re.search(
        r"cannot run steps of type \w+( and \w+)*; the same fault in \d+ more places, which --json lists", line
    )


def test_an_empty_window_is_told_in_words(run: Run, tmp_path: Path) -> None:
    run("compile", "ring:4", "-o", tmp_path / "x.xml")
    out = run("verify", tmp_path / "x.xml", "--target", "msccl").out
    assert "no message has at least 0 and fewer than 0 bytes; maxBytes 0 does not mean 'no limit' there" in out


def test_the_window_is_told(run: Run) -> None:
    data = run("compile", "mi250", "-c", "reduce-scatter", "--target", "msccl", "--json").data
    assert data["maximum_bytes"] == 1 << 30
    assert data["window"].startswith("below 1 GiB; msccl has no word for 'no limit' and allocates scratch")
    outcome = run("compile", "ring:4", "--target", "msccl", "--min-bytes", "64K", "--max-bytes", "1M")
    assert "  messages      from 64 KiB, below 1 MiB\n" in outcome.out
    assert "  messages      of every size\n" in run("compile", "ring:4").out
    assert "msccl, which has no such word, 1T, or 1G with scratch" in " ".join(run("compile", "--help").out.split())


def test_a_program_too_long_to_read_back_is_refused_early(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forestsyn.pipeline.compile.lower_forests", None)
    outcome = run("compile", "dgx-h100:128", "--json")
    assert outcome.code == 4
    error = outcome.data["error"]
    assert (error["limit"], error["target"]) == ("file_bytes", "executor")
    assert error["value"] > 128 << 20
    assert "forestsyn reads back at most 128 MiB" in error["message"]


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs /dev/zero")
def test_endless_files_end(run: Run) -> None:
    assert run("verify", "/dev/zero").code == 5
    assert run("bound", "/dev/zero").code == 2


def test_a_runtime_that_cannot_hold_it_is_named(run: Run) -> None:
    outcome = run("compile", "full:4", "--trees", 1_000_000, "--target", "rccl", "--json")
    assert outcome.code == 4
    error = outcome.data["error"]
    assert error["target"] == "rccl"
    assert error["limit"]
    assert error["value"]
    assert "--trees" in error["hint"]
    assert error["limit"] == "offset_max"
    assert "msccl" not in error["hint"], "every target has the same limit of offsets"
