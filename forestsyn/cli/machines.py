"""`forestsyn machines`: the catalog."""

from __future__ import annotations

import click

from forestsyn.cli.options import json_option
from forestsyn.cli.output import print_json, print_table


@click.command()
@json_option
def machines(as_json: bool) -> None:
    """List the machines of the catalog.

    They can be named wherever a topology is wanted. NAME alone is one host, NAME:COUNT is a cluster of COUNT hosts,
    and NAME:4x4 gives the dimensions of a shape.

    \b
    Examples:
      forestsyn machines
      forestsyn check dgx-h100:4
      forestsyn machines --json
    """
    import msgspec

    from forestsyn.frontend import list_machines

    catalog = list_machines()
    if as_json:
        print_json({"machines": msgspec.to_builtins(catalog)})
        return
    rows = (
        (machine.name, machine.parameter or "-", machine.example, str(machine.ranks), machine.description)
        for machine in catalog
    )
    print_table(("name", "after the colon", "example", "ranks", "what it is"), rows)
