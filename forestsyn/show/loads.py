"""How long each link is busy, against the time of the bound."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import msgspec

from forestsyn.ir.topology import Topology
from forestsyn.show.shapes import Label, Line, Picture, Rect, Shape
from forestsyn.show.view import PhaseView

MOST_ROWS = 16
_NAME, _BAR, _ROW = 236.0, 190.0, 24.0


class LoadRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Links of one kind, bandwidth and load. share: busy time over the time of the bound; 1 is the bound."""

    name: str
    links: int
    bandwidth: Fraction
    share: Fraction


def load_rows(topology: Topology, phase: PhaseView) -> tuple[LoadRow, ...]:
    """The busiest first; links that differ in nothing but their names are one row."""
    first: dict[object, str] = {}
    counts: dict[object, int] = {}
    rows: dict[object, tuple[Fraction, Fraction]] = {}
    for link, share in zip(topology.links, phase.loads, strict=True):
        tail, head = topology.vertices[link.tail], topology.vertices[link.head]
        key = tail.kind, head.kind, tail.host == head.host, link.bandwidth, share
        first.setdefault(key, f"{tail.name} → {head.name}")
        counts[key] = counts.get(key, 0) + 1
        rows[key] = link.bandwidth, share
    found = [
        LoadRow(name=first[key], links=counts[key], bandwidth=bandwidth, share=share)
        for key, (bandwidth, share) in rows.items()
    ]
    return tuple(sorted(found, key=lambda row: -row.share))


def rest_text(rows: Sequence[LoadRow]) -> str:
    """What is said of the rows beyond `MOST_ROWS`, empty where there are none."""
    rest = rows[MOST_ROWS:]
    if not rest:
        return ""
    return f"and {sum(row.links for row in rest):,} links less busy, {percent(rest[0].share)} at most"


def row_name(row: LoadRow) -> str:
    """The name of its first link, and how many there are like it."""
    return row.name if row.links == 1 else f"{row.name} and {row.links - 1:,} alike"


def percent(share: Fraction) -> str:
    """``98.9 %``."""
    return f"{float(100 * share):.1f} %" if share else "0 %"


def loads_picture(topology: Topology, phase: PhaseView) -> Picture:
    """Bars, the busiest link on top, with a line at the bound."""
    rows = load_rows(topology, phase)
    shown, rest = rows[:MOST_ROWS], rest_text(rows)
    most = max([Fraction(1), *(row.share for row in rows)])
    shapes: list[Shape] = []
    y = 30.0
    for row in shown:
        style = "bar full" if row.share == rows[0].share else "bar"
        length = float(row.share / most) * _BAR
        tip = f"{row_name(row)}: {percent(row.share)} of the bound's time, {float(row.bandwidth):g} GB/s"
        name = row_name(row)
        shapes += [
            Label(x=_NAME - 10, y=y + 12, text=name, style="small", anchor="end", extent=_NAME - 12),
            Rect(x=_NAME, y=y, width=_BAR, height=16, style="track", radius=3),
        ]
        if length:
            shapes.append(Rect(x=_NAME, y=y, width=length, height=16, style=style, radius=3, tip=tip))
        text = f"{percent(row.share)}  of {float(row.bandwidth):g} GB/s"
        shapes.append(Label(x=_NAME + _BAR + 10, y=y + 12, text=text, style="small", anchor="start"))
        y += _ROW
    limit = _NAME + float(1 / most) * _BAR
    shapes += [
        Line(x1=limit, y1=24, x2=limit, y2=y, width=1.5, style="limit"),
        Label(x=limit, y=16, text="time of the bound", style="small", anchor="end"),
    ]
    if rest:
        shapes.append(Label(x=_NAME, y=y + 14, text=rest, style="small muted", anchor="start"))
        y += _ROW
    return Picture(
        width=_NAME + _BAR + 128,
        height=y + 8,
        shapes=tuple(shapes),
        title=f"Link loads, {phase.name}",
        description=f"The busiest: {row_name(rows[0])}, for {percent(rows[0].share)} of the bound's time.",
    )
