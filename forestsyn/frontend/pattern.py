"""Names, and patterns that stand for several names.

    gpu0            itself
    gpu{0..7}       gpu0 ... gpu7          braces hold numbers: ranges, expressions, comma lists (repeats are kept)
    gpu[0-3,6]      gpu0 ... gpu3, gpu6    brackets: the same, as host lists are written
    rail{r}         the value of a variable; {r%2} computes
    gpu*  n?/nic0   `*` any run of characters, `?` one character, neither across '/'

`expand_names` resolves all but the wildcards; `Namespace` resolves those against what exists.
"""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Sequence
from typing import TypeVar

from forestsyn.errors import InputError
from forestsyn.frontend.expression import Variables, parse_range

_Value = TypeVar("_Value")

MAXIMUM_NAMES = 100_000
_MAXIMUM_SCANS = 20_000_000
_MAXIMUM_LENGTH = 200

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:+-]{0,63}")
_GROUP = re.compile(r"\{([^{}]*)\}|\[([^][]*)\]")


def check_name(name: str, what: str) -> str:
    """`name` if it is one that messages and patterns can carry. Raises InputError without a place."""
    if _NAME.fullmatch(name) is None:
        raise InputError(
            f"{what} name {name[:80]!r} is not accepted",
            hint="use up to 64 letters, digits and any of _ - . : +, the first a letter, digit or _",
        )
    return name


def expand_names(pattern: str, variables: Variables) -> list[str]:
    """The names (with wildcards left in) that the braces and brackets of `pattern` make."""
    if len(pattern) > _MAXIMUM_LENGTH:
        raise InputError(f"the pattern '{pattern[:20]}...' is longer than {_MAXIMUM_LENGTH} characters")
    names = [""]
    position = 0
    for group in _GROUP.finditer(pattern):
        values = _group_values(group, variables)
        if len(names) * len(values) > MAXIMUM_NAMES:
            raise InputError(f"'{pattern}' makes more than {MAXIMUM_NAMES:,} names")
        literal = pattern[position : group.start()]
        names = [name + literal + value for name in names for value in values]
        position = group.end()
    rest = pattern[position:]
    if any(sign in text for text in (rest, names[0]) for sign in "{}[]"):
        raise InputError(f"'{pattern}' has a brace or bracket without its partner")
    return [name + rest for name in names]


def _group_values(group: re.Match[str], variables: Variables) -> list[str]:
    braces, brackets = group.groups()
    text = braces if braces is not None else re.sub(r"(\d)-(\d)", r"\1..\2", brackets)
    values: list[str] = []
    for item in text.split(","):
        first = item.partition("..")[0].strip()
        width = len(first) if re.fullmatch(r"0[0-9]+", first) else 0
        if width:
            item = "..".join(part.strip().lstrip("0") or "0" for part in item.split(".."))
        numbers = parse_range(item, variables)
        if len(values) + len(numbers) > MAXIMUM_NAMES:
            raise InputError(f"'{group.group()}' makes more than {MAXIMUM_NAMES:,} names")
        values.extend(str(number).zfill(width) for number in numbers)
    return values


class Namespace:
    """The names that patterns may match, grouped by host; '' groups the names without a host.

    `names` are full names (`n0/gpu0`, `spine0`); matches are returned as positions in it, in its order.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._hosts: dict[str, dict[str, int]] = {}
        self._cache: dict[str, tuple[int, ...]] = {}
        self._scans = 0
        for position, name in enumerate(names):
            host, _, device = name.rpartition("/")
            self._hosts.setdefault(host, {})[device] = position

    def select(self, patterns: str | list[str], variables: Variables, *, optional: bool = False) -> list[int]:
        """Positions of all that the patterns stand for, in the order of the patterns; repeats are kept."""
        listed = [patterns] if isinstance(patterns, str) else patterns
        positions: list[int] = []
        for pattern in listed:
            for name in expand_names(pattern, variables):
                found = self._match(name)
                if not found and not optional:
                    raise self._no_match(name, pattern)
                positions.extend(found)
            if len(positions) > MAXIMUM_NAMES * 10:
                raise InputError(f"'{pattern}' makes more than {MAXIMUM_NAMES * 10:,} names")
        return positions

    def devices_of(self, host: str) -> tuple[int, ...]:
        """Positions of all devices of a host; empty when there is no such host."""
        return tuple(self._hosts.get(host, {}).values()) if host else ()

    def _match(self, name: str) -> tuple[int, ...]:
        if name not in self._cache:
            host, _, device = name.rpartition("/")
            found: list[int] = []
            for devices in self._matching(self._hosts, host):
                found.extend(self._matching(devices, device))
            self._cache[name] = tuple(found)
        return self._cache[name]

    def _matching(self, table: dict[str, _Value], pattern: str) -> list[_Value]:
        if "*" not in pattern and "?" not in pattern:
            return [table[pattern]] if pattern in table else []
        self._scans += len(table)
        if self._scans > _MAXIMUM_SCANS:
            raise InputError("the wildcards of this file look at too many names", hint="use ranges: gpu{0..7}")
        matches = re.compile(fnmatch.translate(pattern)).match
        return [value for name, value in table.items() if name and matches(name)]

    def _no_match(self, name: str, pattern: str) -> InputError:
        text = f"'{name}'" if name == pattern else f"'{name}' (from '{pattern}')"
        if "*" in name or "?" in name:
            return InputError(f"{text} matches nothing", hint=self._suggestion(name))
        return InputError(f"there is no device {text}", hint=self._suggestion(name))

    def _suggestion(self, name: str) -> str:
        near = difflib.get_close_matches(name, self._names[:2000], n=3, cutoff=0.6)
        if near:
            return f"did you mean {' or '.join(near)}?"
        shown = ", ".join(self._names[:6]) + (", ..." if len(self._names) > 6 else "")
        return f"devices here: {shown or 'none'}"
