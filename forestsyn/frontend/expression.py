"""Whole-number expressions and ranges: `8`, `N-1`, `2*(r+1)`, `h/32`, `r%2`, `0..7`, `0..N-1`.

Grammar: sum = product (('+'|'-') product)*; product = atom (('*'|'/'|'%') atom)*; atom = number | name | '(' sum ')'.
`/` divides downwards to a whole number. Variables are the parameters of the file and the variables of `for`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from forestsyn.errors import InputError

Variables = Mapping[str, int]

MAXIMUM_VALUE = 10**15
_MAXIMUM_LENGTH = 100
_TOKEN = re.compile(r"\s*(?:(?P<number>[0-9]+)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<sign>[-+*/%()]))\s*")


def evaluate(expression: int | str, variables: Variables) -> int:
    """The value of `expression`. Raises InputError without a place."""
    if isinstance(expression, int):
        return _bounded(expression, str(expression))
    tokens = _tokenize(expression)
    value, position = _sum(tokens, 0, variables, expression)
    if position != len(tokens):
        raise _malformed(expression)
    return value


def evaluate_count(expression: int | str, variables: Variables, *, minimum: int, maximum: int, what: str) -> int:
    """A value within [minimum, maximum]; `what` names it in the message."""
    value = evaluate(expression, variables)
    if not minimum <= value <= maximum:
        raise InputError(f"{what} is {value:,}, expected {minimum:,} to {maximum:,}")
    return value


def parse_range(text: str, variables: Variables) -> range:
    """`A..B`, both ends included, or one expression for a range of one value."""
    first, dots, last = text.partition("..")
    start = evaluate(first, variables)
    stop = evaluate(last, variables) if dots else start
    if stop < start:
        raise InputError(f"the range '{text}' is empty: {start} comes after {stop}")
    return range(start, stop + 1)


def _tokenize(expression: str) -> list[str]:
    if len(expression) > _MAXIMUM_LENGTH:
        raise InputError(f"'{expression[:20]}...' is too long for a whole number or an expression")
    tokens: list[str] = []
    position = 0
    while position < len(expression):
        match = _TOKEN.match(expression, position)
        if match is None:
            raise _malformed(expression)
        number = match["number"]
        if number and len(number) > 1 and number[0] == "0":
            raise InputError(f"'{number}' has a leading zero, expected a whole number", hint=f"write {int(number)}")
        tokens.append(match.group().strip())
        position = match.end()
    return tokens


def _sum(tokens: list[str], position: int, variables: Variables, text: str) -> tuple[int, int]:
    value, position = _product(tokens, position, variables, text)
    while position < len(tokens) and tokens[position] in "+-":
        right, after = _product(tokens, position + 1, variables, text)
        value = _bounded(value + right if tokens[position] == "+" else value - right, text)
        position = after
    return value, position


def _product(tokens: list[str], position: int, variables: Variables, text: str) -> tuple[int, int]:
    value, position = _atom(tokens, position, variables, text)
    while position < len(tokens) and tokens[position] in "*/%":
        sign = tokens[position]
        right, position = _atom(tokens, position + 1, variables, text)
        if sign != "*" and right == 0:
            raise InputError(f"'{text}' divides by zero")
        value = _bounded(value * right if sign == "*" else value // right if sign == "/" else value % right, text)
    return value, position


def _atom(tokens: list[str], position: int, variables: Variables, text: str) -> tuple[int, int]:
    if position >= len(tokens):
        raise _malformed(text)
    token = tokens[position]
    if token == "(":
        value, position = _sum(tokens, position + 1, variables, text)
        if position >= len(tokens) or tokens[position] != ")":
            raise _malformed(text)
        return value, position + 1
    if token[0].isdigit():
        return _bounded(int(token), text), position + 1
    if token in "+-*/%)":
        raise _malformed(text)
    if token not in variables:
        known = ", ".join(variables) or "none is defined here"
        raise InputError(f"'{token}' in '{text}' is no variable", hint=f"variables: {known}")
    return variables[token], position + 1


def _bounded(value: int, text: str) -> int:
    if abs(value) > MAXIMUM_VALUE:
        raise InputError(f"'{text}' is beyond {MAXIMUM_VALUE:,}")
    return value


def _malformed(text: str) -> InputError:
    return InputError(f"'{text}' is not a whole number", hint="write digits, or an expression such as 2*N-1")
