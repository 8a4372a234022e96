"""How results reach people and scripts: tables on a terminal, plain lines in a pipe, JSON on request, files by -o."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from forestsyn.errors import InputError

Row = tuple[str, str]

#: What `-o -` names.
STANDARD_OUTPUT = Path("-")


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


def output_option(text: str) -> Callable[..., Any]:
    """Add `-o`."""
    return click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help=text)


def check_output(output: Path | None, as_json: bool) -> None:
    """Refuse before any work what `write_output` could not do. Raises InputError."""
    from forestsyn.pipeline.files import check_writable

    if output == STANDARD_OUTPUT:
        if as_json:
            raise InputError("--json and -o - both want standard output", where="-o", hint="write to a file")
    elif output is not None:
        check_writable(output)


def write_output(output: Path | None, text: str) -> list[str]:
    """Write what `-o` asks for, `text` to a file or to standard output; the names of the files."""
    from forestsyn.pipeline.files import write_file

    if output is None:
        return []
    if output == STANDARD_OUTPUT:
        print(text, end="")
        return []
    write_file(output, text)
    return [str(output)]


def file_facts(output: Path | None) -> list[Row]:
    """Where the result went."""
    if output == STANDARD_OUTPUT:
        return [("file", "standard output")]
    return [("file", str(output) if output else "none written; name one with -o FILE")]


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
