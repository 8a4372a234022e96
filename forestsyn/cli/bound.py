"""`forestsyn bound`: the exact optimum, and what holds it back."""

from __future__ import annotations

from typing import Any

import click

from forestsyn.cli.loading import load_timed
from forestsyn.cli.options import collective_options, json_option, topology_argument
from forestsyn.cli.output import Row, print_facts, print_json
from forestsyn.cli.progress import progress
from forestsyn.ir.collective import Collective
from forestsyn.units import format_count


@click.command()
@topology_argument
@collective_options
@json_option
def bound(topology_spec: str, collective: Collective, root: int | str | None, as_json: bool) -> None:
    """Print the best throughput that any schedule can reach on T.

    The optimum is exact. It comes with the cut that proves it and with the most that an NCCL-style ring could reach.
    That of allreduce is for shards that are reduced and then gathered, equal ones or, where these are faster, unequal
    ones; a limit for every other form is printed too.

    \b
    Examples:
      forestsyn bound dgx-a100:2
      forestsyn bound dgx-h100:4 -c allreduce
      forestsyn bound my-cluster.yaml -c broadcast --root n0/gpu3 --json
    """
    from forestsyn.pipeline.bound import bound as solve_bound
    from forestsyn.pipeline.summary import bound_summary

    with progress() as observer:
        topology, loading = load_timed(topology_spec, observer)
        summary = bound_summary(solve_bound(topology, collective, root, observer=observer))
    summary["seconds"] = loading | summary["seconds"]
    if as_json:
        print_json(summary)
    else:
        print_facts(title(topology_spec, summary), bound_facts(summary))


def title(spec: str, summary: dict[str, Any]) -> str:
    """One line that says what was computed."""
    root = "" if summary["root"] is None else f" with root {summary['root']} ({summary['root_name']})"
    ranks = format_count(summary["ranks"], "rank")
    return f"{spec}: {summary['collective']}{root} over {ranks}, {summary['rates']} rates"


def bound_facts(summary: dict[str, Any]) -> list[Row]:
    """The proven optimum for people."""
    ring = summary["ring"]
    return [
        ("bound", bandwidth_text(summary)),
        *_limit_facts(summary),
        ("inverse rate", f"{summary['inverse_rate']} s per GB of {_unit(summary)}"),
        *(("bottleneck", text) for text in dict.fromkeys(phase["text"] for phase in summary["phases"])),
        ("ring at most", f"{ring['algbw_GBps']:.2f} GB/s algbw: {ring['text']}"),
        *(("note", note) for note in summary["notes"]),
    ]


def bandwidth_text(values: dict[str, Any]) -> str:
    """algbw as a decimal and exactly, and busbw."""
    exact = values["algbw_exact"]
    return f"{values['algbw_GBps']:.2f} GB/s algbw (exactly {exact}), {values['busbw_GBps']:.2f} GB/s busbw"


def _limit_facts(summary: dict[str, Any]) -> list[Row]:
    if summary["collective"] != Collective.ALLREDUCE:
        return []
    limit = (
        f"shards of any sizes, reduced then gathered; no form exceeds {summary['limit_algbw_GBps']:.2f} GB/s algbw"
    )
    return [("holds for", limit), ("roots", summary["unequal_roots"]["text"])]


def _unit(summary: dict[str, Any]) -> str:
    return "shard" if summary["root"] is None else "message"
