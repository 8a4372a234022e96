"""Foreign bytes to lines of text: encodings, terminal colours, line ends, and limits on size."""

from __future__ import annotations

import re

from forestsyn.errors import InputError

MAXIMUM_BYTES = 64 * 2**20
MAXIMUM_LINES = 1_000_000
MAXIMUM_LINE = 1_000_000
#: What the tools for one host print stays far below.
MAXIMUM_HOST_LINES = 100_000

_ESCAPES = re.compile(r"\x1b\[[0-9;:?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]{0,1000}(?:\x07|\x1b\\)|\x1b[@-_]")
_BYTE_ORDER_MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)


def decode_bytes(data: bytes, *, source: str) -> str:
    """`data` as text: UTF-8, or what its byte order mark says, or UTF-16 without one. Raises InputError."""
    if len(data) > MAXIMUM_BYTES:
        raise InputError(f"the file is larger than {MAXIMUM_BYTES // 2**20} MiB", where=source)
    encoding = _encoding(data)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"byte {data[error.start]:#04x} is not {encoding.upper()} text",
            where=f"{source}:{line}",
            hint="this looks like a binary file; save the output of the tool as plain text",
        ) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InputError("this is a binary file, expected text", where=f"{source}:{line}")
    return text


def split_lines(text: str, *, source: str, maximum: int = MAXIMUM_LINES) -> list[str]:
    """The lines of `text` without terminal colours, line ends and trailing blanks. Raises InputError when huge."""
    if len(text) > MAXIMUM_BYTES:
        raise InputError(f"the text is larger than {MAXIMUM_BYTES // 2**20} MiB", where=source)
    count = text.count("\n") + text.count("\r")
    if count > 2 * maximum:
        raise _too_long(maximum, source)
    cleaned = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").replace("\u00a0", " ")
    if "\x1b" in cleaned:
        cleaned = _ESCAPES.sub("", cleaned)
    lines = [line.rstrip() for line in cleaned.split("\n")]
    if len(lines) > maximum:
        raise _too_long(maximum, source)
    for number, line in enumerate(lines, start=1):
        if len(line) > MAXIMUM_LINE:
            raise InputError(f"a line has more than {MAXIMUM_LINE:,} characters", where=f"{source}:{number}")
    return lines


def host_lines(text: str, *, source: str) -> list[str]:
    """`split_lines` for what a tool prints of one host."""
    return split_lines(text, source=source, maximum=MAXIMUM_HOST_LINES)


def _too_long(maximum: int, source: str) -> InputError:
    return InputError(f"the text has more than {maximum:,} lines", where=source, hint="is this the right file?")


def _encoding(data: bytes) -> str:
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return encoding
    # Text of mostly ASCII letters in UTF-16 has a zero in every other byte.
    head = data[:200]
    if len(head) >= 4 and head[1::2].count(0) > len(head) // 3:
        return "utf-16-le"
    if len(head) >= 4 and head[0::2].count(0) > len(head) // 3:
        return "utf-16-be"
    return "utf-8"
