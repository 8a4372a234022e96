"""`forestsyn forest`: the trees and their statistics, without a program."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import click

from forestsyn.cli.bound import bandwidth_text, bound_facts, title
from forestsyn.cli.loading import load_timed
from forestsyn.cli.options import collective_options, json_option, parse_wish, topology_argument, tree_options
from forestsyn.cli.output import Row, print_facts, print_json
from forestsyn.cli.progress import progress
from forestsyn.ir.collective import Collective


@click.command()
@topology_argument
@collective_options
@tree_options
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write the trees as JSON.")
@json_option
def forest(
    topology_spec: str,
    collective: Collective,
    root: int | None,
    trees: Literal["auto", "exact"] | int,
    tolerance: Fraction,
    max_depth: int | None,
    max_peers: int | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Pack spanning trees on T and print how good they are.

    The trees are verified: each spans all ranks, and together they load no link beyond its bandwidth. With -o every
    tree, its physical routes and the load of every link are written.

    \b
    Examples:
      forestsyn forest dgx-a100:2
      forestsyn forest mi250:2 --trees exact --json
      forestsyn forest my-cluster.yaml -c reduce-scatter --tolerance 5% -o forest.json
    """
    from forestsyn.pipeline.document import forest_text
    from forestsyn.pipeline.files import check_writable, write_file
    from forestsyn.pipeline.summary import forest_summary
    from forestsyn.pipeline.synthesize import synthesize

    if output is not None:
        check_writable(output)
    with progress() as observer:
        topology, loading = load_timed(topology_spec)
        wish = parse_wish(max_depth, max_peers)
        result = synthesize(
            topology, collective, root, trees=trees, tolerance=tolerance, wish=wish, observer=observer
        )
    summary = forest_summary(result)
    summary["seconds"] = loading | summary["seconds"]
    if output is not None:
        write_file(output, forest_text(result))
        summary["files"] = [str(output)]
    if as_json:
        print_json(summary)
    else:
        print_facts(title(topology_spec, summary), [*bound_facts(summary), *forest_facts(summary)])


def forest_facts(summary: dict[str, Any]) -> list[Row]:
    """What the trees reach, for people."""
    fewest, most = summary["chunks_per_root"]
    per_root = str(most) if fewest == most else f"{fewest} to {most}"
    return [
        ("reached", bandwidth_text(summary["reached"])),
        ("load / bound", f"{summary['load_over_bound_exact']} ({summary['load_over_bound']:.4f})"),
        ("trees", f"{per_root} per root, {summary['tree_count']} distinct; {summary['choice']}"),
        ("depth", f"{summary['depth']} transfers, at most {summary['peers_per_rank_max']} peers per rank"),
    ]
