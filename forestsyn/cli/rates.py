"""`forestsyn rates`: what a link's short name means in GB/s."""

from __future__ import annotations

from fractions import Fraction

import click

from forestsyn.cli.options import json_option
from forestsyn.cli.output import print_json, print_table

_COLUMNS = ("spec", "nccl", "measured")


@click.command()
@json_option
def rates(as_json: bool) -> None:
    """Print the table of link rates that topology files may name, in GB/s and one direction.

    A topology uses one column throughout: spec (data sheet), nccl (what NCCL's search assumes) or measured.

    \b
    Examples:
      forestsyn rates
      forestsyn rates | grep nvlink
      forestsyn rates --json | jq '.rates[] | select(.kind == "pcie")'
    """
    from forestsyn.frontend import rate_table

    table = rate_table()
    if as_json:
        print_json({"rates": [{name: _exact(getattr(rate, name)) for name in rate.__struct_fields__} for rate in table]})
        return
    rows = (
        (rate.kind, rate.name, rate.per, *(_decimal(getattr(rate, column)) for column in _COLUMNS), rate.source)
        for rate in table
    )
    print_table(("kind", "name", "per", *_COLUMNS, "source"), rows)


def _exact(value: object) -> str | None:
    return None if value is None else str(value)


def _decimal(value: Fraction | None) -> str:
    return "-" if value is None else f"{float(value):.4g}"
