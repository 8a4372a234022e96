"""`forestsyn show`: pictures, one page with everything, and tables for the terminal."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from forestsyn import __version__
from forestsyn.cli.bound import bound_facts, title
from forestsyn.cli.forest import forest_facts
from forestsyn.cli.loading import load_timed
from forestsyn.cli.options import collective_options, json_option, parse_wish, topology_argument, tree_options
from forestsyn.cli.output import print_facts, print_json, print_table
from forestsyn.cli.progress import progress
from forestsyn.errors import InputError
from forestsyn.ir.collective import Collective

if TYPE_CHECKING:
    from forestsyn.ir.topology import Topology
    from forestsyn.pipeline.show import ShowResult
    from forestsyn.pipeline.show_times import TunedCurves
    from forestsyn.pipeline.stages import Observer

_ENDINGS = (".svg", ".png", ".html")
_BAR = 30
#: Networks that are tuned unasked; larger ones take minutes.
_TUNED_RANKS = 16


@click.command()
@topology_argument
@collective_options
@tree_options
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write a picture: .svg or .png; or .html."
)
@click.option(
    "--picture",
    type=click.Choice(["topology", "trees", "loads", "time", "rate"]),
    default="topology",
    show_default=True,
    help="What the picture of -o shows.",
)
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="Write one page with everything.")
@click.option(
    "--times",
    type=click.Choice(["auto", "tune", "program", "none"]),
    default="auto",
    show_default=True,
    help="Times of the charts: of all that `tune` considers, of the forest program only, or none; "
    "auto tunes up to 16 ranks.",
)
@json_option
def show(
    topology_spec: str,
    collective: Collective,
    root: int | str | None,
    trees: Literal["auto", "exact"] | int,
    tolerance: Fraction,
    max_depth: int | None,
    max_peers: int | None,
    output: Path | None,
    picture: str,
    html: Path | None,
    times: str,
    as_json: bool,
) -> None:
    """Show T, its bottleneck, the trees and how they load the links.

    Without -o or --html: tables. The page holds the picture, the trees, the loads, charts of time over size, the
    program and how all of it was made; it is one file that needs no network. Its charts are tuned, which takes
    up to a minute the first time. PNG, charts and the page need `pip install 'forestsyn[show]'`.

    \b
    Examples:
      forestsyn show dgx-a100:2
      forestsyn show mi250:2 -c allreduce -o picture.svg
      forestsyn show my-cluster.yaml -o trees.png --picture trees
      forestsyn show dgx-a100:2 -c allreduce --html page.html
    """
    from forestsyn.pipeline.files import check_writable
    from forestsyn.pipeline.show import show as gather
    from forestsyn.pipeline.show import show_summary

    files = _checked_files(output, html)
    for path in files:
        check_writable(path)
    pages = [path for path in files if path.suffix.lower() == ".html"]
    _check_extra(files, picture)
    timed = times != "none" and bool(files) and (bool(pages) or picture in ("time", "rate"))
    made = (("command", _command(topology_spec, collective, root, trees, tolerance, max_depth, max_peers)),)
    with progress() as observer:
        topology, loading = load_timed(topology_spec)
        tune = timed and (times == "tune" or (times == "auto" and topology.rank_count <= _TUNED_RANKS))
        tuned = _tuned(topology, collective, root, observer) if tune else None
        result = gather(
            topology,
            collective,
            root,
            trees=trees,
            tolerance=tolerance,
            wish=parse_wish(max_depth, max_peers),
            program=bool(pages) or timed,
            times=timed,
            tuned=tuned,
            made=(*made, ("version", f"forestsyn {__version__}")),
            observer=observer,
        )
        _write(result, files, picture)
    summary = show_summary(result)
    summary["seconds"] = loading | summary["seconds"]
    summary["files"] = [str(path) for path in files]
    if as_json:
        print_json(summary)
    elif files:
        print_facts(
            title(topology_spec, summary), [*bound_facts(summary)[:1], ("files", ", ".join(summary["files"]))]
        )
    else:
        _print_tables(topology_spec, summary)


def _tuned(topology: Topology, collective: Collective, root: int | str | None, observer: Observer) -> TunedCurves:
    from forestsyn.pipeline.show_times import tuned_curves
    from forestsyn.pipeline.times import cache_file

    workers = os.cpu_count() or 1
    return tuned_curves(topology, collective, root, workers=workers, cache=cache_file(), observer=observer)


def _checked_files(output: Path | None, html: Path | None) -> list[Path]:
    if output is not None and output.suffix.lower() not in _ENDINGS:
        raise InputError(
            f"'{output.name}' does not end in .svg, .png or .html",
            where="-o",
            hint="the ending chooses the format; --html FILE writes the page",
        )
    if html is not None and html.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"'{html.name}' does not end in .html", where="--html", hint="name the page like page.html")
    return [path for path in (output, html) if path is not None]


def _check_extra(files: list[Path], picture: str) -> None:
    from forestsyn.show.render import require_extra

    if any(path.suffix.lower() != ".svg" for path in files) or (files and picture in ("time", "rate")):
        require_extra()


def _command(
    topology_spec: str,
    collective: Collective,
    root: int | str | None,
    trees: Literal["auto", "exact"] | int,
    tolerance: Fraction,
    max_depth: int | None,
    max_peers: int | None,
) -> str:
    """The command again, without the names of files."""
    import shlex

    words = ["forestsyn", "show", topology_spec, "-c", str(collective)]
    words += ["--root", str(root)] if root is not None else []
    words += ["--trees", str(trees)] if trees != "auto" else []
    words += ["--tolerance", str(tolerance)] if tolerance != Fraction(1, 50) else []
    words += ["--max-depth", str(max_depth)] if max_depth is not None else []
    words += ["--max-peers", str(max_peers)] if max_peers is not None else []
    return shlex.join(words)


def _write(result: ShowResult, files: list[Path], picture: str) -> None:
    from forestsyn.pipeline.files import write_file
    from forestsyn.pipeline.show import Picture, draw_page, draw_png, draw_svg

    for path in files:
        ending = path.suffix.lower()
        if ending == ".svg":
            write_file(path, draw_svg(result.view, Picture(picture)))
        elif ending == ".png":
            write_file(path, draw_png(result.view, Picture(picture)))
        else:
            write_file(path, draw_page(result.view))


def _print_tables(spec: str, summary: dict[str, Any]) -> None:
    print_facts(title(spec, summary), [*bound_facts(summary), *forest_facts(summary)])
    print()
    print_table(("devices of", "count", "what"), [_host_cells(row) for row in summary["hosts"]])
    print()
    print_table(("links", "where", "GB/s", "count"), [_link_cells(row) for row in summary["links"]])
    print()
    crossing = [
        (f"{link['from']} → {link['to']}", f"{float(Fraction(link['bandwidth'])):g}")
        for link in summary["cut"]["crossing"]
    ]
    shown = crossing[:12]
    if len(crossing) > len(shown):
        shown.append((f"and {len(crossing) - len(shown):,} more", ""))
    print_table(("links across the bottleneck cut", "GB/s"), shown)
    print()
    _print_loads(summary["loads"])


def _print_loads(loads: list[dict[str, Any]]) -> None:
    several = len({row["phase"] for row in loads}) > 1
    shown = [row for phase in dict.fromkeys(row["phase"] for row in loads) for row in _of(loads, phase)[:8]]
    print_table(
        ("busy, of the bound's time", "share", "GB/s", "links"),
        [
            (
                bar_text(row["share_of_bound"]),
                f"{100 * row['share_of_bound']:.1f} %",
                f"{float(Fraction(row['bandwidth'])):g}",
                f"{row['text']}{', ' + row['phase'].lower() if several else ''}",
            )
            for row in shown
        ],
    )


def _of(loads: list[dict[str, Any]], phase: str) -> list[dict[str, Any]]:
    return [row for row in loads if row["phase"] == phase]


def bar_text(share: float) -> str:
    """A bar of blocks; a full one is the time of the bound, and more than that is a sign at its end."""
    full, part = divmod(round(8 * _BAR * min(share, 1.0)), 8)
    text = "█" * full + (" ▏▎▍▌▋▊▉"[part] if part else "")
    return f"{text}{'▶' if share > 1 else ''}"


def _host_cells(row: dict[str, Any]) -> tuple[str, str, str]:
    name = row["host"] or "no host"
    if row["host"] and row["alike"] > 1:
        name = f"{name} and {row['alike'] - 1:,} alike"
    words = [f"{count:,} {kind if kind != 'gpu' else 'GPU'}" for kind, count in row["devices"].items()]
    return name, f"{row['alike']:,}" if row["host"] else "", ", ".join(words)


def _link_cells(row: dict[str, Any]) -> tuple[str, str, str, str]:
    where = "within a host" if row["within_host"] else "outside hosts"
    return f"{row['from']} → {row['to']}", where, f"{float(Fraction(row['bandwidth'])):g}", f"{row['count']:,}"
