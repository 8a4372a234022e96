"""The attributes of one element, read as the runtimes read them."""

from __future__ import annotations

from forestsyn.frontend.msccl_findings import DIALECTS, FindingLog
from forestsyn.frontend.msccl_integers import is_plain, read_c_integer
from forestsyn.frontend.msccl_tree import Element


class Fields:
    """Typed access to the attributes of `element`; whatever is odd goes to the log, with the element's place."""

    __slots__ = ("_log", "element")

    def __init__(self, element: Element, log: FindingLog) -> None:
        self.element = element
        self._log = log

    def require(self, *names: str, dialects: tuple[str, ...] = DIALECTS) -> None:
        """`dialects` refuse the file if one of `names` is absent; with all of them there is no program left."""
        for name in names:
            if name not in self.element.attributes:
                message = f"<{self.element.name}> lacks the attribute '{name}'"
                if dialects == DIALECTS:
                    self._log.unreadable("attribute", message, self.element.offset)
                else:
                    self._log.refuse(
                        "attribute", f"{message}, needed by {', '.join(dialects)}", self.offset, dialects
                    )

    def has(self, name: str) -> bool:
        """True when the attribute is there."""
        return name in self.element.attributes

    def text(self, name: str) -> str:
        """Its text, empty where it is absent (which `require` has reported)."""
        return self.element.attributes.get(name, "")

    def integer(self, name: str, *, bits: int = 32) -> int:
        """Its value as a C integer of `bits` bits, 0 where absent."""
        text = self.element.attributes.get(name)
        if text is None:
            return 0
        value = int(text) if is_plain(text) else self._odd_integer(name, text)
        if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
            self.misbehave("integer", f"{name} is {text[:40]}, which does not fit {bits} bits", DIALECTS)
        return value

    def switch(self, name: str) -> bool:
        """Its value as a 0/1 switch."""
        value = self.integer(name)
        if value not in (0, 1):
            self.misbehave("switch", f"{name} is {value}, expected 0 or 1", DIALECTS)
        return value != 0

    @property
    def offset(self) -> int:
        """Where the element starts in the text."""
        return self.element.offset

    def refuse(self, kind: str, message: str, dialects: tuple[str, ...]) -> None:
        """See FindingLog."""
        self._log.refuse(kind, message, self.offset, dialects)

    def unreadable(self, kind: str, message: str) -> None:
        """See FindingLog."""
        self._log.unreadable(kind, message, self.offset)

    def give_up(self) -> None:
        """What the log was told leaves no program to look at."""
        self._log.readable = False

    def misbehave(self, kind: str, message: str, dialects: tuple[str, ...]) -> None:
        """See FindingLog."""
        self._log.misbehave(kind, message, self.offset, dialects)

    def note(self, kind: str, message: str) -> None:
        """See FindingLog."""
        self._log.note(kind, message, self.offset)

    def _odd_integer(self, name: str, text: str) -> int:
        value = read_c_integer(text)
        message = f"{name} is '{text[:40]}', which the runtimes read as {value}; write plain decimal numbers"
        self.misbehave("integer", message, DIALECTS)
        return value
