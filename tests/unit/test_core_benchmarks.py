"""The benchmark itself: names, a measured workload, the rendered table."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.measure import CORE_STAGES, measure
from benchmarks.report import growth, is_good, render
from benchmarks.workloads import WORKLOADS, chosen_workloads
from forestsyn.frontend import load_topology


def test_workloads_have_distinct_names_and_readable_topologies() -> None:
    assert len({workload.name for workload in WORKLOADS}) == len(WORKLOADS)
    for workload in WORKLOADS:
        if workload.quick and Path(workload.spec).suffix:
            assert load_topology(workload.spec).rank_count > 1


def test_quick_is_a_part_and_names_choose() -> None:
    assert 0 < len(chosen_workloads([], quick=True)) < len(chosen_workloads([], quick=False)) == len(WORKLOADS)
    assert [workload.name for workload in chosen_workloads(["torus-8x8"], quick=True)] == ["torus-8x8"]
    with pytest.raises(ValueError, match="there is no workload 'torus'"):
        chosen_workloads(["torus"], quick=False)


def test_figures_of_one_workload() -> None:
    figures = measure("dgx-a100:2")
    assert (figures["ranks"], figures["links"], figures["trees_per_root"]) == (16, 96, 13)
    assert figures["load_over_bound"] == "1"
    assert figures["algbw_exact"] == "1040/3"
    assert figures["core_seconds"] == pytest.approx(sum(figures["seconds"][stage] for stage in CORE_STAGES))
    assert figures["runs"] % 2


def test_growth_is_the_slope_in_logarithms() -> None:
    rows = [
        {"family": "hosts", "ranks": ranks, "core_seconds": seconds}
        for ranks, seconds in ((64, 1.0), (128, 2.0), (256, 8.0), (512, 32.0))
    ]
    assert "64 to 128: 1.00, 128 to 256: 2.00, 256 to 512: 2.00; **128 to 512: 2.00**" in growth(rows)
    assert growth(rows[:1]) == ""


def test_the_command_writes_its_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], root: Path
) -> None:
    monkeypatch.chdir(root)
    report = tmp_path / "report.md"
    monkeypatch.setattr("sys.argv", ["benchmarks", "--only", "a100-x2", "-o", str(report)])
    assert main() == 0
    assert "a100-x2" in capsys.readouterr().out
    assert "python -m benchmarks --only a100-x2" in report.read_text(encoding="utf-8")


def test_a_workload_that_fails_is_shown_and_not_good() -> None:
    row = {"name": "x", "family": "", "goal_seconds": None, "goal_depth": None, "error": "not finished in 1 s"}
    assert not is_good(row)
    assert "not finished in 1 s" in render({"command": "c", "machine": {}, "workloads": [row]})
