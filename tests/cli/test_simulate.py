"""`forestsyn simulate` and `tune`: figures, traces, errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forestsyn.cli.main import main


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("programs") / "allreduce.xml"
    assert main(["compile", "4xh100-nv6", "-c", "allreduce", "-o", str(path)]) == 0
    return path


def test_json(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", str(program), "--topology", "4xh100-nv6", "--size", "1K:1M", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    times = [run["time_us"] for run in found["runs"]]
    assert [run["bytes"] for run in found["runs"]] == [1 << power for power in range(10, 21)]
    assert times == sorted(times)
    assert all(0 < run["share_of_limit"] <= 1 for run in found["runs"])


def test_trace_is_what_perfetto_reads(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "trace.json"
    command = ["simulate", str(program), "--topology", "4xh100-nv6", "--size", "64K", "--trace", str(trace)]
    assert main([*command, "--critical-path"]) == 0
    assert "critical path" in capsys.readouterr().out
    events = json.loads(trace.read_text())["traceEvents"]
    steps = [event for event in events if event["ph"] == "X"]
    assert steps
    assert all(event["dur"] >= 0 and event["ts"] >= 0 for event in steps)
    starts = {event["id"]: event["ts"] for event in events if event["ph"] == "s"}
    ends = {event["id"]: event["ts"] for event in events if event["ph"] == "f"}
    assert starts.keys() == ends.keys()
    assert starts
    assert all(starts[flow] <= ends[flow] for flow in starts)
    named = {event["pid"] for event in events if event["ph"] == "M" and event["name"] == "process_name"}
    assert {event["pid"] for event in steps} <= named


@pytest.mark.parametrize(
    "arguments",
    [
        ["--topology", "4xh100-nv6", "--size", "0"],
        ["--topology", "4xh100-nv6", "--size", "many"],
        ["--topology", "4xh100-nv6", "--size", "1K", "--profile", "nothing"],
        ["--topology", "dgx-a100:2", "--size", "1K"],
        ["--topology", "4xh100-nv6", "--size", "1K", "--trace", "/nowhere/trace.json"],
    ],
)
def test_wrong_input(program: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", str(program), *arguments]) == 2
    assert "forestsyn: error:" in capsys.readouterr().err


def test_rejected_program(program: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.xml"
    broken.write_text(program.read_text().replace('type="r"', 'type="nop"', 1))
    assert main(["simulate", str(broken), "--topology", "4xh100-nv6", "--size", "1K"]) == 5


def test_tune_writes_a_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORESTSYN_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "tuned"
    command = ["tune", "full:3", "-c", "allgather", "--sizes", "1K:8K", "--workers", "1", "-o", str(folder), "--json"]
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["windows"][0]["min_bytes"] == 0
    assert found["windows"][-1]["max_bytes"] == 0
    programs = sorted(str(path) for path in (folder / "programs").iterdir())
    assert programs == sorted(str(folder / window["file"]) for window in found["windows"] if window["file"])
    if programs:
        assert main(["verify", "--target", "executor", *programs]) == 0


@pytest.mark.parametrize("sizes", ["1K", "1G:1K", "x:y"])
def test_tune_refuses_wrong_sizes(sizes: str) -> None:
    assert main(["tune", "full:3", "--sizes", sizes]) == 2
