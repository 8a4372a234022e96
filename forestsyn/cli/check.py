"""`forestsyn check`: what forestsyn understood of a topology, and what holds it back."""

from __future__ import annotations

import re
from collections.abc import Sequence

import click

from forestsyn.cli.bound import bound_facts
from forestsyn.cli.loading import load_timed
from forestsyn.cli.options import json_option, topology_argument
from forestsyn.cli.output import Row, print_facts, print_json
from forestsyn.ir.collective import Collective
from forestsyn.units import format_count

_ENDING = re.compile(r"(.*?)(0|[1-9][0-9]{0,8})", re.DOTALL)
_ROWS = 64


@click.command()
@topology_argument
@json_option
def check(topology_spec: str, as_json: bool) -> None:
    """Read T and print what was understood.

    The ranks follow with their numbers, and the bottleneck of an allgather. Wrong keys, types, names and numbers are
    errors with their line; ranks that cannot reach each other are named.

    \b
    Examples:
      forestsyn check my-cluster.yaml
      forestsyn check dgx-a100:2 --json
    """
    import msgspec

    from forestsyn.frontend import describe_topology
    from forestsyn.pipeline.bound import bound
    from forestsyn.pipeline.summary import bound_summary

    topology, _ = load_timed(topology_spec)
    report = describe_topology(topology)
    if not as_json:
        print(report)
        print_facts("ranks:", rank_facts([rank.name for rank in report.ranks]))
    summary = bound_summary(bound(topology, Collective.ALLGATHER))
    if as_json:
        print_json({**msgspec.to_builtins(report, enc_hook=str), "bound": summary})
    else:
        print_facts("allgather:", [fact for fact in bound_facts(summary) if fact[0] != "note"])


def rank_facts(names: Sequence[str]) -> list[Row]:
    """The number of every rank beside its name; names that count up with the ranks share a row."""
    starts = [rank for rank in range(len(names)) if rank == 0 or not _follows(names[rank - 1], names[rank])]
    ends = [start - 1 for start in (*starts[1:], len(names))]
    rows = [_rank_row(names, first, last) for first, last in zip(starts, ends, strict=True)]
    if len(rows) > _ROWS:
        left = format_count(len(names) - starts[_ROWS], "more rank")
        return [*rows[:_ROWS], ("...", f"{left}; --json lists all")]
    return rows


def _rank_row(names: Sequence[str], first: int, last: int) -> Row:
    return (str(first), names[first]) if first == last else (f"{first} to {last}", f"{names[first]} to {names[last]}")


def _follows(name: str, following: str) -> bool:
    one, other = _ENDING.fullmatch(name), _ENDING.fullmatch(following)
    return bool(one and other and one[1] == other[1] and int(one[2]) + 1 == int(other[2]))
