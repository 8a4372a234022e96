"""`forestsyn compile`: a verified program for a runtime."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import click

from forestsyn.cli.bound import bound_facts, title
from forestsyn.cli.forest import forest_facts
from forestsyn.cli.loading import load_timed
from forestsyn.cli.options import (
    byte_option,
    collective_options,
    json_option,
    parse_wish,
    topology_argument,
    tree_options,
)
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


@click.command("compile")
@topology_argument
@collective_options
@tree_options
@click.option(
    "--target",
    type=click.Choice(["msccl", "executor", "rccl", "mscclpp"]),
    default="executor",
    show_default=True,
    help="The runtime that will read the file.",
)
@click.option("--out-of-place", is_flag=True, help="For calls with different send and receive buffers.")
@click.option(
    "--protocol",
    type=click.Choice(["Simple", "LL", "LL128"]),
    default="Simple",
    show_default=True,
    help="How connections move bytes.",
)
@click.option(
    "--instances",
    type=click.IntRange(1, 32),
    default=1,
    show_default=True,
    help="Copies, each for a part of the data.",
)
@click.option(
    "--streams",
    type=click.IntRange(0, 32),
    default=0,
    show_default=True,
    help="Channels of the busiest connection, for large messages; 0 takes the fewest that fit.",
)
@click.option(
    "--nvls",
    type=click.Choice(["auto", "on", "off"]),
    default="auto",
    show_default=True,
    help="For mscclpp: switches that add up and replicate; auto takes them where their links take less time.",
)
@byte_option("--slice", "For mscclpp: what a threadblock passes on at a time, such as 256K; 0 means its whole share.")
@byte_option("--min-bytes", "Smallest message that the file offers itself for.")
@byte_option(
    "--max-bytes",
    "Largest such message; 0 means no limit, and for msccl, which has no such word, 1T, or 1G with scratch.",
)
@output_option("Write the program; - is standard output.")
@json_option
def compile_(
    topology_spec: str,
    collective: Collective,
    root: int | str | None,
    trees: Literal["auto", "exact"] | int,
    tolerance: Fraction,
    max_depth: int | None,
    max_peers: int | None,
    target: str,
    out_of_place: bool,
    protocol: str,
    instances: int,
    streams: int,
    nvls: Literal["auto", "on", "off"],
    slice: int,
    min_bytes: int,
    max_bytes: int,
    output: Path | None,
    as_json: bool,
) -> None:
    """Compile a collective on T to verified MSCCL XML, or to an execution plan of MSCCL++ (JSON).

    The text is read back and checked, and its quality printed. Nothing is written unless every check passes, and then
    the file is written whole or not at all. Without -o only the figures are printed; with -o - the program goes to
    standard output and the figures to standard error.

    A program takes the fewest threadblocks unless --instances and --streams give it more, which large messages need;
    `forestsyn tune` chooses for each size.

    \b
    Examples:
      forestsyn compile dgx-a100:2 -c allreduce -o allreduce.xml
      forestsyn compile dgx-a100:2 -c allreduce --streams 2 --min-bytes 256M -o large.xml
      forestsyn compile dgx-h100:2 -c allreduce --target mscclpp -o plan.json
      forestsyn compile dgx-h100:2 -c allreduce --target mscclpp --slice 256K --min-bytes 16M -o large.json
      forestsyn compile dgx-h100 -c allgather --target mscclpp --nvls on -o plan.json
      forestsyn compile mi250:2 -c allgather --target rccl --out-of-place -o allgather.xml
      forestsyn compile my-cluster.yaml -c allreduce --trees exact --min-bytes 1M --max-bytes 1G --json
    """
    from forestsyn.ir.program import Protocol
    from forestsyn.ir.target import ALL_TARGETS
    from forestsyn.lowering import Resources
    from forestsyn.pipeline.compile import compile_topology
    from forestsyn.pipeline.summary import compile_summary

    check_output(output, as_json)
    with progress() as observer:
        topology, loading = load_timed(topology_spec, observer)
        result = compile_topology(
            topology,
            collective,
            root,
            trees=trees,
            tolerance=tolerance,
            wish=parse_wish(max_depth, max_peers),
            target=ALL_TARGETS[target],
            out_of_place=out_of_place,
            protocol=Protocol(protocol),
            resources=Resources(instances=instances, streams=streams),
            nvls=nvls,
            slice_bytes=slice,
            minimum_bytes=min_bytes,
            maximum_bytes=max_bytes,
            observer=observer,
        )
    summary = compile_summary(result)
    summary["seconds"] = loading | summary["seconds"]
    summary["files"] = write_output(output, result.text)
    if as_json:
        print_json(summary)
    else:
        facts = [*bound_facts(summary), *forest_facts(summary), *_program_facts(summary), *file_facts(output)]
        print_facts(title(topology_spec, summary), facts, error_stream=output == STANDARD_OUTPUT)


def _program_facts(summary: dict[str, Any]) -> list[Row]:
    places = [name for name in ("in_place", "out_of_place") if summary[name]]
    blocks, steps = summary["threadblocks_max"], format_count(summary["steps_max"], "step")
    return [
        *_switch_facts(summary["switches"]),
        ("program", f"{summary['target']}, {summary['protocol']}, {' and '.join(places).replace('_', '-')}"),
        ("channels", f"{summary['channels']}, up to {format_count(blocks, 'threadblock')} a rank and {steps} each"),
        ("chunks", f"{summary['chunks']:,}; {summary['serves']}"),
        ("messages", summary["window"]),
        ("verified", "bound, trees, schedule, and the program as read back from its text"),
        ("time", ", ".join(f"{stage} {seconds:.2f} s" for stage, seconds in summary["seconds"].items())),
        *(("warning", warning) for warning in summary["warnings"]),
    ]


def _switch_facts(switches: dict[str, Any] | None) -> list[Row]:
    """Whether the plan uses switches that add up and replicate, and what the busiest link allows either way."""
    if switches is None or (switches["algbw_exact"] is None and not switches["used"]):
        return [] if switches is None else [("switches", f"not used: {switches['reason']}")]
    steps = "steps overlapping" if switches["overlapping"] else "step after step; --slice makes them overlap"
    through, along = switches["algbw_GBps"], switches["trees_algbw_GBps"]
    bound, limit = (float(Fraction(switches[f"time_over_{name}"])) for name in ("bound", "limit"))
    return [
        ("switches", f"{'used' if switches['used'] else 'not used'}: {switches['reason']}"),
        ("busiest links", f"{through:.2f} GB/s algbw through switches, {along:.2f} along trees, {steps}"),
        ("through them", f"{bound:.4f} of the time of the bound of trees, {limit:.4f} of that which no form beats"),
    ]
