"""YAML text to plain values that remember their lines.

A strict subset of YAML: one document; no anchors, aliases or tags (so nothing can multiply on its own); no
duplicate keys; bounded size and depth. A plain scalar is a whole number (decimal digits, no leading zero), `true`,
`false`, `null`, or text. Everything else stays text: 12.5 is never rounded through a float, and the readings
of YAML 1.1 that surprise people (`on` as a truth, 010 as eight, 1:30 as ninety) do not happen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import yaml

from forestsyn.errors import InputError

MAXIMUM_BYTES = 16 * 2**20
MAXIMUM_DEPTH = 20

_QUOTES = ("'", '"', "|", ">")
_Loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_WHOLE_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_CONSTANTS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}


class Marks(msgspec.Struct, frozen=True):
    """The line of a value and the marks of what it holds: by key in a mapping, by position in a list."""

    line: int
    children: dict[str | int, Marks]


class Document(msgspec.Struct, frozen=True):
    """The values of one file: `value` is made of dict, list, str, int, bool and None. Line 0: there is no file."""

    value: Any
    marks: Marks
    source: str

    def where(self, *path: str | int) -> str:
        """`FILE:LINE` of the value at `path`, or of the nearest existing thing around it."""
        marks = self.marks
        for step in path:
            if step not in marks.children:
                break
            marks = marks.children[step]
        return f"{self.source}:{marks.line}" if marks.line else self.source


def read_bytes(path: Path, maximum: int) -> bytes:
    """A file's bytes, at most one more than `maximum`, since a device may never end. Raises InputError."""
    try:
        with path.open("rb") as file:
            return file.read(maximum + 1)
    except OSError as error:
        raise InputError(f"cannot read the file: {error.strerror or error}", where=str(path)) from None
    except ValueError as error:  # a NUL in the name
        raise InputError(f"cannot read the file: {error}", where=repr(str(path))) from None


def read_text(path: Path) -> str:
    """The text of a file of at most `MAXIMUM_BYTES`, as UTF-8. Raises InputError."""
    data = read_bytes(path, MAXIMUM_BYTES)
    if len(data) > MAXIMUM_BYTES:
        raise InputError(f"the file is larger than {MAXIMUM_BYTES // 2**20} MiB", where=str(path))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"byte {data[error.start]:#04x} is not UTF-8 text",
            where=f"{path}:{line}",
            hint="a topology is a YAML text file",
        ) from None


def parse_document(text: str, *, source: str) -> Document:
    """Parse `text`; `source` names it in messages. Raises InputError."""
    try:
        if len(text.encode()) > MAXIMUM_BYTES:
            raise InputError(f"the text is larger than {MAXIMUM_BYTES // 2**20} MiB", where=source)
        events = yaml.parse(text, Loader=_Loader)
        return _read_stream(events, source)
    except UnicodeEncodeError:
        raise InputError("the text holds characters that UTF-8 cannot encode", where=source) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = source if mark is None else f"{source}:{mark.line + 1}"
        raise InputError(f"this is not YAML: {error.problem or 'the syntax is wrong'}", where=where) from None
    except yaml.YAMLError as error:
        problem = str(error).splitlines()[0]
        raise InputError(f"this is not YAML text: {problem}", where=source) from None


@contextmanager
def located(where: str) -> Iterator[None]:
    """Give every InputError that is raised inside, and does not know its place, the place `where`."""
    try:
        yield
    except InputError as error:
        if error.where is not None:
            raise
        raise InputError(error.message, where=where, hint=error.hint) from None


def _read_stream(events: Iterator[Any], source: str) -> Document:
    next(events)  # stream start
    if isinstance(next(events), yaml.StreamEndEvent):
        raise InputError("the file is empty", where=source, hint="it should begin with 'forestsyn: 1'")
    value, marks = _read_value(next(events), events, source, depth=0)
    next(events)  # document end
    following = next(events)
    if not isinstance(following, yaml.StreamEndEvent):
        raise InputError(
            "the file holds more than one YAML document", where=f"{source}:{following.start_mark.line + 1}"
        )
    return Document(value, marks, source)


def _read_value(event: Any, events: Iterator[Any], source: str, depth: int) -> tuple[Any, Marks]:
    line = event.start_mark.line + 1
    where = f"{source}:{line}"
    if depth > MAXIMUM_DEPTH:
        raise InputError(f"lists and mappings are nested more than {MAXIMUM_DEPTH} deep", where=where)
    if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
        raise InputError(
            "anchors and aliases (& and *) are not accepted here",
            where=where,
            hint="use a template with a count; quote a text that begins with '*' or '&'",
        )
    if event.tag is not None and event.tag != "!":
        raise InputError(f"the tag '{event.tag}' is not accepted here", where=where, hint="leave it out")
    if isinstance(event, yaml.ScalarEvent):
        return _read_scalar(event), Marks(line, {})
    if isinstance(event, yaml.SequenceStartEvent):
        return _read_list(events, source, depth, line)
    return _read_mapping(events, source, depth, line)


def _read_list(events: Iterator[Any], source: str, depth: int, line: int) -> tuple[list[Any], Marks]:
    values: list[Any] = []
    children: dict[str | int, Marks] = {}
    while not isinstance(event := next(events), yaml.SequenceEndEvent):
        value, marks = _read_value(event, events, source, depth + 1)
        children[len(values)] = marks
        values.append(value)
    return values, Marks(line, children)


def _read_mapping(events: Iterator[Any], source: str, depth: int, line: int) -> tuple[dict[str, Any], Marks]:
    values: dict[str, Any] = {}
    children: dict[str | int, Marks] = {}
    while not isinstance(event := next(events), yaml.MappingEndEvent):
        _, key_marks = _read_value(event, events, source, depth + 1)
        where = f"{source}:{key_marks.line}"
        if not isinstance(event, yaml.ScalarEvent):
            raise InputError("a key must be a name, found a list or a mapping", where=where)
        name = event.value
        if name in values:
            first = children[name].line
            raise InputError(
                f"the key '{name}' is given twice, first on line {first}", where=where, hint="keep one of them"
            )
        values[name], marks = _read_value(next(events), events, source, depth + 1)
        children[name] = Marks(key_marks.line, marks.children)
    return values, Marks(line, children)


def _read_scalar(event: yaml.ScalarEvent) -> Any:
    text: str = event.value
    if event.style in _QUOTES:
        return text
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    return int(text) if _WHOLE_NUMBER.fullmatch(text) else text
