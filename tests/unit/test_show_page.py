"""Curves, charts and the page as text; the page in a real browser is tested in tests/browser."""

from __future__ import annotations

import json
import re
import sys

import msgspec
import pytest

from forestsyn.errors import InputError, InternalError
from forestsyn.frontend import load_topology
from forestsyn.ir.collective import Collective
from forestsyn.pipeline.show import Picture, ShowResult, draw_page, draw_png, draw_svg, show
from forestsyn.pipeline.show_times import TunedCurves
from forestsyn.show.charts import legend_entries, rate_chart, sorted_curves, time_chart, time_text
from forestsyn.show.palette import COLOURS
from forestsyn.show.render import chart_script, require_extra
from forestsyn.show.series import Curve, CurveKind

HOSTILE = "</script><img src=x onerror=alert(1)> \"'& ü😀"


def _curve(name: str, kind: CurveKind, factor: float = 1.0) -> Curve:
    sizes = tuple(1 << power for power in range(10, 31, 4))
    return Curve(name=name, sizes=sizes, times_us=tuple(factor * (5 + size / 1e5) for size in sizes), kind=kind)


CURVES = (
    _curve("rings", CurveKind.RING, 2),
    _curve("bound", CurveKind.BOUND, 0.5),
    *(_curve(f"candidate {number}", CurveKind.CANDIDATE, 1.1 + number / 10) for number in range(10)),
    _curve("tuned", CurveKind.TUNED),
)

TUNED = TunedCurves(curves=CURVES, note="Given by hand.", windows=(("0 B and more", "tuned"),))


@pytest.fixture(scope="module")
def shown() -> ShowResult:
    return show(load_topology("dgx-a100:2"), Collective.ALLREDUCE, tuned=TUNED, made=(("command", HOSTILE),))


@pytest.mark.parametrize(
    ("sizes", "times"), [((), ()), ((1, 2), (1.0,)), ((2, 1), (1.0, 1.0)), ((0,), (1.0,)), ((1,), (0.0,))]
)
def test_curves_that_make_no_sense_are_refused(sizes: tuple[int, ...], times: tuple[float, ...]) -> None:
    with pytest.raises(InternalError):
        Curve(name="x", sizes=sizes, times_us=times, kind=CurveKind.TUNED)


def test_the_tuned_curve_comes_first_and_is_the_widest() -> None:
    assert [curve.name for curve in sorted_curves(CURVES)][:2] == ["tuned", "candidate 0"]
    entries = legend_entries(CURVES)
    assert float(entries[0]["width"]) > float(entries[1]["width"])
    assert [entry["name"] for entry in entries][-2:] == ["bound", "rings"]


def test_charts_hold_every_point() -> None:
    for spec, field in ((time_chart(CURVES), "time_us"), (rate_chart(CURVES), "algbw")):
        rows = spec["data"]["values"]
        assert len(rows) == sum(len(curve.sizes) for curve in CURVES)
        assert all(row[field] > 0 for row in rows)
        json.dumps(spec, allow_nan=False)


@pytest.mark.parametrize(
    ("time_us", "text"), [(0.5, "0.5 µs"), (12.34, "12.3 µs"), (1500, "1.5 ms"), (2.5e6, "2.5 s")]
)
def test_times_have_three_figures(time_us: float, text: str) -> None:
    assert time_text(time_us) == text


@pytest.mark.parametrize("picture", [Picture.TIME, Picture.RATE])
def test_charts_as_files(shown: ShowResult, picture: Picture) -> None:
    svg = draw_svg(shown.view, picture)
    assert "var(--" not in svg
    assert "candidate 9" in svg
    assert draw_png(shown.view, picture).startswith(b"\x89PNG\r\n\x1a\n")


def test_no_chart_without_curves() -> None:
    result = show(load_topology("ring:4"), Collective.ALLGATHER)
    with pytest.raises(InputError, match="no times to draw"):
        draw_svg(result.view, Picture.TIME)
    page = draw_page(result.view)
    assert "No times were predicted" in page
    assert "vegaEmbed =" not in page
    assert len(page) < 200_000


def test_the_page_holds_it_all_and_asks_for_nothing(shown: ShowResult) -> None:
    page = draw_page(shown.view)
    assert len(page.encode()) < 2_000_000
    page = page.replace(chart_script(), "")
    for text in ("173.33", "171.43", "106.67", "15 of 16 shards must leave n0/gpu0", "SHA-256", "Verified:"):
        assert text in page
    assert "default-src 'none'" in page
    assert not re.search(r"<(?:script|img|iframe|link)[^>]+(?:src|href)=[\"'](?!data:|#)", page)


def test_hostile_text_stays_text(shown: ShowResult) -> None:
    curves = tuple(msgspec.structs.replace(curve, name=f"{HOSTILE} {curve.name}") for curve in CURVES)
    view = msgspec.structs.replace(
        shown.view, curves=curves, title=HOSTILE, program=((HOSTILE, HOSTILE),), verified=HOSTILE, curves_note=HOSTILE
    )
    page = draw_page(view).replace(chart_script(), "")
    assert "<img" not in page
    data = re.search(r'<script type="application/json" id="charts">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    assert json.loads(data[1])["time"]["data"]["values"][0]["name"].startswith(HOSTILE)


def test_the_same_page_every_time(shown: ShowResult) -> None:
    again = show(load_topology("dgx-a100:2"), Collective.ALLREDUCE, tuned=TUNED, made=(("command", HOSTILE),))
    assert draw_page(shown.view) == draw_page(again.view)


@pytest.mark.parametrize("module", ["vl_convert", "jinja2"])
def test_a_missing_extra_is_told(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match="not installed") as caught:
        require_extra()
    assert "pip install 'forestsyn[show]'" in str(caught.value)


def _luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(role: str, ground: str, theme: int) -> float:
    bright, dim = sorted((_luminance(COLOURS[role][theme]), _luminance(COLOURS[ground][theme])), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


@pytest.mark.parametrize("theme", [0, 1])
def test_colours_have_contrast(theme: int) -> None:
    for ground in ("paper", "panel", "host", "gpu", "nic", "switch", "cpu", "inside", "inside-host"):
        assert _contrast("ink", ground, theme) >= 4.5, ground
    for ground in ("paper", "panel"):
        assert _contrast("muted", ground, theme) >= 4.5
        assert _contrast("accent", ground, theme) >= 4.5
        assert _contrast("good", ground, theme) >= 4.5
        for role in COLOURS:
            if role.startswith("series") or role in ("hot", "peer", "network", "pcie"):
                assert _contrast(role, ground, theme) >= 3, (role, ground)
