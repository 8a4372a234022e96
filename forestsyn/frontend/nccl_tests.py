"""Reads the text tables that nccl-tests and rccl-tests print.

A table begins with a comment that names its columns; which there are has changed over the years:

    #    size   count    type  redop   root   time  algbw  busbw #wrong   time  algbw  busbw #wrong
         1024     256   float    sum     -1  12.34   0.08   0.16      0  12.11   0.08   0.16      0

Older versions have no `root`, or neither `redop` nor `root`, say `error` for `#wrong`, and leave cells of a column
blank; newer ones may add the spread of iterations to each half, or a time stamp at the end. Columns are therefore
taken from the comment. The first half is out of place, the second in place; `N/A` under `#wrong` means unchecked.
What is no row of numbers (the log of NCCL or of MPI) is passed over; a row that lacks a number is an error.

Format: src/util.cu and the older src/*.cu of NVIDIA/nccl-tests, common.cu of ROCm/rccl-tests.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

import msgspec

from forestsyn.errors import InputError
from forestsyn.frontend.document import read_text

#: The columns of version 2.19, for tables whose comment is lost.
_COLUMNS = ("size", "count", "type", "redop", "root", *("time", "algbw", "busbw", "wrong") * 2)
_TIMES = ("time", "cputime")
_OPTIONAL = ("redop", "root")
_MPI_PREFIX = re.compile(r"\[\d+,\d+\]<std(?:out|err)>: ?")
_RANK = re.compile(r"#\s+Rank\s+(\d+)\s+(?:Group\s+\d+\s+)?Pid\b")
_TEST = re.compile(r"#\s+Collective test starting: (?:\S*/)?(\w+?)_perf")
_WHOLE = re.compile(r"[0-9]{1,18}")
_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?")
_WORD = re.compile(r"[A-Za-z]\w*")


class Measurement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row. message_bytes: the size M of the whole collective. element: the word for its type, such as `float`.

    out_of_place_us, in_place_us: None where that half was not run. wrong: elements that were wrong, 0 if unchecked.
    """

    line: int
    message_bytes: int
    count: int
    element: str
    out_of_place_us: float | None
    in_place_us: float | None
    wrong: float


class Results(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All rows of one file. test: such as `all_reduce`, where the file says it. ranks: 0 where it does not."""

    source: str
    test: str | None
    ranks: int
    measurements: tuple[Measurement, ...]


def load_nccl_tests(path: Path) -> Results:
    """The tables of a file. Raises InputError."""
    return parse_nccl_tests(read_text(path), source=str(path))


def parse_nccl_tests(text: str, *, source: str) -> Results:
    """The tables of `text`; `source` names it in messages. Raises InputError with file and line."""
    columns: tuple[str, ...] = _COLUMNS
    test: str | None = None
    ranks: set[int] = set()
    rows: list[Measurement] = []
    for number, raw in enumerate(text.splitlines(), start=1):
        line = _MPI_PREFIX.sub("", raw, count=1)
        if line.lstrip().startswith("#"):
            columns = _columns(line) or columns
            if found := _TEST.search(line):
                test = found[1]
            if (found := _RANK.search(line)) and len(found[1]) <= 6:
                ranks.add(int(found[1]))
            continue
        words = line.split()
        if _is_row(words):
            rows.append(_row(words, columns, number, f"{source}:{number}"))
    if not rows:
        raise InputError(
            "no row of measurements was found",
            where=source,
            hint="give the text that all_reduce_perf and its kin of nccl-tests print, with the table",
        )
    return Results(source=source, test=test, ranks=len(ranks), measurements=tuple(rows))


def _columns(line: str) -> tuple[str, ...] | None:
    """The names of the columns when this comment is the head of a table."""
    words = tuple(line.replace("#wrong", "wrong").lstrip("# \t").split())
    if words[:3] != ("size", "count", "type") or not any(word in _TIMES for word in words):
        return None
    return words


def _is_row(words: list[str]) -> bool:
    """Two whole numbers and the word for a type begin a row, and nothing else that such a log holds."""
    return (
        len(words) > 3
        and _WHOLE.fullmatch(words[0]) is not None
        and _WHOLE.fullmatch(words[1]) is not None
        and _WORD.fullmatch(words[2]) is not None
    )


def _row(words: list[str], columns: tuple[str, ...], line: int, where: str) -> Measurement:
    starts = [place for place, word in enumerate(columns) if word in _TIMES]
    width = starts[1] - starts[0] if len(starts) > 1 else len(columns) - starts[0]
    halves = len(starts)
    stamped = 2 if columns[-1] == "timestamp" else 0
    if stamped and halves == 1:
        width -= 1
    values = words[: len(words) - stamped]
    lead, halves = _layout(len(values), starts[0], width, halves, columns, where)
    numbers = [values[lead + half * width : lead + (half + 1) * width] for half in range(halves)]
    times = [_positive(half[0], where) for half in numbers]
    both = halves == len(starts)
    return Measurement(
        line=line,
        message_bytes=int(words[0]),
        count=int(words[1]),
        element=words[2],
        out_of_place_us=times[0] if both else None,
        in_place_us=times[-1] if len(starts) > 1 else None,
        wrong=max(_wrong(half, columns[starts[0] : starts[0] + width]) for half in numbers),
    )


def _layout(count: int, lead: int, width: int, halves: int, columns: tuple[str, ...], where: str) -> tuple[int, int]:
    """How many words stand before the times, and how many halves follow: blank cells and halves are left out."""
    blank = sum(word in _OPTIONAL for word in columns[:lead])
    for present in range(halves, 0, -1):
        for missing in range(blank + 1):
            if count == lead - missing + present * width:
                return lead - missing, present
    expected = lead + halves * width
    raise InputError(
        f"this row has {count} cells, the table has {expected} columns",
        where=where,
        hint="give the table as nccl-tests printed it; a cut line or one mixed with a log cannot be read",
    )


def _positive(word: str, where: str) -> float:
    time = float(word) if _NUMBER.fullmatch(word) else math.nan
    if not 0 < time < 1e12:
        raise InputError(f"the time is '{word[:20]}', expected a number of us above 0", where=where)
    return time


def _wrong(half: list[str], columns: tuple[str, ...]) -> float:
    """Wrong elements; a small number of the older `error` column, a rounding error, is none."""
    for word, column in zip(half, columns, strict=True):
        if column == "wrong" and _NUMBER.fullmatch(word):
            return float(word)
    return 0.0
