"""Plain values to schema structs, with errors that name the line and the nearest valid key."""

from __future__ import annotations

import difflib
import re
import types
import typing
from typing import Any, TypeVar

import msgspec

from forestsyn.errors import InputError
from forestsyn.frontend.document import Document
from forestsyn.frontend.rates import Rates
from forestsyn.frontend.schema import OTHER_SPELLINGS

_Struct = TypeVar("_Struct", bound=msgspec.Struct)
Path = tuple[str | int, ...]

_WORDS = {
    "int": "a whole number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "nothing",
}
_STEP = re.compile(r"\.([A-Za-z_-]+)|\[(\d+)\]")


def decode(document: Document, path: Path, struct: type[_Struct]) -> _Struct:
    """The part of `document` at `path` as a `struct`. Raises InputError with the line."""
    value = document.value
    for step in path:
        value = value[step]
    try:
        return msgspec.convert(value, struct, strict=True)
    except msgspec.ValidationError as error:
        raise _explain(str(error), document, path, struct) from None


def _explain(text: str, document: Document, base: Path, struct: type[msgspec.Struct]) -> InputError:
    problem, _, location = text.partition(" - at `$")
    path = _parse_path(location.rstrip("`"))
    unknown = re.fullmatch(r"Object contains unknown field `(.*)`", problem, re.DOTALL)
    if unknown:
        valid = sorted(_fields_at(struct, path))
        near = difflib.get_close_matches(unknown[1], valid, n=1, cutoff=0.6)
        hint = f"did you mean '{near[0]}'?" if near else f"keys here: {', '.join(valid)}"
        hint = OTHER_SPELLINGS.get(unknown[1].replace("_", "-"), hint)
        where = document.where(*base, *path, unknown[1])
        return InputError(f"the key '{unknown[1][:80]}' is unknown here", where=where, hint=hint)
    missing = re.fullmatch(r"Object missing required field `(.*)`", problem)
    where = document.where(*base, *path)
    if missing:
        return InputError(f"the key '{missing[1]}' is missing", where=where)
    named = f"'{path[-1] if isinstance(path[-1], str) else path[-2]}': " if path else ""
    return InputError(named + _plain_words(problem), where=where)


def _parse_path(location: str) -> Path:
    """`.hosts[0].count` as steps, up to the first key of a free mapping, which msgspec writes as `[...]`."""
    steps: list[str | int] = []
    position = 0
    while (match := _STEP.match(location, position)) is not None:
        steps.append(match[1] if match[1] is not None else int(match[2]))
        position = match.end()
    return tuple(steps)


def _plain_words(problem: str) -> str:
    match = re.fullmatch(r"Expected `([^`]*)`, got `([^`]*)`", problem)
    if match is None:
        return problem[:200].replace("Invalid enum value", f"expected {', '.join(Rates)}, found")
    expected = [_WORDS.get(name, name) for name in match[1].split(" | ") if name != "null"]
    return f"expected {' or '.join(expected)}, found {_WORDS.get(match[2], match[2])}"


def _fields_at(kind: Any, path: Path) -> set[str]:
    """The keys that the mapping at `path` may have."""
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return set().union(*(_fields_at(option, path) for option in typing.get_args(kind)))
    if typing.get_origin(kind) is list:
        return _fields_at(typing.get_args(kind)[0], path[1:]) if path and isinstance(path[0], int) else set()
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return set()
    fields = msgspec.structs.fields(kind)
    if not path:
        return {field.encode_name for field in fields}
    return set().union(*(_fields_at(field.type, path[1:]) for field in fields if field.encode_name == path[0]))
