"""A host while a reader describes it: devices, links, what is guessed and what must be asked.

`Box` grows device by device; `box_found` writes it as a native document. Equal links of one device are written as
one entry with a range of names, so that a person can read and edit the result.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from forestsyn.errors import InputError
from forestsyn.frontend.imports.answers import rates_answer
from forestsyn.frontend.imports.kinds import DocumentPath, Found, Guess, Options, Question

_KINDS = ("gpus", "switches", "nics", "cpus")
_PREFIX = {"gpus": "gpu", "switches": "switch", "nics": "nic", "cpus": "cpu"}
_NUMBERED = re.compile(r"(.*?)(0|[1-9][0-9]{0,8})")
#: A person reads so many notes; a broken file can make thousands.
_NOTES_SHOWN = 40

Rate = dict[str, Any]


class Box:
    """Devices by kind in order, links, notes, questions."""

    def __init__(self) -> None:
        self.devices: dict[str, list[str]] = {kind: [] for kind in _KINDS}
        self.links: list[tuple[str, str, Rate, str | None]] = []
        self.one_way: list[tuple[str, str, Rate, str | None]] = []
        self.notes: list[str] = []
        self.questions: dict[str, Question] = {}
        self._names: set[str] = set()

    def add(self, kind: str, name: str) -> str:
        """Add a device; its name, made acceptable and unique."""
        clean = clean_name(name) or _PREFIX[kind]
        unique, number = clean, 1
        while unique in self._names:
            unique = f"{clean[:58]}_{number}"
            number += 1
        self._names.add(unique)
        self.devices[kind].append(unique)
        return unique

    def new(self, kind: str, prefix: str) -> str:
        """Add a device that the file does not name: `prefix` and the next number."""
        number = sum(name.startswith(prefix) for name in self.devices[kind])
        return self.add(kind, f"{prefix}{number}")

    def link(self, tail: str, head: str, rate: Rate | None, why: str | None = None, *, one_way: bool = False) -> None:
        """Add a link; `why` says that the rate is a guess. Without a rate it is left to a question."""
        if rate is not None:
            (self.one_way if one_way else self.links).append((tail, head, rate, why))

    def ask(self, question: Question) -> None:
        """Remember a question, once for each option."""
        self.questions.setdefault(question.option, question)

    def note(self, text: str) -> None:
        """Remember a sentence for people, once."""
        if text not in self.notes:
            self.notes.append(text)

    def template(self) -> tuple[dict[str, Any], list[Guess]]:
        """The devices and links as a template of the native format, and the guesses in it."""
        document: dict[str, Any] = {}
        for kind in _KINDS:
            if self.devices[kind]:
                document[kind] = _device_value(self.devices[kind], _PREFIX[kind])
        entries: list[dict[str, Any]] = []
        guesses: list[Guess] = []
        _write_entries(self.links, {}, entries, guesses)
        _write_entries(self.one_way, {"dir": "one-way"}, entries, guesses)
        if entries:
            document["links"] = entries
        return document, guesses

    def shown_notes(self) -> tuple[str, ...]:
        """The notes, cut when there are very many."""
        if len(self.notes) <= _NOTES_SHOWN:
            return tuple(self.notes)
        return (*self.notes[:_NOTES_SHOWN], f"and {len(self.notes) - _NOTES_SHOWN} more such remarks")


def box_found(box: Box, *, kind: str, source: str, options: Options) -> Found:
    """`box` as what a reader found. Raises InputError when it holds fewer than two GPUs."""
    gpus = len(box.devices["gpus"])
    if gpus < 2:
        raise InputError(
            f"the machine has {gpus} GPU{'s' * (gpus != 1)}; a collective needs at least 2",
            where=source,
            hint="give the output of a machine with more GPUs, or describe several hosts in a native file",
        )
    body, guesses = box.template()
    document = {**header(source, options), **body}
    missing = tuple(box.questions.values())
    return Found(kind=kind, document=document, guesses=tuple(guesses), missing=missing, notes=box.shown_notes())


def header(source: str, options: Options) -> dict[str, Any]:
    """The first keys of every document."""
    name = clean_name(Path(source).name.partition(".")[0]) or "imported"
    return {"forestsyn": 1, "name": name, "rates": rates_answer(options)}


def machine_found(options: Options, *, kind: str, source: str, gpus: int | None) -> Found | None:
    """The document that takes a machine of the catalog instead of the file's own figures, if `--machine` is given."""
    if options.machine is None:
        return None
    document = {**header(source, options), "use": options.machine}
    seen = f"; the file shows {gpus} GPUs" if gpus is not None else ""
    note = f"all figures are those of the machine '{options.machine}', as --machine says{seen}"
    guess = Guess(("use",), "given by --machine")
    return Found(kind=kind, document=document, guesses=(guess,), notes=(note,))


def clean_name(name: str) -> str:
    """`name` with what names of devices may not hold replaced by '-', at most 64 characters."""
    return re.sub(r"[^A-Za-z0-9_.:+-]+", "-", name)[:64].strip("-.:+")


def names_pattern(names: Sequence[str]) -> list[str]:
    """Patterns that stand for exactly `names`: runs of numbers behind one prefix become `gpu[0-3,6]`."""
    groups: dict[str, list[int]] = {}
    for name in names:
        match = _NUMBERED.fullmatch(name)
        if match is None:
            groups.setdefault(f"\0{name}", [])
        else:
            groups.setdefault(match[1], []).append(int(match[2]))
    patterns = []
    for prefix, numbers in groups.items():
        if prefix.startswith("\0"):
            patterns.append(prefix[1:])
        elif len(numbers) == 1:
            patterns.append(f"{prefix}{numbers[0]}")
        else:
            patterns.extend(f"{prefix}[{part}]" for part in _range_texts(sorted(numbers)))
    return patterns


def _range_texts(numbers: Sequence[int]) -> list[str]:
    """`0-3,6`, cut into texts short enough for a pattern."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    texts = [f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs]
    return [",".join(texts[start : start + 8]) for start in range(0, len(texts), 8)]


def _device_value(names: Sequence[str], prefix: str) -> int | list[str]:
    if list(names) == [f"{prefix}{number}" for number in range(len(names))]:
        return len(names)
    result: list[str] = []
    start = 0
    while start < len(names):
        stop = _run_end(names, start)
        if stop - start >= 3:
            match = _NUMBERED.fullmatch(names[start])
            assert match is not None, "a run has numbers"
            result.append(f"{match[1]}[{match[2]}-{int(match[2]) + stop - start - 1}]")
        else:
            result.extend(names[start:stop])
        start = stop
    return result


def _run_end(names: Sequence[str], start: int) -> int:
    """Behind the last of the names from `start` on that count up by one."""
    match = _NUMBERED.fullmatch(names[start])
    if match is None:
        return start + 1
    stop = start + 1
    while stop < len(names) and names[stop] == f"{match[1]}{int(match[2]) + stop - start}":
        stop += 1
    return stop


def _write_entries(
    links: Iterable[tuple[str, str, Rate, str | None]],
    extra: Rate,
    entries: list[dict[str, Any]],
    guesses: list[Guess],
) -> None:
    """Add link entries: all tails with one head and one rate together, then all heads of one tail."""
    by_head: dict[tuple[Any, ...], list[str]] = {}
    for tail, head, rate, why in links:
        by_head.setdefault((head, tuple({**rate, **extra}.items()), why), []).append(tail)
    by_tail: dict[tuple[Any, ...], list[str]] = {}
    for (head, items, why), tails in by_head.items():
        if len(tails) == 1:
            by_tail.setdefault((tails[0], items, why), []).append(head)
        else:
            _append(entries, guesses, tails, [head], dict(items), why)
    for (tail, items, why), heads in by_tail.items():
        _append(entries, guesses, [tail], heads, dict(items), why)


def _append(
    entries: list[dict[str, Any]],
    guesses: list[Guess],
    tails: list[str],
    heads: list[str],
    rate: Rate,
    why: str | None,
) -> None:
    """Add one entry; a device that stands several times in it has parallel links, written as entries of their own."""
    if len(set(tails)) < len(tails) or len(set(heads)) < len(heads):
        for tail in tails:
            for head in heads:
                _append(entries, guesses, [tail], [head], rate, why)
        return
    if why is not None:
        path: DocumentPath = ("links", len(entries), next(iter(rate)))
        guesses.append(Guess(path, why))
    entries.append({"from": _one_or_list(names_pattern(tails)), "to": _one_or_list(names_pattern(heads)), **rate})


def _one_or_list(patterns: list[str]) -> str | list[str]:
    return patterns[0] if len(patterns) == 1 else patterns
