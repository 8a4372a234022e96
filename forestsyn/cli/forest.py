"""`forestsyn forest`: the trees and their statistics, without a program."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import click

from forestsyn.cli.bound import bandwidth_text, bound_facts, title
from forestsyn.cli.loading import load_timed
from forestsyn.cli.options import collective_options, json_option, parse_wish, topology_argument, tree_options
from forestsyn.cli.output import (
    STANDARD_OUTPUT,
    Row,
    check_output,
    file_facts,
    output_option,
    print_facts,
    print_json,
    write_output,
)
from forestsyn.cli.progress import progress
from forestsyn.ir.collective import Collective
from forestsyn.units import format_count


@click.command()
@topology_argument
@collective_options
@tree_options
@output_option("Write the trees as JSON; - is standard output.")
@json_option
def forest(
    topology_spec: str,
    collective: Collective,
    root: int | str | None,
    trees: Literal["auto", "exact"] | int,
    tolerance: Fraction,
    max_depth: int | None,
    max_peers: int | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Pack spanning trees on T and print how good they are.

    The trees are verified: each spans all ranks, and together they load no link beyond its bandwidth. With -o every
    tree, its physical routes and the load of every link are written; with -o - they go to standard output and the
    figures to standard error.

    \b
    Examples:
      forestsyn forest dgx-a100:2
      forestsyn forest mi250:2 --trees exact --json
      forestsyn forest my-cluster.yaml -c reduce-scatter --tolerance 5% -o forest.json
    """
    from forestsyn.pipeline.document import forest_text
    from forestsyn.pipeline.summary import forest_summary
    from forestsyn.pipeline.synthesize import synthesize

    check_output(output, as_json)
    with progress() as observer:
        topology, loading = load_timed(topology_spec, observer)
        wish = parse_wish(max_depth, max_peers)
        result = synthesize(
            topology, collective, root, trees=trees, tolerance=tolerance, wish=wish, observer=observer
        )
    summary = forest_summary(result)
    summary["seconds"] = loading | summary["seconds"]
    if output is not None:
        summary["files"] = write_output(output, forest_text(result))
    if as_json:
        print_json(summary)
    else:
        facts = [*bound_facts(summary), *forest_facts(summary), *file_facts(output)]
        print_facts(title(topology_spec, summary), facts, error_stream=output == STANDARD_OUTPUT)


def forest_facts(summary: dict[str, Any]) -> list[Row]:
    """What the trees reach, for people."""
    fewest, most = summary["chunks_per_root"]
    peers = format_count(summary["peers_per_rank_max"], "peer")
    per_root = str(most) if fewest == most else f"{fewest} to {most}"
    return [
        ("reached", bandwidth_text(summary["reached"])),
        ("load / bound", f"{summary['load_over_bound_exact']} ({summary['load_over_bound']:.4f})"),
        ("trees", f"{per_root} per root, {summary['tree_count']} distinct; {summary['choice']}"),
        ("depth", f"{format_count(summary['depth'], 'transfer')}, at most {peers} per rank"),
    ]
