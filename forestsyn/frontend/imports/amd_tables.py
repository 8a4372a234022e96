"""Tables of `rocm-smi --showtopo` and `amd-smi topology`: a title, a line of GPUs, a row for each GPU."""

from __future__ import annotations

import re

import msgspec

from forestsyn.errors import InputError

MAXIMUM_GPUS = 256

_GPU = re.compile(r"GPU\[?([0-9]{1,5})\]?")
_ADDRESS = re.compile(r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]")
#: What a title must contain, in small letters, to name a table; the first that fits counts.
_TITLES = (
    ("link type", "type"),
    ("weight", "weight"),
    ("hops", "hops"),
    ("numa bw", "bandwidth"),
    ("access", "access"),
    ("link metric", "metric"),
    ("cache", "other"),
    ("atomics", "other"),
    ("dma", "other"),
    ("bi-directional", "other"),
    ("accessible", "other"),
)
_NUMA = re.compile(r"GPU ?\[?([0-9]{1,5})\]?\s*:.*Numa Node:\s*(-?[0-9]{1,4})", re.IGNORECASE)
_FAILURE = re.compile(r"not supported|cannot read|^\s*error\b", re.IGNORECASE)


class Tables(msgspec.Struct, frozen=True):
    """Cells by title and pair of GPU numbers; NUMA nodes by GPU number; the addresses of GPUs where given."""

    gpus: int
    cells: dict[str, dict[tuple[int, int], str]]
    numa: dict[int, int]
    addresses: tuple[str, ...]


def read_tables(lines: list[str], *, source: str) -> Tables:
    """All tables in `lines`. Raises InputError for cut or failed output."""
    cells: dict[str, dict[tuple[int, int], str]] = {}
    numa: dict[int, int] = {}
    title, complete = "other", 0
    columns: list[str] = []
    labels: list[str] = []
    for number, line in enumerate(lines, start=1):
        where = f"{source}:{number}"
        tokens = line.split()
        if not tokens or line.lstrip().startswith("#"):
            continue
        if (match := _NUMA.match(line.lstrip())) is not None:
            numa[int(match[1])] = int(match[2])
        elif _FAILURE.search(line) and "N/A" not in line:
            raise InputError(
                f"the tool reports a failure: {line.strip()[:80]}",
                where=where,
                hint="run it again with more rights; partitioned GPUs (TPX, CPX) print no usable table",
            )
        elif (found := _title(line)) is not None:
            title = found
        elif all(_is_label(token) for token in tokens):
            _check_rows(columns, complete, where)
            labels = labels or tokens
            if tokens != labels or len(tokens) > MAXIMUM_GPUS:
                raise InputError("the tables name different GPUs", where=where, hint="give the output of one host")
            columns, complete = tokens, 0
        elif columns and tokens[0] in columns and title != "metric":
            if title != "other":
                _place(cells.setdefault(title, {}), columns, tokens, where)
            complete += 1
    _check_rows(columns if title != "metric" else [], complete, source)
    addresses = tuple(labels) if labels and _ADDRESS.fullmatch(labels[0]) else ()
    return Tables(len(labels), cells, numa, addresses)


def _title(line: str) -> str | None:
    small = line.lower()
    if not ("=" in small or small.rstrip().endswith(":") or "between two gpus" in small):
        return None
    if "<" in small or "/" in small.split("=")[0]:
        return None
    return next((name for words, name in _TITLES if words in small), None)


def _is_label(token: str) -> bool:
    return _GPU.fullmatch(token) is not None or _ADDRESS.fullmatch(token) is not None


def _place(table: dict[tuple[int, int], str], columns: list[str], tokens: list[str], where: str) -> None:
    if len(tokens) != len(columns) + 1:
        raise InputError(f"the row {tokens[0]} has {len(tokens) - 1} cells, expected {len(columns)}", where=where)
    row = columns.index(tokens[0])
    for column, cell in enumerate(tokens[1:]):
        if (row, column) in table:
            raise InputError(f"the row {tokens[0]} is given twice", where=where)
        table[row, column] = cell


def _check_rows(columns: list[str], complete: int, where: str) -> None:
    if columns and complete and complete != len(columns):
        raise InputError(
            f"a table above has {complete} rows, expected {len(columns)}: it is cut short",
            where=where,
            hint="give the whole output",
        )
