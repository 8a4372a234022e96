"""Vega-Lite specifications of the charts of time and throughput over message size.

Colours are the page's CSS variables, which SVG takes like any colour; `palette.literal` replaces them for a file of its
own. Both charts use the same names, order and colours, so that one legend reads for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from forestsyn.show.series import Curve, CurveKind
from forestsyn.units import format_bytes

Spec = dict[str, Any]

_ORDER = (CurveKind.TUNED, CurveKind.CANDIDATE, CurveKind.BOUND, CurveKind.RING)
_FONT = "DejaVu Sans, Liberation Sans, Arial, sans-serif"
_SIZES = "pow(2, round(log(datum.value) / log(2)))"
_SIZE_LABEL = (
    f"{_SIZES} < 1024 ? {_SIZES} + ' B' : {_SIZES} < 1048576 ? {_SIZES} / 1024 + ' KiB' : "
    f"{_SIZES} < 1073741824 ? {_SIZES} / 1048576 + ' MiB' : {_SIZES} / 1073741824 + ' GiB'"
)
_TIME_LABEL = "datum.value < 1000 ? datum.value + ' µs' : datum.value < 1e6 ? datum.value / 1000 + ' ms' : datum.value / 1e6 + ' s'"


def time_chart(curves: Sequence[Curve]) -> Spec:
    """Time over message size, both logarithmic."""
    return _chart(curves, "time_us", "time", {"type": "log"}, _TIME_LABEL, "Time over message size")


def rate_chart(curves: Sequence[Curve]) -> Spec:
    """algbw over message size, the size logarithmic."""
    scale = {"type": "linear", "zero": True}
    return _chart(curves, "algbw", "algbw, GB/s", scale, None, "Throughput over message size")


def sorted_curves(curves: Sequence[Curve]) -> tuple[Curve, ...]:
    """Tuned first, then candidates in the order given, then bound and rings."""
    return tuple(sorted(curves, key=lambda curve: _ORDER.index(curve.kind)))


def time_text(time_us: float) -> str:
    """Three figures and a unit."""
    for limit, divisor, unit in ((1e3, 1.0, "µs"), (1e6, 1e3, "ms")):
        if time_us < limit:
            return f"{time_us / divisor:.3g} {unit}"
    return f"{time_us / 1e6:.3g} s"


def _chart(
    curves: Sequence[Curve], field: str, title: str, scale: Spec, label: str | None, description: str
) -> Spec:
    ordered = sorted_curves(curves)
    names = [curve.name for curve in ordered]
    size_axis = {"labelExpr": _SIZE_LABEL, "values": _ticks(ordered), "labelOverlap": True, "grid": False}
    value_axis: Spec = {"tickCount": 6, "labelOverlap": True}
    if label:
        value_axis["labelExpr"] = label
    series = {
        "field": "name",
        "type": "nominal",
        "title": None,
        "sort": names,
        "scale": {"domain": names, "range": _colours(ordered)},
        "legend": {"orient": "bottom", "columns": 2, "labelLimit": 320, "symbolType": "stroke", "symbolStrokeWidth": 3},
    }
    x = {"field": "size", "type": "quantitative", "scale": {"type": "log", "base": 2}, "title": "message size"}
    y = {"field": field, "type": "quantitative", "scale": scale, "title": title, "axis": value_axis}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "description": description,
        "width": "container",
        "height": 320,
        "autosize": {"type": "fit", "contains": "padding"},
        "data": {"values": _rows(ordered)},
        "encoding": {"x": {**x, "axis": size_axis}},
        "layer": [_lines(ordered, y, series), *_pointer(ordered, field)],
        "config": _config(),
    }


def _lines(ordered: Sequence[Curve], y: Spec, series: Spec) -> Spec:
    names = [curve.name for curve in ordered]
    dashes = [[6, 4] if curve.kind is CurveKind.BOUND else [2, 3] if curve.kind is CurveKind.RING else [1, 0] for curve in ordered]
    widths = [3.5 if curve.kind is CurveKind.TUNED else 1.6 for curve in ordered]
    return {
        "mark": {"type": "line", "strokeCap": "round", "interpolate": "linear", "clip": True},
        "encoding": {
            "y": y,
            "color": series,
            "strokeDash": {"field": "name", "type": "nominal", "scale": {"domain": names, "range": dashes}, "legend": None},
            "strokeWidth": {"field": "name", "type": "nominal", "scale": {"domain": names, "range": widths}, "legend": None},
            "order": {"field": "size", "type": "quantitative"},
        },
    }


def _pointer(ordered: Sequence[Curve], field: str) -> list[Spec]:
    """A rule that follows the pointer and tells every curve at that size."""
    texts = "time_text" if field == "time_us" else "rate_text"
    pivot = [{"pivot": "name", "value": texts, "groupby": ["size", "size_text"], "op": "max"}]
    tooltip = [{"field": "size_text", "type": "nominal", "title": "message size"}]
    tooltip += [{"field": _escaped(curve.name), "type": "nominal", "title": curve.name} for curve in ordered]
    rule: Spec = {
        "transform": pivot,
        "mark": {"type": "rule", "stroke": "var(--muted)", "strokeWidth": 1},
        "params": [
            {
                "name": "pointed",
                "select": {"type": "point", "fields": ["size"], "nearest": True, "on": "pointerover", "clear": "pointerout"},
            }
        ],
        "encoding": {
            "tooltip": tooltip,
            "opacity": {"condition": {"param": "pointed", "empty": False, "value": 0.8}, "value": 0},
        },
    }
    return [rule]


def _escaped(name: str) -> str:
    """A field whose name may hold dots and brackets."""
    return "".join(f"\\{character}" if character in "\\.[]'\"" else character for character in name)


def _rows(ordered: Sequence[Curve]) -> list[Spec]:
    return [
        {
            "name": curve.name,
            "size": size,
            "size_text": format_bytes(size),
            "time_us": float(f"{time_us:.6g}"),
            "time_text": time_text(time_us),
            "algbw": float(f"{size / time_us / 1e3:.6g}"),
            "rate_text": f"{size / time_us / 1e3:.4g} GB/s",
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
