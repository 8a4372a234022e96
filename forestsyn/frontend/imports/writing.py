"""What a reader found, as native YAML text: a comment at every guess, and above them what the file did not tell."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from forestsyn.frontend.imports.kinds import DocumentPath, Found

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./+-]*(?: [A-Za-z0-9_./+-]+)*")
_RESERVED = frozenset(("true", "false", "null", "yes", "no", "on", "off", "y", "n"))
_CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029\ud800-\udfff\ufeff]+")
_WIDTH = 110


def document_text(found: Found, *, sources: Sequence[str] = ()) -> str:
    """The document of `found` as native YAML; reading it gives the same values.

    Every guess stands as a comment behind its value; the notes stand at the top. The text ends with a newline.
    """
    guesses: dict[DocumentPath, list[str]] = {}
    for guess in found.guesses:
        guesses.setdefault(guess.path, []).append(guess.text)
    lines = [f"# imported from {', '.join(sources)} ({found.kind})" if sources else f"# imported from {found.kind}"]
    lines += [f"# note: {note}" for note in found.notes]
    lines = [_comment_line(line) for line in lines]
    writer = _Writer(guesses)
    for key, value in found.document.items():
        writer.entry(key, value, (key,), 0)
    left = [text for path, texts in guesses.items() if path not in writer.told for text in texts]
    lines += [_comment_line(f"# guess: {text}") for text in dict.fromkeys(left)]
    return "\n".join((*lines, *writer.lines)) + "\n"


def plain_text(found: Found) -> list[str]:
    """Notes and guesses as sentences, each once: for those who compile the file without writing it."""
    told: dict[str, int] = {}
    for guess in found.guesses:
        sentence = f"assumed: {'.'.join(str(step) for step in guess.path if isinstance(step, str))}: {guess.text}"
        told[sentence] = told.get(sentence, 0) + 1
    return [*found.notes, *(f"{text} ({count} times)" if count > 1 else text for text, count in told.items())]


class _Writer:
    """Lines of YAML: mappings and lists of mappings in blocks, each link and each short list on one line."""

    def __init__(self, guesses: dict[DocumentPath, list[str]]) -> None:
        self.lines: list[str] = []
        self.told: set[DocumentPath] = set()
        self._guesses = guesses
        self._prefixes = {path[:size] for path in guesses for size in range(1, len(path) + 1)}

    def entry(self, key: str, value: Any, path: DocumentPath, depth: int) -> None:
        """`key: value`, in a block where it holds mappings."""
        indent = "  " * depth
        if isinstance(value, dict) and value and (_is_deep(value) or len(flow(value)) > _WIDTH):
            self.lines.append(f"{indent}{scalar(key)}:{self._comments(path, deep=False)}")
            for name, item in value.items():
                self.entry(name, item, (*path, name), depth + 1)
        elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
            self.lines.append(f"{indent}{scalar(key)}:{self._comments(path, deep=False)}")
            for place, item in enumerate(value):
                self.lines.append(f"{indent}  - {flow(item)}{self._comments((*path, place))}")
        else:
            self.lines.append(f"{indent}{scalar(key)}: {flow(value)}{self._comments(path)}")

    def _comments(self, path: DocumentPath, *, deep: bool = True) -> str:
        """The guesses at `path`, and below it when `deep`, as a comment."""
        texts: list[str] = []
        if path in self._prefixes:
            for place, found in self._guesses.items():
                if place == path or (deep and place[: len(path)] == path):
                    texts.extend(found)
                    self.told.add(place)
        return _comment_line(f"  # {'; '.join(dict.fromkeys(texts))}") if texts else ""


def _is_deep(value: dict[str, Any]) -> bool:
    return any(isinstance(item, dict | list) and item for item in value.values())


def flow(value: Any) -> str:
    """`value` on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{scalar(key)}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    return scalar(value)


def scalar(value: Any) -> str:
    """A text, whole number, truth or nothing; a text that could be read otherwise is quoted."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    text = str(value)
    if _PLAIN.fullmatch(text) and text.lower() not in _RESERVED:
        return text
    return json.dumps(_CONTROL.sub(" ", text), ensure_ascii=False)


def _comment_line(text: str) -> str:
    return _CONTROL.sub(" ", text)
