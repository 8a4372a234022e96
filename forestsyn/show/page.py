"""One self-contained page: no request leaves it, and its policy forbids any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from forestsyn.show.charts import legend_entries, rate_chart, sorted_curves, time_chart, time_text
from forestsyn.show.loads import MOST_ROWS, load_rows, loads_picture, percent, rest_text, row_name
from forestsyn.show.palette import asset, variables
from forestsyn.show.render import chart_script, template_environment
from forestsyn.show.series import Curve
from forestsyn.show.shapes import clean, picture_svg
from forestsyn.show.topology import topology_picture
from forestsyn.show.trees import MOST_FORMS, tree_forms
from forestsyn.show.view import PhaseView, View
from forestsyn.units import format_bytes


def page_html(view: View) -> str:
    """The page's text. Raises InputError without the extra `show`."""
    from markupsafe import Markup

    environment = template_environment()
    template = environment.from_string(asset("page.html"))
    styles = asset("page.css").replace("LIGHT", variables(False)).replace("DARK", variables(True))
    charts = (
        [("time", time_chart(view.curves, False)), ("rate", rate_chart(view.curves, False))] if view.curves else []
    )
    picture = topology_picture(view.topology, view.cut)
    phases = [_phase(view, number, phase, Markup) for number, phase in enumerate(view.phases)]
    widest = max(tree["width"] for phase in phases for tree in phase["trees"])
    text = template.render(
        view=view,
        styles=Markup(styles + asset("picture.css")),
        script=Markup(asset("page.js")),
        bundle=Markup(chart_script()) if charts else "",
        charts=dict(charts),
        picture=Markup(picture_svg(picture, name="topology")),
        picture_width=picture.width,
        phases=phases,
        card_width=round(min(max(widest + 34, 300), 540)),
        legend=legend_entries(view.curves),
        curve_table=_curve_table(view.curves),
        sizes=_sizes(view.curves),
        size_text=format_bytes,
    )
    return clean(text) + "\n"


def _phase(view: View, number: int, phase: PhaseView, markup: Any) -> dict[str, Any]:
    rows = load_rows(view.topology, phase)
    forms = tree_forms(view.topology, phase, MOST_FORMS // len(view.phases))
    left = forms.count - len(forms.cards)
    return {
        "name": phase.name,
        "trees": [
            {
                "heading": card.heading,
                "text": card.text,
                "width": card.picture.width,
                "picture": markup(picture_svg(card.picture, name=f"tree-{number}-{place}")),
            }
            for place, card in enumerate(forms.cards)
        ],
        "forms": f"{phase.name}: {left:,} other forms of trees are not drawn." if left else "",
        "loads": markup(picture_svg(loads_picture(view.topology, phase), name=f"loads-{number}")),
        "rows": [(row_name(row), f"{float(row.bandwidth):g}", percent(row.share)) for row in rows[:MOST_ROWS]],
        "rest": rest_text(rows),
    }


def _sizes(curves: Sequence[Curve]) -> list[int]:
    return sorted({size for curve in curves for size in curve.sizes})


def _curve_table(curves: Sequence[Curve]) -> list[tuple[str, list[str]]]:
    """One row for each curve: its name, and its time at each size of any curve."""
    sizes = _sizes(curves)
    return [
        (curve.name, [time_text(times[size]) if size in times else "" for size in sizes])
        for curve in sorted_curves(curves)
        for times in [dict(zip(curve.sizes, curve.times_us, strict=True))]
    ]
