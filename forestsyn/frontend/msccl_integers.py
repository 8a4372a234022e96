"""Integers as the runtimes read them: C's strtol with base 0, which never complains."""

from __future__ import annotations

import re

_LONG_MIN, _LONG_MAX = -(2**63), 2**63 - 1
_PLAIN = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")
_C_INTEGER = re.compile(r"[ \t\n\v\f\r]*([+-]?)(0[xX](?=[0-9a-fA-F])|0|)([0-9a-fA-F]*)")
_DIGITS = {8: "01234567", 10: "0123456789", 16: "0123456789abcdefABCDEF"}


def is_plain(text: str) -> bool:
    """True for a decimal number that everybody reads alike: no sign but minus, no leading zero, no blanks."""
    return _PLAIN.fullmatch(text) is not None


def read_c_integer(text: str) -> int:
    """The value of `strtol(text, NULL, 0)`: 0 for words, octal after a leading 0, hexadecimal after 0x, saturating.

    >>> [read_c_integer(text) for text in ("12", "abc", "010", "0x1F", "12 apples", "-1")]
    [12, 0, 8, 31, 12, -1]
    """
    match = _C_INTEGER.match(text)
    assert match is not None, "the pattern also matches nothing at all"
    sign, prefix, body = match.groups()
    base = {"": 10, "0": 8}.get(prefix, 16)
    allowed = _DIGITS[base]
    length = next((index for index, digit in enumerate(body) if digit not in allowed), len(body))
    digits = body[:length].lstrip("0")
    # Thirty digits pass the range of a long in every base; converting more would only cost time.
    value = int(digits[:30] or "0", base)
    return max(_LONG_MIN, min(_LONG_MAX, -value if sign == "-" else value))
