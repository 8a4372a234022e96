"""The XML of the MSCCL runtimes, as strict as their own parser.

All three runtimes read files with NCCL's miniature parser, which is neither XML nor forgiving: no declaration, no
tab, one space before each attribute, double quotes, no line break inside a tag, at most 16 attributes. A general
XML library would accept files that no runtime loads, so this module reads exactly that language.

Method. One regular expression matches a whole tag; where it does not match, the text is wrong at that place and
the reason is looked up slowly, once, since the first error ends the reading. All quantifiers that could meet
hostile text are possessive: the time is linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

#: The parser keeps this many attributes of a tag and drops the others.
ATTRIBUTES_MAX = 16
#: Longer names are refused, longer values overflow their buffer.
LENGTH_MAX = 254

_NAME = r"[^ >/\n\r=]"
_TAG = re.compile(rf'<(?:/({_NAME}*+)>|({_NAME}++)((?: {_NAME}*+(?:="[^"]*+")?+)*+)(/{_NAME}*+)?+>)')
_ATTRIBUTE = re.compile(rf' ({_NAME}*+)(?:="([^"]*+)")?+')
_BLANK = re.compile(r"[ \n\r]*+")
_TOKEN = re.compile(rf"{_NAME}*+")
_ATTRIBUTES = re.compile(rf'(?: {_NAME}*+(?:="[^"]*+")?+)*+')


class TagKind(IntEnum):
    """`<a>`, `<a/>` and `</a>`."""

    OPEN = 0
    SINGLE = 1
    CLOSE = 2


class Tag(NamedTuple):
    """A tag; `attributes` is its raw text, to be split by `split_attributes` by those who want it."""

    kind: TagKind
    name: str
    attributes: str
    offset: int


class TokenError(Exception):
    """The text is not in the language. Never leaves the front end: the reader turns it into a finding."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


def tokenize(text: str) -> Iterator[Tag]:
    """The tags of `text` in order, comments left out. Raises TokenError where the runtimes' parser would stop."""
    position = _skip_blank(text, 0)
    while position < len(text):
        if text.startswith("<!--", position):
            position = _skip_blank(text, _comment_end(text, position))
            continue
        match = _TAG.match(text, position)
        if match is None:
            raise _explain(text, position)
        closed, name, attributes, single = match.groups()
        if name is None:
            yield Tag(TagKind.CLOSE, closed, "", position)
        else:
            yield Tag(TagKind.SINGLE if single else TagKind.OPEN, name, attributes, position)
        position = _skip_blank(text, match.end())


def split_attributes(text: str) -> list[tuple[str, str]]:
    """(name, value) of each attribute in order. Two spaces in a row make one without a name, as in the parser."""
    return _ATTRIBUTE.findall(text)


def _skip_blank(text: str, position: int) -> int:
    match = _BLANK.match(text, position)
    assert match is not None, "the pattern also matches nothing at all"
    return match.end()


def _comment_end(text: str, position: int) -> int:
    # The parser reads "<!--" and what follows up to a blank as the name of a tag, and a name must not hold "=".
    token = _TOKEN.match(text, position + 1)
    assert token is not None, "the pattern also matches nothing at all"
    if text.startswith("=", token.end()):
        raise TokenError("a comment must have a space right after '<!--'", position)
    if token.end() - position - 1 > LENGTH_MAX:
        raise TokenError(f"the first word of a comment is longer than {LENGTH_MAX} characters", position)
    end = text.find("-->", position + 4)
    if end < 0:
        raise TokenError("this comment never ends", position)
    return end + 3


def _explain(text: str, position: int) -> TokenError:
    """Why no tag starts at `position`, in the words of the parser where it has any."""
    first = text[position]
    if first != "<":
        found = {"\t": "a tab (indent with spaces)", "\0": "a NUL byte (not a text file)"}.get(first, repr(first))
        return TokenError(f"expected '<', found {found}", position)
    if text.startswith("<?", position):
        return TokenError("the runtimes' parser knows no '<?xml …?>' declaration; delete that line", position)
    if text.startswith("</", position):
        return TokenError("a closing tag must be '</name>' without blanks", position)
    return _explain_attributes(text, position)


def _explain_attributes(text: str, position: int) -> TokenError:
    name = _TOKEN.match(text, position + 1)
    assert name is not None, "the pattern also matches nothing at all"
    attributes = _ATTRIBUTES.match(text, name.end())
    assert attributes is not None, "the pattern also matches nothing at all"
    end = attributes.end()
    if not name.group():
        return TokenError("expected the name of an element right after '<'", position)
    if end == len(text):
        return TokenError(f"the file ends inside the tag <{name.group()[:40]}>", position)
    found = text[end]
    if found in "\n\r\t":
        return TokenError("all attributes of a tag must be on its line, one space before each", end)
    if found != "=":
        return TokenError(f"expected '>' or a space, found {found!r}", end)
    if text.startswith("='", end):
        return TokenError("a value must be in double quotes, found a single quote", end)
    if text.startswith('="', end):
        return TokenError("the quote that starts this value is never closed", end)
    return TokenError('expected name="value" without spaces round the equals sign', end)
