"""`forestsyn forest`."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from tests.cli.conftest import Run


def test_exact_trees_reach_the_bound(run: Run) -> None:
    data = run("forest", "dgx-a100:2", "--trees", "exact", "--json").data
    assert data["load_over_bound_exact"] == "1"
    assert data["reached"]["algbw_exact"] == data["algbw_exact"] == "1040/3"
    assert data["trees_per_root"] == 13
    assert data["chunks_per_root"] == [13, 13]
    assert data["tree_count"] >= 16
    assert 2 <= data["depth"] <= 15
    assert 1 <= data["peers_per_rank_max"] <= 15
    assert {"topology", "optimum", "cut", "forest", "check forest"} == set(data["seconds"])


@pytest.mark.parametrize(("trees", "algbw"), [("1", 266.7), ("2", 320), ("3", 342.9), ("4", 320)])
def test_the_rate_of_mi250_is_not_monotone(run: Run, trees: str, algbw: float) -> None:
    data = run("forest", "mi250", "--trees", trees, "--json").data
    assert data["trees_per_root"] == int(trees)
    assert data["reached"]["algbw_GBps"] == pytest.approx(algbw, abs=0.1)


def test_auto_keeps_its_tolerance(run: Run) -> None:
    for tolerance in ("0%", "2%", "10%"):
        data = run("forest", "dgx-a100:2", "--tolerance", tolerance, "--json").data
        limit = 1 / (1 - Fraction(tolerance.rstrip("%")) / 100)
        assert Fraction(data["load_over_bound_exact"]) <= limit
        assert data["choice"]


@pytest.mark.parametrize("collective", ["allgather", "reduce-scatter", "allreduce", "broadcast", "reduce"])
def test_the_document_holds_trees_routes_and_loads(run: Run, tmp_path: Path, collective: str) -> None:
    path = tmp_path / "forest.json"
    outcome = run("forest", "dgx1v", "-c", collective, "-o", path, "--json")
    assert outcome.code == 0
    assert outcome.data["files"] == [str(path)]
    document = json.loads(path.read_text())
    assert "seconds" not in document
    assert document["rank_names"][0] == "n0/gpu0"
    for forest in document["forests"]:
        units = Fraction(forest["time_units"])
        assert sum(tree["multiplicity"] for tree in forest["trees"]) == sum(forest["chunks_per_root"])
        for load in forest["loads"]:
            assert load["load"] <= units * Fraction(load["bandwidth"])
        for tree in forest["trees"]:
            assert len(tree["edges"]) == 7
            for edge in tree["edges"]:
                ends = {document["rank_names"][edge["rank"]], document["rank_names"][edge["parent"]]}
                assert ends == {edge["route"][0], edge["route"][-1]}


def test_the_file_is_confirmed(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    assert run("forest", "dgx1v", "-o", path).out.endswith(f"\n  file          {path}\n")
    assert "none written; name one with -o FILE" in run("forest", "dgx1v").out


def test_standard_output_carries_the_trees_alone(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run("forest", "ring:4", "-o", "x.json")
    outcome = run("forest", "ring:4", "-o", "-")
    assert outcome.out == (tmp_path / "x.json").read_text()
    assert "ring:4: allgather over 4 ranks" in outcome.err
    assert "file          standard output" in outcome.err
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def test_people_get_sentences(run: Run) -> None:
    outcome = run("forest", "dgx1v", "--trees", "exact")
    assert outcome.code == 0
    assert "load / bound  1 (1.0000)" in outcome.out
