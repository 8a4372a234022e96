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
    """Print the table of link rates.

    The table says what the short names in topology files mean, in GB/s and one direction. A topology uses one column
    throughout: spec (data sheet), nccl (what NCCL's search assumes) or measured.

    \b
    Examples:
      forestsyn rates
      forestsyn rates | grep nvlink
      forestsyn rates --json | jq '.rates[] | select(.kind == "pcie")'
    """
    import msgspec

    from forestsyn.frontend import rate_table

    table = rate_table()
    if as_json:
        print_json({"rates": msgspec.to_builtins(table, enc_hook=str)})
        return
    rows = (
        (rate.kind, rate.name, rate.per, *(_decimal(getattr(rate, column)) for column in _COLUMNS), rate.source)
        for rate in table
    )
    print_table(("kind", "name", "per", *_COLUMNS, "source"), rows)


def _decimal(value: Fraction | None) -> str:
    return "-" if value is None else f"{float(value):.4g}"
