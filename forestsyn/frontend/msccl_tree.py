"""From tags to the tree algo > gpu > tb > step, which is all that the runtimes keep of a file."""

from __future__ import annotations

from forestsyn.frontend.msccl_findings import EXECUTORS, FindingLog
from forestsyn.frontend.msccl_tokens import (
    ATTRIBUTES_MAX,
    LENGTH_MAX,
    Tag,
    TagKind,
    TokenError,
    split_attributes,
    tokenize,
)

#: Which element the runtimes look for inside which; all others are skipped with everything in them.
_CHILD = {None: "algo", "algo": "gpu", "gpu": "tb", "tb": "step"}
#: Real files nest four deep; the runtimes' parser recurses on the machine's stack.
_DEPTH_MAX = 32

_KNOWN = {
    "algo": frozenset(
        (
            *("name", "ngpus", "nchunksperloop", "nchannels", "proto", "coll", "inplace", "outofplace"),
            *("minBytes", "maxBytes", "nthreads", "redop"),
        )
    ),
    "gpu": frozenset(("id", "i_chunks", "o_chunks", "s_chunks")),
    "tb": frozenset(("id", "send", "recv", "chan")),
    "step": frozenset(("s", "type", "srcbuf", "srcoff", "dstbuf", "dstoff", "cnt", "depid", "deps", "hasdep")),
}


class Element:
    """One kept element: its attributes as text, and its children of the next kind in document order."""

    __slots__ = ("attributes", "children", "name", "offset")

    def __init__(self, name: str, attributes: dict[str, str], offset: int) -> None:
        self.name = name
        self.attributes = attributes
        self.offset = offset
        self.children: list[Element] = []


def read_tree(text: str, log: FindingLog) -> Element | None:
    """The first <algo> of `text`, or None when there is none or the text breaks off; `log` then says why."""
    builder = _TreeBuilder(log)
    try:
        for tag in tokenize(text):
            if not builder.take(tag):
                return None
    except TokenError as error:
        log.unreadable("syntax", error.message, error.offset)
        return None
    return builder.finish(text)


class _TreeBuilder:
    def __init__(self, log: FindingLog) -> None:
        self._log = log
        self._algorithm: Element | None = None
        # Open tags, outermost first, each with its element, or None where it is skipped.
        self._open: list[tuple[str, Element | None]] = []
        self._unknown: set[tuple[str, str]] = set()
        self._first = True

    def take(self, tag: Tag) -> bool:
        """Adds one tag. Returns False when no runtime would read on."""
        if tag.kind is TagKind.CLOSE:
            return self._close(tag)
        if self._first and tag.name != "algo":
            message = f"the first element must be <algo>, found <{tag.name[:40]}>"
            self._log.refuse("first-element", message, tag.offset, EXECUTORS)
        self._first = False
        element = self._element(tag)
        if tag.kind is TagKind.OPEN:
            self._open.append((tag.name, element))
            if len(self._open) > _DEPTH_MAX:
                self._log.unreadable("nesting", f"elements nest more than {_DEPTH_MAX} deep", tag.offset)
                return False
        return True

    def finish(self, text: str) -> Element | None:
        if self._open:
            name = self._open[-1][0][:40]
            self._log.unreadable("syntax", f"the file ends before </{name}>: it is cut short", len(text))
            return None
        if self._algorithm is None:
            found = "nothing but elements of other names" if text.strip() else "an empty file"
            self._log.unreadable("no-algorithm", f"expected an <algo> element, found {found}", None)
        return self._algorithm

    def _close(self, tag: Tag) -> bool:
        name = self._open.pop()[0] if self._open else None
        if name == tag.name:
            return True
        expected = f"</{name[:40]}>" if name is not None else "no closing tag"
        self._log.unreadable("syntax", f"expected {expected}, found </{tag.name[:40]}>", tag.offset)
        return False

    def _element(self, tag: Tag) -> Element | None:
        parent: Element | None = None
        expected: str | None = "algo"
        if self._open:
            parent = self._open[-1][1]
            expected = _CHILD.get(parent.name) if parent is not None else None
        if tag.name != expected:
            self._note_once(tag.name, "", f"<{tag.name[:40]}> means nothing here; the runtimes skip it", tag.offset)
            return None
        element = Element(tag.name, self._attributes(tag), tag.offset)
        if parent is not None:
            parent.children.append(element)
        elif self._algorithm is None:
            self._algorithm = element
        else:
            self._log.note("second-algorithm", "only the first <algo> of a file is used", tag.offset)
        return element

    def _attributes(self, tag: Tag) -> dict[str, str]:
        pairs = split_attributes(tag.attributes)
        if len(tag.attributes) > LENGTH_MAX:
            self._check_lengths(pairs, tag)
        if len(pairs) > ATTRIBUTES_MAX:
            message = (
                f"<{tag.name}> has {len(pairs)} attributes, extra spaces counted; only {ATTRIBUTES_MAX} are kept"
            )
            self._log.note("attribute-count", message, tag.offset)
            del pairs[ATTRIBUTES_MAX:]
        attributes = dict(reversed(pairs))  # of two attributes of one name the runtimes find the first
        if attributes.keys() - _KNOWN[tag.name]:
            for name, _ in pairs:
                if name and name not in _KNOWN[tag.name]:
                    self._note_once(tag.name, name, f"<{tag.name}> has no attribute '{name[:40]}'", tag.offset)
        return attributes

    def _check_lengths(self, pairs: list[tuple[str, str]], tag: Tag) -> None:
        for name, value in pairs:
            if len(name) > LENGTH_MAX or len(value) > LENGTH_MAX:
                message = f"<{tag.name}> has an attribute of more than {LENGTH_MAX} characters: '{name[:20]}…'"
                self._log.refuse("attribute-length", message, tag.offset)

    def _note_once(self, element: str, attribute: str, message: str, offset: int) -> None:
        if (element, attribute) not in self._unknown:
            self._unknown.add((element, attribute))
            self._log.note("unknown-attribute" if attribute else "unknown-element", message, offset)
