"""Topology → everything that is shown of it: pictures, the page, and the summary for terminals."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from fractions import Fraction
from typing import Any

import msgspec

from forestsyn.core import Wish
from forestsyn.errors import InputError, UnsupportedError
from forestsyn.ir.collective import Collective
from forestsyn.ir.forest import Direction
from forestsyn.ir.program import Program
from forestsyn.ir.topology import Topology
from forestsyn.pipeline.compile import compile_topology
from forestsyn.pipeline.names import cut_sentence, cut_vertices
from forestsyn.pipeline.results import CompileResult, ForestResult
from forestsyn.pipeline.show_facts import headline_figures, host_rows, link_rows, program_rows, told_sentences
from forestsyn.pipeline.show_times import TunedCurves, bound_curves, forest_curve
from forestsyn.pipeline.stages import Observer, Root, Stages
from forestsyn.pipeline.summary import compile_summary, forest_summary, topology_hash
from forestsyn.pipeline.synthesize import TOLERANCE, Trees, synthesize
from forestsyn.show.lines import crossing_links
from forestsyn.show.loads import load_rows, row_name
from forestsyn.show.series import Curve
from forestsyn.show.topology import smaller_side
from forestsyn.show.view import CutView, PhaseView, View
from forestsyn.verify import link_loads

#: Programs of more ranks take minutes; `compile` makes them on request.
MOST_PROGRAM_RANKS = 64

_NO_PROGRAM = (
    f"No program was made: the network has more than {MOST_PROGRAM_RANKS} ranks, for which that takes minutes. "
    "The command forestsyn compile makes it."
)
_NO_TIMES = "No times were predicted: none were asked for, or there is no program to simulate."


class Picture(StrEnum):
    """What a file without a page shows."""

    TOPOLOGY = "topology"
    TREES = "trees"
    LOADS = "loads"
    TIME = "time"
    RATE = "rate"


class ShowResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, eq=False):
    """forest: verified trees. program: None where none was asked for or none can be made. view: for the drawers."""

    forest: ForestResult
    program: CompileResult | None
    view: View


def show(
    topology: Topology,
    collective: Collective,
    root: Root = None,
    *,
    trees: Trees = "auto",
    tolerance: Fraction = TOLERANCE,
    wish: Wish | None = None,
    program: bool = False,
    times: bool = False,
    tuned: TunedCurves | None = None,
    made: Sequence[tuple[str, str]] = (),
    observer: Observer | None = None,
) -> ShowResult:
    """Gather what is shown.

    program: compile one too, up to `MOST_PROGRAM_RANKS`. times: simulate it. tuned: what the tuner found; then
    nothing is simulated here. made: rows that say how it was made; the hash of the topology is added. Raises as
    `synthesize`.
    """
    compiled, forest, note = None, None, "No program was asked for."
    if program and topology.rank_count > MOST_PROGRAM_RANKS:
        note = _NO_PROGRAM
    elif program:
        try:
            compiled = compile_topology(
                topology, collective, root, trees=trees, tolerance=tolerance, wish=wish, observer=observer
            )
            forest, note = compiled.forest, ""
        except UnsupportedError as error:
            note = f"No program: {error.message}."
    if forest is None:
        forest = synthesize(
            topology, collective, root, trees=trees, tolerance=tolerance, wish=wish, observer=observer
        )
    stages = Stages(observer)
    drawn, curves_note = _curves(forest, compiled if times else None, tuned)
    stages.finish("times", drawn)
    windows = tuned.windows if tuned else ()
    view = _view(forest, compiled, note, drawn, curves_note, windows, made)
    return ShowResult(forest=forest, program=compiled, view=view)


def draw_svg(view: View, picture: Picture) -> str:
    """The text of an SVG file. Raises InputError where there is nothing to draw, or the extra `show` is missing."""
    from forestsyn.show.charts import rate_chart, time_chart
    from forestsyn.show.loads import loads_picture
    from forestsyn.show.palette import picture_styles
    from forestsyn.show.render import chart_svg
    from forestsyn.show.shapes import picture_svg, stacked
    from forestsyn.show.topology import topology_picture
    from forestsyn.show.trees import trees_picture

    if picture in (Picture.TIME, Picture.RATE):
        if not view.curves:
            raise InputError("there are no times to draw", where="--picture", hint=f"{view.curves_note}")
        return chart_svg(time_chart(view.curves) if picture is Picture.TIME else rate_chart(view.curves))
    if picture is Picture.TOPOLOGY:
        drawing = topology_picture(view.topology, view.cut)
    elif picture is Picture.TREES:
        drawing = trees_picture(view.topology, view.phases)
    else:
        drawing = stacked([(phase.name, loads_picture(view.topology, phase)) for phase in view.phases])
    return picture_svg(drawing, styles=picture_styles())


def draw_png(view: View, picture: Picture) -> bytes:
    """The bytes of a PNG file. Raises as `draw_svg`."""
    from forestsyn.show.render import svg_png

    return svg_png(draw_svg(view, picture))


def draw_page(view: View) -> str:
    """The text of the page. Raises InputError when the extra `show` is missing."""
    from forestsyn.show.page import page_html

    return page_html(view)


def show_summary(result: ShowResult) -> dict[str, Any]:
    """What `forestsyn show --json` reports: the forest's (or program's) summary, hosts, links, the cut and loads."""
    view, topology = result.view, result.view.topology
    summary = compile_summary(result.program) if result.program else forest_summary(result.forest)
    crossing = crossing_links(topology, view.cut)
    names = [vertex.name for vertex in topology.vertices]
    return {
        **summary,
        "hosts": host_rows(topology),
        "links": link_rows(topology),
        "cut": {
            "text": view.cut.text,
            "inside": [names[vertex] for vertex in sorted(smaller_side(topology, view.cut))],
            "crossing": [
                {"from": names[link.tail], "to": names[link.head], "bandwidth": str(link.bandwidth)}
                for link in crossing
            ],
        },
        "loads": [
            {
                "phase": phase.name,
                "links": row.links,
                "first": row.name,
                "text": row_name(row),
                "bandwidth": str(row.bandwidth),
                "share_of_bound_exact": str(row.share),
                "share_of_bound": float(row.share),
            }
            for phase in view.phases
            for row in load_rows(topology, phase)
        ],
        "curves": msgspec.to_builtins(view.curves),
    }


def _curves(
    forest: ForestResult, program: CompileResult | None, tuned: TunedCurves | None
) -> tuple[tuple[Curve, ...], str]:
    if tuned:
        sizes = sorted({size for curve in tuned.curves for size in curve.sizes})
        kinds = {curve.kind for curve in tuned.curves}
        more = tuple(curve for curve in bound_curves(forest.bound, sizes) if curve.kind not in kinds)
        return (*tuned.curves, *more), tuned.note
    if program is None or not isinstance(program.program, Program):
        return (), _NO_TIMES
    curve, profile = forest_curve(program.program, forest.bound.topology)
    return (curve, *bound_curves(forest.bound, curve.sizes)), (
        f"Simulated with the costs of profile {profile}, for this one program. Bound and rings count bandwidth only, "
        "no latency: nothing gets below them."
    )


def _view(
    forest: ForestResult,
    program: CompileResult | None,
    note: str,
    curves: tuple[Curve, ...],
    curves_note: str,
    windows: tuple[tuple[str, str], ...],
    made: Sequence[tuple[str, str]],
) -> View:
    bound = forest.bound
    topology, optimum = bound.topology, bound.bottleneck
    root = "" if bound.root is None else f" with root {topology.rank_name(bound.root)}"
    checked = "bound, trees, schedule, and the program as read back from its text" if program else "bound and trees"
    return View(
        title=f"{topology.name}: {bound.collective}{root} over {topology.rank_count:,} ranks",
        topology=topology,
        cut=CutView(
            inside=frozenset(cut_vertices(topology, optimum.cut.inside)),
            direction=optimum.direction,
            text=cut_sentence(topology, optimum),
            bandwidth=optimum.cut.bandwidth,
        ),
        figures=headline_figures(forest, program),
        sentences=told_sentences(forest),
        phases=_phases(forest),
        load_over_bound=forest.load_over_bound,
        curves=curves,
        curves_note=curves_note,
        windows=windows,
        program=program_rows(program) if program else (),
        program_note=note,
        verified=f"Verified: {checked}, each by a checker that shares no code with what made it.",
        made=(*made, ("topology, SHA-256", topology_hash(topology)), ("rates", topology.rates)),
    )


def _phases(forest: ForestResult) -> tuple[PhaseView, ...]:
    views = []
    for optimum, trees in zip(forest.bound.optima, forest.forests, strict=True):
        least = trees.chunk_count / optimum.algbw
        loads = link_loads(forest.bound.topology, trees)
        views.append(
            PhaseView(
                name="Out from the roots" if trees.direction is Direction.OUT else "In to the roots",
                forest=trees,
                loads=tuple(
                    load / link.bandwidth / least
                    for load, link in zip(loads, forest.bound.topology.links, strict=True)
                ),
            )
        )
    return tuple(views)
