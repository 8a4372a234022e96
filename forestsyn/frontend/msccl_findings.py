"""What the reader of MSCCL XML has to say about a file's form, runtime by runtime.

The facts come from the runtimes' sources: microsoft/msccl b23e9cd5 (`msccl`), Azure/msccl-executor-nccl c6f6b36d
(`executor`), ROCm/rccl 0cbce2a7 (`rccl`).
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

MSCCL = "msccl"
EXECUTOR = "executor"
RCCL = "rccl"
DIALECTS = (MSCCL, EXECUTOR, RCCL)
#: The two that share a parser.
EXECUTORS = (EXECUTOR, RCCL)

#: A broken generator repeats its slip on every line; the first ones are enough.
FINDINGS_PER_KIND = 10


class Effect(StrEnum):
    """What a finding does to a dialect. LOAD: its parser refuses. RUN: it loads, then misbehaves. NOTE: harmless."""

    LOAD = "load"
    RUN = "run"
    NOTE = "note"


class Finding(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One remark on the form of a file.

    kind: a short stable word. message: what was found, what was expected. line: 1-based, None for the whole file.
    dialects: the runtimes that are affected, in the order of `DIALECTS`.
    """

    kind: str
    message: str
    line: int | None
    effect: Effect
    dialects: tuple[str, ...]


class FindingLog:
    """Collects findings about one text; turns offsets into line numbers and caps each kind."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._findings: list[Finding] = []
        self._counts: dict[str, int] = {}
        #: False once something was found that no runtime loads, so that the file has no meaning as a program.
        self.readable = True

    def refuse(self, kind: str, message: str, offset: int | None, dialects: tuple[str, ...] = DIALECTS) -> None:
        """`dialects` do not load the file."""
        self._add(kind, message, offset, Effect.LOAD, dialects)

    def unreadable(self, kind: str, message: str, offset: int | None) -> None:
        """No dialect loads the file and nothing more can be said of its program."""
        self.readable = False
        self._add(kind, message, offset, Effect.LOAD, DIALECTS)

    def misbehave(self, kind: str, message: str, offset: int | None, dialects: tuple[str, ...] = DIALECTS) -> None:
        """`dialects` load the file but do not run what it says."""
        self._add(kind, message, offset, Effect.RUN, dialects)

    def note(self, kind: str, message: str, offset: int | None) -> None:
        """Worth knowing, without effect."""
        self._add(kind, message, offset, Effect.NOTE, DIALECTS)

    def findings(self) -> tuple[Finding, ...]:
        """Everything so far, in the order found, with one line more for each kind that was cut short."""
        surplus = [
            Finding(
                kind=kind,
                message=f"{count - FINDINGS_PER_KIND} more of this kind",
                line=None,
                effect=Effect.NOTE,
                dialects=DIALECTS,
            )
            for kind, count in self._counts.items()
            if count > FINDINGS_PER_KIND
        ]
        return (*self._findings, *surplus)

    def _add(self, kind: str, message: str, offset: int | None, effect: Effect, dialects: tuple[str, ...]) -> None:
        self._counts[kind] = self._counts.get(kind, 0) + 1
        if self._counts[kind] > FINDINGS_PER_KIND:
            return
        line = None if offset is None else self._text.count("\n", 0, offset) + 1
        self._findings.append(Finding(kind=kind, message=message, line=line, effect=effect, dialects=dialects))
