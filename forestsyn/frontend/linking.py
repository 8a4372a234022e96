"""Link entries: which pairs they join."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from forestsyn.errors import InputError
from forestsyn.frontend.builder import MAXIMUM_LINKS, Speed
from forestsyn.frontend.expression import Variables, evaluate, parse_range
from forestsyn.frontend.pattern import Namespace
from forestsyn.frontend.schema import LinkEntry
from forestsyn.frontend.speeds import SpeedReader
from forestsyn.units import format_count

AddLink = Callable[[int, int, Speed], None]


def add_links(
    entry: LinkEntry, namespace: Namespace, reader: SpeedReader, variables: Variables, add: AddLink
) -> None:
    """Call `add(tail, head, speed)` for each directed link of `entry`. Raises InputError without a place."""
    speed = reader.read(entry, variables)
    both = is_two_way(entry.dir)
    count = 0
    for scope in _scopes(entry.for_, variables):
        tails = namespace.select(entry.from_, scope, optional=entry.optional)
        heads = namespace.select(entry.to, scope, optional=entry.optional)
        count += _pair_count(tails, heads, entry.zip) * (1 + both)
        if count > MAXIMUM_LINKS:
            raise InputError(
                f"'{_text(entry.from_)}' to '{_text(entry.to)}' makes more than {MAXIMUM_LINKS:,} directed links"
            )
        for tail, head in _pairs(tails, heads, entry.zip, both):
            add(tail, head, speed)
            if both:
                add(head, tail, speed)


def is_two_way(direction: str) -> bool:
    """Read `dir`. Raises InputError without a place."""
    if direction not in ("both", "one-way"):
        raise InputError(f"dir is '{direction[:40]}', expected both or one-way")
    return direction == "both"


def _scopes(loops: dict[str, Any], variables: Variables) -> Iterator[dict[str, int]]:
    """One set of variables for each turn of the nested loops, the last one turning fastest."""
    values = []
    turns = 1
    for name, given in loops.items():
        if not name.isidentifier() or name in variables:
            raise InputError(f"'for' cannot use the variable '{name[:40]}'", hint="choose a new name of letters")
        values.append(_loop_values(given, variables))
        turns *= len(values[-1])
        if turns > MAXIMUM_LINKS:
            raise InputError(f"'for' turns more than {MAXIMUM_LINKS:,} times")
    for chosen in itertools.product(*values):
        yield {**variables, **dict(zip(loops, chosen, strict=True))}


def _loop_values(given: Any, variables: Variables) -> range | list[int]:
    if isinstance(given, list) and given and all(isinstance(item, str | int) for item in given):
        return [evaluate(item, variables) for item in given]
    if isinstance(given, str):
        return parse_range(given, variables)
    raise InputError("'for' needs a range (0..7) or a list of whole numbers for each variable")


def _pair_count(tails: list[int], heads: list[int], zipped: bool) -> int:
    return len(tails) if zipped else len(tails) * len(heads)


def _pairs(tails: list[int], heads: list[int], zipped: bool, both: bool) -> Iterator[tuple[int, int]]:
    """Zipped: pair by pair. Else all with all, never one with itself, and each two-way pair once."""
    if zipped:
        if len(tails) != len(heads):
            raise InputError(
                f"zip pairs {format_count(len(tails), 'device')} with {len(heads)}, expected as many on both sides",
                hint="without zip, all are linked with all",
            )
        yield from zip(tails, heads, strict=True)
        return
    overlap = set(tails) & set(heads)
    for tail in dict.fromkeys(tails):
        for head in dict.fromkeys(heads):
            if tail == head and (len(tails) > 1 or len(heads) > 1):
                continue
            mirrored = both and head < tail and tail in overlap and head in overlap
            if not mirrored:
                yield tail, head


def _text(patterns: str | list[str]) -> str:
    return patterns if isinstance(patterns, str) else ", ".join(patterns[:3])
