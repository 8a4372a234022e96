"""`forestsyn show`."""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.conftest import Run


def test_tables_without_a_file(run: Run) -> None:
    outcome = run("show", "dgx-a100:2")
    assert outcome.code == 0
    for text in ("346.67 GB/s", "n0 and 1 alike", "gpu → switch", "n0/nvsw → n0/gpu0", "█"):
        assert text in outcome.out
    assert "\x1b" not in outcome.out


def test_json_is_one_object(run: Run) -> None:
    data = run("show", "mi250:2", "-c", "allreduce", "--json").data
    assert data["cut"]["inside"] == ["n0/gpu0", "n0/gpu1"]
    assert sum(Fraction(link["bandwidth"]) for link in data["cut"]["crossing"]) == 332
    assert sum(row["count"] for row in data["links"]) == 176
    assert {"host": "n0", "alike": 2, "devices": {"gpu": 16}} in data["hosts"]
    assert max(row["share_of_bound"] for row in data["loads"]) == pytest.approx(data["load_over_bound"], rel=0.02)
    assert data["curves"] == []


@pytest.mark.parametrize("picture", ["topology", "trees", "loads"])
def test_an_svg_file(run: Run, tmp_path: Path, picture: str) -> None:
    path = tmp_path / "picture.svg"
    outcome = run("show", "torus:4x4", "-o", path, "--picture", picture)
    assert outcome.code == 0
    assert str(path) in outcome.out
    assert ElementTree.fromstring(path.read_text()).tag.endswith("svg")


def test_a_png_file_and_a_page_at_once(run: Run, tmp_path: Path) -> None:
    png, page = tmp_path / "picture.png", tmp_path / "<script>page.html"
    data = run(
        "show",
        "switch:4",
        "-c",
        "broadcast",
        "--root",
        "2",
        "-o",
        png,
        "--html",
        page,
        "--times",
        "program",
        "--json",
    ).data
    assert data["files"] == [str(png), str(page)]
    assert data["channels"] >= 1
    assert png.read_bytes().startswith(b"\x89PNG")
    text = page.read_text()
    assert "forestsyn show switch:4 -c broadcast --root 2" in text
    assert "with root gpu2" in text
    assert "forest program, simulated" in text


def test_no_times_when_not_wanted(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert run("show", "ring:4", "--html", page, "--times", "none").code == 0
    assert "No times were predicted" in page.read_text()


def test_a_tuned_page(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORESTSYN_CACHE", str(tmp_path))
    page = tmp_path / "page.html"
    data = run("show", "switch:4", "-c", "allreduce", "--html", page, "--json").data
    kinds = {curve["name"]: curve["kind"] for curve in data["curves"]}
    assert kinds["tuned"] == "tuned"
    assert {"bound", "ring", "candidate"} <= set(kinds.values())
    curves = {curve["name"]: curve["times_us"] for curve in data["curves"]}
    for name, times in curves.items():
        assert all(time >= least for time, least in zip(times, curves["bound of any schedule"], strict=True)), name
    text = page.read_text()
    assert "Fastest by message size" in text
    assert run("show", "switch:4", "-c", "allreduce", "--html", page).code == 0
    assert page.read_text() == text


def test_the_time_chart(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "time.svg"
    assert run("show", "ring:4", "-o", path, "--picture", "time", "--times", "program").code == 0
    assert "bound of any schedule" in path.read_text()
    assert run("show", "ring:4", "-o", path, "--picture", "time", "--times", "none").code == 2


@pytest.mark.parametrize("arguments", [("-o", "x.gif"), ("-o", "x"), ("--html", "x.svg")])
def test_endings_that_mean_nothing(run: Run, tmp_path: Path, arguments: tuple[str, str]) -> None:
    option, name = arguments
    outcome = run("show", "ring:4", option, tmp_path / name, "--json")
    assert outcome.code == 2
    assert outcome.data["error"]["where"] == option
    assert not list(tmp_path.iterdir())


def test_a_missing_folder_is_told_before_any_work(run: Run, tmp_path: Path) -> None:
    assert "does not exist" in run("show", "ring:4", "-o", tmp_path / "no" / "x.svg").err


def test_without_the_extra(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    outcome = run("show", "ring:4", "-o", tmp_path / "x.png")
    assert outcome.code == 2
    assert "pip install 'forestsyn[show]'" in outcome.err
    assert run("show", "ring:4", "-o", tmp_path / "x.svg").code == 0


def test_help_has_examples(run: Run) -> None:
    outcome = run("show", "--help")
    assert "Examples:\n    forestsyn show" in outcome.out
    assert "--json" in outcome.out
