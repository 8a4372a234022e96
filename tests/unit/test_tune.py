"""The tuner: windows without gap or overlap, never slower than what was simulated, files that install."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from forestsyn.frontend import load_topology
from forestsyn.frontend.profiles import choose_profile
from forestsyn.ir.collective import Collective
from forestsyn.ir.target import TARGETS
from forestsyn.pipeline.tune import TuneResult, tune, tuned_sizes
from forestsyn.pipeline.tune_files import tuner_rows, write_tuning
from forestsyn.pipeline.windows import choose_spans, find_crossing

SIZES = (1 << 10, 1 << 14, 1 << 17, 1 << 20, 1 << 23)


def tuned(machine: str, target: str, cache: Path | None = None, workers: int = 1) -> TuneResult:
    topology = load_topology(machine)
    return tune(
        topology,
        Collective.ALLREDUCE,
        target=TARGETS[target],
        profile=choose_profile(topology),
        sizes=SIZES,
        workers=workers,
        cache=cache,
    )


@pytest.fixture(scope="module")
def result() -> TuneResult:
    return tuned("4xh100-nv6", "executor")


def test_windows_cover_every_size_once(result: TuneResult) -> None:
    assert result.windows[0].minimum == 0
    assert result.windows[-1].maximum == 0
    for before, after in zip(result.windows, result.windows[1:], strict=False):
        assert after.minimum == before.maximum + 1


def test_never_slower_than_the_best_simulated(result: TuneResult) -> None:
    """The window of each tuned size holds the fastest candidate at it."""
    for size in result.sizes:
        number = result.candidates.index(result.window_of(size).candidate)
        assert result.times[number, size] == result.fastest(size)


def test_classic_algorithms_never_win_by_being_left_out(result: TuneResult) -> None:
    """At small sizes every candidate was looked at that could have won: simulate the others now."""
    from forestsyn.simulate import simulate_program

    for size in SIZES[:3]:
        for candidate in result.candidates:
            run = simulate_program(candidate.program, result.bound.topology, result.profile, size)
            assert result.fastest(size) <= run.time_us * (1 + 1e-6), candidate.name


def test_never_above_the_bound(result: TuneResult) -> None:
    for size in result.sizes:
        assert size / result.fastest(size) / 1e3 <= float(result.bound.limit_algbw) * (1 + 1e-9)


def test_workers_and_cache_change_nothing(result: TuneResult, tmp_path: Path) -> None:
    cache = tmp_path / "times.sqlite"
    first = tuned("4xh100-nv6", "executor", cache=cache, workers=2)
    second = tuned("4xh100-nv6", "executor", cache=cache)
    assert first.simulations > 0
    assert second.simulations == 0
    for other in (first, second):
        assert [(w.minimum, w.maximum, w.candidate.name, w.text) for w in other.windows] == [
            (w.minimum, w.maximum, w.candidate.name, w.text) for w in result.windows
        ]


def test_damaged_cache_costs_time_only(result: TuneResult, tmp_path: Path) -> None:
    cache = tmp_path / "times.sqlite"
    cache.write_text("no database")
    again = tuned("4xh100-nv6", "executor", cache=cache)
    assert [w.text for w in again.windows] == [w.text for w in result.windows]


def test_msccl_takes_four_files_and_excludes_the_upper_end() -> None:
    result = tuned("4xh100-nv6", "msccl")
    assert len(result.windows) <= 4
    for window in result.windows[:-1]:
        if window.text is not None:
            assert f'maxBytes="{window.maximum + 1}"' in window.text


def test_files(result: TuneResult, tmp_path: Path) -> None:
    files = write_tuning(result, tmp_path / "tuned")
    manifest = json.loads((tmp_path / "tuned/manifest.json").read_text())
    assert [bool(window["file"]) for window in manifest["windows"]] == [w.text is not None for w in result.windows]
    assert all(Path(file).is_file() for file in files)
    for row in tuner_rows(result).splitlines()[1:]:
        fields = row.split(",")
        assert fields[0] == "allreduce"
        assert fields[3] in ("ring", "tree")
        assert int(fields[5]) >= 1


def test_sizes() -> None:
    assert tuned_sizes(1 << 10, 1 << 12) == (1024, 1536, 2048, 3072, 4096)
    assert tuned_sizes(1000, 1000) == (1000,)


def test_few_windows_lose_least() -> None:
    rows = [[1.0, 9.0, 2.0], [2.0, 1.0, 1.1], [9.0, 5.0, 1.0]]
    assert len(choose_spans(rows, 3)) == 3
    [span] = choose_spans(rows, 1)
    assert span.candidate == 2
    assert [(s.first, s.last) for s in choose_spans(rows, 2)] == [(0, 0), (1, 2)]


def test_unknown_times_are_not_chosen() -> None:
    assert [span.candidate for span in choose_spans([[math.inf, 2.0], [1.0, math.inf]], 2)] == [1, 0]


def test_crossing_is_between_the_sizes() -> None:
    assert 600 <= find_crossing(512, 1024, lambda size: size < 700) <= 720
