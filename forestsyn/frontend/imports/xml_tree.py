"""XML text to a tree of plain elements, safely.

Entities are refused where they are declared, so that nothing expands; nothing outside the text is read; depth and
number of elements are bounded.
"""

from __future__ import annotations

from xml.parsers import expat

from forestsyn.errors import InputError

MAXIMUM_ELEMENTS = 300_000
MAXIMUM_DEPTH = 100
_MAXIMUM_TEXT = 4_000_000


class Element:
    """An element: attributes, children in order, the text directly in it, its line."""

    __slots__ = ("attributes", "children", "line", "name", "text")

    def __init__(self, name: str, attributes: dict[str, str], line: int) -> None:
        self.name = name
        self.attributes = attributes
        self.children: list[Element] = []
        self.text = ""
        self.line = line

    def get(self, name: str, default: str = "") -> str:
        """The attribute `name`, without blanks around it."""
        return self.attributes.get(name, default).strip()

    def all(self, name: str) -> list[Element]:
        """The children called `name`."""
        return [child for child in self.children if child.name == name]


def parse_xml(text: str, *, source: str, maximum: int = MAXIMUM_ELEMENTS) -> Element:
    """The root element of `text`, with at most `maximum` elements in all.

    Raises InputError for text that is no XML, declares entities, or is too large.
    """
    builder = _Builder(source, maximum)
    try:
        data = text.removeprefix("\ufeff").lstrip().encode("utf-8")
        builder.parser.Parse(data, True)
    except expat.ExpatError as error:
        raise InputError(
            f"this is not XML: {expat.ErrorString(error.code)}",
            where=f"{source}:{error.lineno}",
            hint="the file may be cut short; dump it again",
        ) from None
    except UnicodeEncodeError:
        raise InputError("the text holds characters that XML cannot have", where=source) from None
    assert builder.root is not None, "expat refuses a document without an element"
    return builder.root


class _Builder:
    def __init__(self, source: str, maximum: int) -> None:
        # The text is decoded already, so what the XML declaration says of its encoding does not matter.
        self.parser = expat.ParserCreate("utf-8")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.EntityDeclHandler = self._entity
        self.parser.ExternalEntityRefHandler = None
        self.root: Element | None = None
        self._open: list[Element] = []
        self._count = 0
        self._text = 0
        self._source = source
        self._maximum = maximum

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        element = Element(name, attributes, self.parser.CurrentLineNumber)
        self._count += 1
        if self._count > self._maximum or len(self._open) >= MAXIMUM_DEPTH:
            limit = f"more than {self._maximum:,} elements" if self._count > self._maximum else "too deep nesting"
            raise InputError(f"the XML has {limit}", where=f"{self._source}:{element.line}")
        if self._open:
            self._open[-1].children.append(element)
        else:
            self.root = element
        self._open.append(element)

    def _end(self, name: str) -> None:
        self._open.pop()

    def _characters(self, data: str) -> None:
        self._text += len(data)
        if self._open and data.strip() and self._text <= _MAXIMUM_TEXT:
            self._open[-1].text += data

    def _entity(self, name: str, *_: object) -> None:
        raise InputError(
            f"the XML declares an entity '{name[:40]}', which is not accepted",
            where=f"{self._source}:{self.parser.CurrentLineNumber}",
            hint="no tool that dumps a topology writes entities",
        )
