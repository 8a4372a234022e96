"""Clusters whose forest is kept as a base and its turn: summary, document and program."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest

from forestsyn.core import hierarchy
from forestsyn.pipeline import compile as compile_module
from tests.cli.conftest import Run


@pytest.fixture
def always_compact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hierarchy, "WHOLE_RANKS", 0)


@pytest.mark.usefixtures("always_compact")
@pytest.mark.parametrize("collective", ["allgather", "reduce-scatter", "allreduce"])
def test_the_document_describes_the_whole_forest(run: Run, tmp_path: Path, collective: str) -> None:
    """Written out as its note says, the trees meet the demand and add up to the loads."""
    path = tmp_path / "forest.json"
    outcome = run("forest", "dgx-a100:3", "-c", collective, "--trees", "exact", "-o", path, "--json")
    assert outcome.data["compact"] is True
    assert outcome.data["load_over_bound_exact"] == "1"
    document = json.loads(path.read_text())
    assert document["compact"] is True
    trees = 0
    for forest in document["forests"]:
        assert forest["turns"] == 3
        assert "'turn'" in forest["note"]
        loads: Counter[tuple[str, str]] = Counter()
        roots: Counter[str] = Counter()
        for tree in forest["trees"]:
            names = {name: name for name in forest["turn"]}
            for _ in range(forest["turns"]):
                trees += 1
                roots[names[document["rank_names"][tree["root"]]]] += tree["multiplicity"]
                for edge in tree["edges"]:
                    for tail, head in pairwise(edge["route"]):
                        loads[names[tail], names[head]] += tree["multiplicity"]
                names = {name: forest["turn"][image] for name, image in names.items()}
            assert names == {name: name for name in names}
        assert [roots[name] for name in document["rank_names"]] == forest["chunks_per_root"]
        assert {(link["from"], link["to"]): link["load"] for link in forest["loads"] if link["load"]} == loads
        units = Fraction(forest["time_units"])
        assert all(link["load"] <= units * Fraction(link["bandwidth"]) for link in forest["loads"])
    assert trees == document["tree_count"]


def test_small_forests_are_written_whole(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "forest.json"
    outcome = run("forest", "dgx-a100:2", "-o", path, "--json")
    assert outcome.data["compact"] is False
    assert "turn" not in json.loads(path.read_text())["forests"][0]


@pytest.mark.usefixtures("always_compact")
@pytest.mark.parametrize("collective", ["allgather", "reduce-scatter"])
def test_programs_follow_the_forest_written_out(run: Run, tmp_path: Path, collective: str) -> None:
    path = tmp_path / "program.xml"
    data = run("compile", "dgx-a100:3", "-c", collective, "-o", path, "--json").data
    assert data["compact"] is True
    assert data["ranks"] == 24
    assert run("verify", path).code == 0


@pytest.mark.parametrize("target", ["msccl", "executor", "rccl"])
def test_too_many_ranks_are_refused_before_any_work(run: Run, monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    monkeypatch.setattr(compile_module, "synthesize", None)
    outcome = run("compile", "dgx-a100:129", "--target", target, "--json")
    assert outcome.code == 4
    error = outcome.data["error"]
    assert error["limit"] == "ranks_max"
    assert error["value"] == 1032
    assert f"dgx-a100-129 has 1,032 ranks; {target} allows 1,024" in error["message"]
    assert "forestsyn forest" in error["hint"]
