"""Slurm's host lists: `srv[1101-1108,1110],gpu-a`, with ranges inside a name."""

from __future__ import annotations

import re

from forestsyn.errors import InputError

MAXIMUM_NAMES = 100_000
_GROUP = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"([0-9]{1,12})(?:-([0-9]{1,12}))?")
_PIECE = re.compile(r"(?:[^,\[\]]|\[[^\[\]]*\])+")


def expand_hostlist(text: str, *, where: str) -> list[str]:
    """The names that `text` stands for, in order. Raises InputError at `where`."""
    names: list[str] = []
    for piece in _pieces(text, where):
        made = [""]
        position = 0
        for group in _GROUP.finditer(piece):
            literal = piece[position : group.start()]
            numbers = _numbers(group[1], piece, where)
            if len(made) * len(numbers) + len(names) > MAXIMUM_NAMES:
                raise _too_many(piece, where)
            made = [name + literal + number for name in made for number in numbers]
            position = group.end()
        names.extend(name + piece[position:] for name in made)
        if len(names) > MAXIMUM_NAMES:
            raise _too_many(piece, where)
    return names


def _pieces(text: str, where: str) -> list[str]:
    pieces = [piece.strip() for piece in _PIECE.findall(text)]
    if text.count("[") != text.count("]") or sum(map(text.count, "[]")) != sum(
        piece.count("[") + piece.count("]") for piece in pieces
    ):
        raise InputError(f"'{text[:60]}' has a bracket without its partner", where=where)
    return [piece for piece in pieces if piece]


def _numbers(text: str, piece: str, where: str) -> list[str]:
    numbers: list[str] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match is not None else (1, 0)
        if match is None or last < first:
            raise InputError(f"'{part[:40]}' in '{piece[:60]}' is no range of numbers", where=where)
        if last - first >= MAXIMUM_NAMES or len(numbers) + last - first >= MAXIMUM_NAMES:
            raise _too_many(piece, where)
        numbers.extend(str(number).zfill(len(match[1])) for number in range(first, last + 1))
    return numbers


def _too_many(piece: str, where: str) -> InputError:
    return InputError(f"'{piece[:60]}' makes more than {MAXIMUM_NAMES:,} names", where=where)
