"""Vega-Lite specifications of the charts of time and throughput over message size.

Colours are the page's CSS variables, which SVG takes like any colour; `palette.literal` replaces them for a file of
its own. Both charts use the same names, order and colours, so that one legend reads for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import floor, log10
from typing import Any

from forestsyn.show.series import Curve, CurveKind
from forestsyn.units import format_bytes

Spec = dict[str, Any]

_ORDER = (CurveKind.TUNED, CurveKind.CANDIDATE, CurveKind.BOUND, CurveKind.RING)
_DASHES = {CurveKind.BOUND: [6, 4], CurveKind.RING: [2, 4]}
_WIDTHS = {CurveKind.TUNED: 3.5}
_THIN = 1.8
_FONT = "DejaVu Sans, Liberation Sans, Arial, sans-serif"
_SIZES = "pow(2, round(log(datum.value) / log(2)))"
_SIZE_LABEL = (
    f"{_SIZES} < 1024 ? {_SIZES} + ' B' : {_SIZES} < 1048576 ? {_SIZES} / 1024 + ' KiB' : "
    f"{_SIZES} < 1073741824 ? {_SIZES} / 1048576 + ' MiB' : {_SIZES} / 1073741824 + ' GiB'"
)
_TIME_LABEL = (
    "datum.value < 1000 ? datum.value + ' µs' : "
    "datum.value < 1e6 ? datum.value / 1000 + ' ms' : datum.value / 1e6 + ' s'"
)


def time_chart(curves: Sequence[Curve], legend: bool = True) -> Spec:
    """Time over message size, both logarithmic; bounds are cut off well below the least predicted time."""
    scale = {"type": "log", "domainMin": _least_time(curves), "nice": False}
    return _chart(curves, "time_us", "time", scale, _TIME_LABEL, legend)


def rate_chart(curves: Sequence[Curve], legend: bool = True) -> Spec:
    """algbw over message size, the size logarithmic."""
    return _chart(curves, "algbw", "algbw, GB/s", {"type": "linear", "zero": True}, None, legend)


def legend_entries(curves: Sequence[Curve]) -> list[dict[str, str]]:
    """Name, colour, width and dashes of each curve, for a legend of the page's own."""
    ordered = sorted_curves(curves)
    return [
        {
            "name": curve.name,
            "colour": colour,
            "width": str(_WIDTHS.get(curve.kind, _THIN)),
            "dash": " ".join(map(str, _DASHES.get(curve.kind, [1, 0]))),
        }
        for curve, colour in zip(ordered, _colours(ordered), strict=True)
    ]


def sorted_curves(curves: Sequence[Curve]) -> tuple[Curve, ...]:
    """Tuned first, then candidates in the order given, then bound and rings."""
    return tuple(sorted(curves, key=lambda curve: _ORDER.index(curve.kind)))


def time_text(time_us: float) -> str:
    """Three figures and a unit."""
    for limit, divisor, unit in ((1e3, 1.0, "µs"), (1e6, 1e3, "ms")):
        if time_us < limit:
            return f"{time_us / divisor:.3g} {unit}"
    return f"{time_us / 1e6:.3g} s"


def _least_time(curves: Sequence[Curve]) -> float:
    """A power of ten at least three times below every predicted time, or below all where none is predicted."""
    straight = (CurveKind.BOUND, CurveKind.RING)
    predicted = [curve.times_us[0] for curve in curves if curve.kind not in straight]
    least = min(predicted) / 3 if predicted else min(curve.times_us[0] for curve in curves)
    return float(10.0 ** floor(log10(least)))


def _chart(curves: Sequence[Curve], field: str, title: str, scale: Spec, label: str | None, legend: bool) -> Spec:
    ordered = sorted_curves(curves)
    size_axis = {"labelExpr": _SIZE_LABEL, "values": _ticks(ordered), "labelOverlap": True, "grid": False}
    value_axis: Spec = {"tickCount": 6, "labelOverlap": True}
    if label:
        value_axis |= {"labelExpr": label, "values": _decades(ordered)}
    span = [min(curve.sizes[0] for curve in ordered), max(curve.sizes[-1] for curve in ordered)]
    size_scale = {"type": "log", "base": 2, "domain": span, "nice": False}
    x = {"field": "size", "type": "quantitative", "scale": size_scale, "title": "message size", "axis": size_axis}
    y = {"field": field, "type": "quantitative", "scale": scale, "title": title, "axis": value_axis}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "description": f"{title} over message size",
        "width": "container",
        "height": 320,
        "autosize": {"type": "fit", "contains": "padding"},
        "data": {"values": _rows(ordered)},
        "encoding": {"x": x},
        "layer": [_lines(ordered, y, legend), _pointer(ordered, x, field)],
        "config": _config(),
    }


def _lines(ordered: Sequence[Curve], y: Spec, legend: bool) -> Spec:
    names = [curve.name for curve in ordered]
    look = {"orient": "bottom", "columns": 3, "labelLimit": 320, "symbolType": "stroke", "symbolSize": 400}

    def by_name(values: Sequence[object]) -> Spec:
        scale = {"domain": names, "range": list(values)}
        return {
            "field": "name",
            "type": "ordinal",
            "title": None,
            "sort": names,
            "scale": scale,
            "legend": look if legend else None,
        }

    return {
        "mark": {"type": "line", "strokeCap": "round", "clip": True},
        "encoding": {
            "y": y,
            "color": by_name(_colours(ordered)),
            "strokeDash": by_name([_DASHES.get(curve.kind, [1, 0]) for curve in ordered]),
            "strokeWidth": by_name([_WIDTHS.get(curve.kind, _THIN) for curve in ordered]),
            "order": {"field": "size", "type": "quantitative"},
        },
    }


def _pointer(ordered: Sequence[Curve], x: Spec, field: str) -> Spec:
    """A band around each size, seen under the pointer only, that tells every curve there."""
    tooltip = [{"field": "size_text", "type": "nominal", "title": "message size"}]
    tooltip += [
        {"field": f"curve{number}", "type": "nominal", "title": curve.name} for number, curve in enumerate(ordered)
    ]
    pointed = {"type": "point", "fields": ["size"], "on": "pointerover", "clear": "pointerout"}
    return {
        "data": {"values": _pointed_rows(ordered, field)},
        "mark": {"type": "rect", "fill": "var(--muted)", "cursor": "crosshair"},
        "params": [{"name": "pointed", "select": pointed}],
        "encoding": {
            "x": {**x, "field": "low"},
            "x2": {"field": "high"},
            "tooltip": tooltip,
            "opacity": {"condition": {"param": "pointed", "empty": False, "value": 0.18}, "value": 0},
        },
    }


def _pointed_rows(ordered: Sequence[Curve], field: str) -> list[Spec]:
    """For each size what every curve is there; empty where a curve has no value."""
    rows: dict[int, Spec] = {}
    for number, curve in enumerate(ordered):
        for size, time_us in zip(curve.sizes, curve.times_us, strict=True):
            row = rows.setdefault(size, {"size": size, "size_text": format_bytes(size)})
            text = time_text(time_us) if field == "time_us" else f"{size / time_us / 1e3:.4g} GB/s"
            row[f"curve{number}"] = text
    nothing = {f"curve{number}": "" for number in range(len(ordered))}
    sizes = sorted(rows)
    middles = [round((one * other) ** 0.5) for one, other in pairwise(sizes)]
    return [
        nothing | rows[size] | {"low": low, "high": high}
        for size, low, high in zip(sizes, [sizes[0], *middles], [*middles, sizes[-1]], strict=True)
    ]


def _rows(ordered: Sequence[Curve]) -> list[Spec]:
    return [
        {
            "name": curve.name,
            "size": size,
            "time_us": float(f"{time_us:.6g}"),
            "algbw": float(f"{size / time_us / 1e3:.6g}"),
        }
        for curve in ordered
        for size, time_us in zip(curve.sizes, curve.times_us, strict=True)
    ]


def _ticks(ordered: Sequence[Curve]) -> list[int]:
    """Powers of two, every fifth or so, over the range of the curves."""
    low = min(curve.sizes[0] for curve in ordered).bit_length() - 1
    high = max(curve.sizes[-1] for curve in ordered).bit_length()
    step = 2 if high - low <= 12 else 4 if high - low <= 30 else 5
    return [1 << power for power in range(low + (-low) % step, high + 1, step)]


def _decades(ordered: Sequence[Curve]) -> list[float]:
    """Powers of ten over the range of times that is drawn."""
    low = round(log10(_least_time(ordered)))
    high = max(time for curve in ordered for time in curve.times_us)
    return [float(10**power) if power >= 0 else 10.0**power for power in range(low, floor(log10(high)) + 1)]


def _colours(ordered: Sequence[Curve]) -> list[str]:
    colours, number = [], 0
    for curve in ordered:
        if curve.kind is CurveKind.CANDIDATE:
            colours.append(f"var(--series-{number % 8 + 1})")
            number += 1
        else:
            colours.append(f"var(--series-{curve.kind})")
    return colours


def _config() -> Spec:
    axis = {
        "labelColor": "var(--ink)",
        "titleColor": "var(--ink)",
        "domainColor": "var(--muted)",
        "tickColor": "var(--muted)",
        "gridColor": "var(--edge)",
        "labelFont": _FONT,
        "titleFont": _FONT,
        "labelFontSize": 11,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
    }
    legend = {"labelColor": "var(--ink)", "labelFont": _FONT, "labelFontSize": 12, "padding": 10}
    return {"background": None, "axis": axis, "legend": legend, "view": {"stroke": None}}
