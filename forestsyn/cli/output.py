"""How results reach people and scripts: tables on a terminal, plain lines in a pipe, JSON on request."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Row = tuple[str, str]


def print_json(value: Mapping[str, Any]) -> None:
    """One JSON object on standard output."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def print_facts(title: str, facts: Iterable[Row], *, error_stream: bool = False) -> None:
    """Name and value pairs under a title."""
    stream = sys.stderr if error_stream else sys.stdout
    rows = list(facts)
    if stream.isatty():
        _print_rich(title, (), rows, error_stream)
        return
    width = max(len(name) for name, _ in rows) + 2
    print(title, file=stream)
    for name, value in rows:
        print(f"  {name:<{width}}{value}", file=stream)


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table with a header; in a pipe the columns are separated by at least two spaces."""
    cells = list(rows)
    if sys.stdout.isatty():
        _print_rich(None, header, cells, False)
        return
    widths = [max(len(row[column]) for row in (header, *cells)) for column in range(len(header))]
    for row in (header, *cells):
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


def _print_rich(title: str | None, header: Sequence[str], rows: Sequence[Sequence[str]], error_stream: bool) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD if header else None, show_header=bool(header)
    )
    names = header or ("", "")
    for position, name in enumerate(names):
        table.add_column(name, style="bold" if position == 0 else "", no_wrap=position < len(names) - 1)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console(stderr=error_stream, highlight=False).print(table)
