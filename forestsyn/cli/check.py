"""`forestsyn check`: what forestsyn understood of a topology, and what holds it back."""

from __future__ import annotations

import click

from forestsyn.cli.options import json_option, topology_argument
from forestsyn.cli.output import print_json
from forestsyn.cli.progress import progress
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
    from forestsyn.frontend import describe_topology, load_topology
    from forestsyn.pipeline.bound import bound
    from forestsyn.pipeline.summary import bound_summary

    with progress() as observer:
        topology = load_topology(topology_spec)
        summary = bound_summary(bound(topology, Collective.ALLGATHER, observer=observer))
    if as_json:
        print_json(summary)
    else:
        print(describe_topology(topology))
