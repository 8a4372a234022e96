"""`forestsyn check`: what forestsyn understood of a topology, and what holds it back."""

from __future__ import annotations

import click

from forestsyn.cli.bound import bound_facts
from forestsyn.cli.loading import load_timed
from forestsyn.cli.options import json_option, topology_argument
from forestsyn.cli.output import print_facts, print_json
from forestsyn.ir.collective import Collective


@click.command()
@topology_argument
@json_option
def check(topology_spec: str, as_json: bool) -> None:
    """Read T and print what was understood.

    The bottleneck of an allgather follows. Wrong keys, types, names and numbers are errors with their line; ranks
    that cannot reach each other are named.

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
    summary = bound_summary(bound(topology, Collective.ALLGATHER))
    if as_json:
        print_json({**msgspec.to_builtins(report, enc_hook=str), "bound": summary})
    else:
        print_facts("allgather:", [fact for fact in bound_facts(summary) if fact[0] != "note"])
