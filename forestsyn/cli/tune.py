"""`forestsyn tune`: the fastest program for every message size."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from forestsyn.cli.loading import load_timed
from forestsyn.cli.options import collective_options, json_option, parse_byte_range, profile_option, topology_argument
from forestsyn.cli.output import STANDARD_OUTPUT, print_facts, print_json, print_table
from forestsyn.cli.progress import progress
from forestsyn.errors import InputError
from forestsyn.ir.collective import Collective
from forestsyn.units import format_bytes


@click.command("tune")
@topology_argument
@collective_options
@click.option(
    "--target",
    type=click.Choice(["msccl", "executor", "rccl"]),
    default="executor",
    show_default=True,
    help="The runtime that will read the files.",
)
@click.option("--out-of-place", is_flag=True, help="For calls with different send and receive buffers.")
@profile_option
@click.option("--sizes", metavar="FROM:TO", default="1K:16G", show_default=True, help="Message sizes to tune for.")
@click.option("--workers", type=click.IntRange(1, 64), help="Processes that simulate.  [default: one per core]")
@click.option("--no-cache", is_flag=True, help="Neither use nor keep simulated times of other runs.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write the programs there.",
)
@json_option
def tune(
    topology_spec: str,
    collective: Collective,
    root: int | str | None,
    target: str,
    out_of_place: bool,
    profile_spec: str | None,
    sizes: str,
    workers: int | None,
    no_cache: bool,
    output: Path | None,
    as_json: bool,
) -> None:
    """Choose the fastest program for every message size on T, by simulation.

    Candidates are forests with few, many and shallow trees, rings, double binary trees, recursive, all-pairs and
    hierarchical algorithms, in every protocol and with more or fewer threadblocks. Each chosen program is verified.
    Where NCCL's own ring or tree is predicted to be fastest, the sizes are left to it.

    \b
    Examples:
      forestsyn tune dgx-a100:2 -c allreduce -o tuned/
      forestsyn tune mi300x -c allgather --target rccl --sizes 64K:1G -o tuned/
      forestsyn tune my-cluster.yaml -c allreduce --profile my-profile.yaml --json
    """
    from forestsyn.frontend.profiles import choose_profile
    from forestsyn.ir.target import TARGETS
    from forestsyn.pipeline.times import cache_file
    from forestsyn.pipeline.tune import tune as tune_topology
    from forestsyn.pipeline.tune import tuned_sizes
    from forestsyn.pipeline.tune_files import tune_summary, write_tuning

    if output == STANDARD_OUTPUT:
        raise InputError("several programs do not fit standard output", where="-o", hint="name a directory")
    wanted = tuned_sizes(*parse_byte_range(sizes, "--sizes"))
    with progress() as observer:
        topology, loading = load_timed(topology_spec, observer)
        profile = choose_profile(topology, profile_spec)
        result = tune_topology(
            topology,
            collective,
            root,
            target=TARGETS[target],
            profile=profile,
            sizes=wanted,
            out_of_place=out_of_place,
            workers=workers or os.cpu_count() or 1,
            cache=None if no_cache else cache_file(),
            observer=observer,
        )
    summary = tune_summary(result)
    summary["seconds"] = loading | summary["seconds"]
    summary["files"] = write_tuning(result, output) if output else []
    if as_json:
        print_json(summary)
    else:
        _print(summary)


def _print(summary: dict[str, Any]) -> None:
    head = f"{summary['topology']}: {summary['collective']} over {summary['ranks']} ranks, {summary['target']}"
    rows = []
    for window in summary["windows"]:
        inside = [
            (size, tuned, ring)
            for size, tuned, ring in zip(summary["sizes"], summary["tuned_us"], summary["ring_us"], strict=True)
            if window["min_bytes"] <= size and (size <= window["max_bytes"] or not window["max_bytes"])
        ]
        size, tuned, _ = inside[-1] if inside else (0, 0.0, None)
        gains = [ring / time for _, time, ring in inside if ring]
        rows.append(
            [
                f"{format_bytes(window['min_bytes'])} to "
                + (format_bytes(window["max_bytes"]) if window["max_bytes"] else "any"),
                window["candidate"] if window["file"] else f"NCCL's own: {window['candidate']}",
                f"{tuned:.1f} us at {format_bytes(size)}" if inside else "",
                f"{100 * size / tuned / 1e3 / summary['bound_algbw_GBps']:.1f} %" if inside else "",
                f"{max(gains):.2f} x" if gains else "",
            ]
        )
    print_table(["message size", "program", "simulated", "of the bound", "faster than a ring"], rows)
    print_facts(
        f"{head}, simulated with the costs of {summary['profile']}",
        [
            ("bound", f"{summary['bound_algbw_GBps']:.2f} GB/s algbw ({summary['bound_algbw_exact']})"),
            ("candidates", f"{summary['candidates']}, {summary['simulations']} simulations new"),
            ("time", ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in summary["seconds"].items())),
            ("files", ", ".join(summary["files"]) or "none written; name a directory with -o DIR"),
        ],
    )
