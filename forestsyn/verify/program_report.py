"""What the program verifier found: violations with their witness, warnings with their condition, and the verdict."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

import msgspec

from forestsyn.errors import VerificationError
from forestsyn.ir.program import Location
from forestsyn.units import format_count
from forestsyn.verify.runtime_limits import RUNTIMES

#: Of one kind; a broken generator repeats its fault on every rank.
VIOLATIONS_PER_KIND = 10


class Effect(StrEnum):
    """LOAD: the runtime refuses the file. RUN: it loads, then hangs, crashes, falls back or computes wrongly."""

    LOAD = "load"
    RUN = "run"


class Violation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One fault.

    kind: a short stable word. message: a sentence that names the place and the witness. runtimes: who is affected.
    rank, threadblock, step, buffer, chunk: the place, as far as there is one; line: the line of the file.
    """

    kind: str
    message: str
    effect: Effect
    runtimes: tuple[str, ...]
    rank: int | None = None
    threadblock: int | None = None
    step: int | None = None
    buffer: str | None = None
    chunk: int | None = None
    line: int | None = None


class ProgramWarning(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that bites only under a condition.

    fifo_depth: the program hangs where a connection holds only this many messages.
    chunk_bytes: it goes wrong once a chunk is larger than this. Both None for general advice.
    """

    kind: str
    message: str
    runtimes: tuple[str, ...]
    fifo_depth: int | None = None
    chunk_bytes: int | None = None


class Report(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The verdict on one program.

    runtimes: the ones that were asked about. loads: those whose loader takes the file. accepts: those on which it
    also runs and gives the right result. violations: all faults, each with the runtimes it concerns. notes:
    remarks without effect. root: the root of broadcast and reduce, given or inferred.
    """

    source: str
    runtimes: tuple[str, ...]
    loads: tuple[str, ...]
    accepts: tuple[str, ...]
    violations: tuple[Violation, ...]
    warnings: tuple[ProgramWarning, ...]
    notes: tuple[str, ...]
    root: int | None = None

    @property
    def accepted(self) -> bool:
        """True when at least one of the runtimes that were asked about accepts the program."""
        return bool(self.accepts)

    def raise_if_rejected(self) -> None:
        """Raises VerificationError with all violations unless the program is accepted."""
        if self.accepted:
            return
        raise VerificationError(
            f"the program is rejected: {format_count(len(self.violations), 'violation')}",
            violations=[f"{violation.kind}: {violation.message}" for violation in self.violations],
            where=self.source,
        )


class Place(msgspec.Struct, frozen=True):
    """Where a fault is; `str()` reads ``rank 0 threadblock 2 step 5``."""

    rank: int | None = None
    threadblock: int | None = None
    step: int | None = None

    def __str__(self) -> str:
        parts = (("rank", self.rank), ("threadblock", self.threadblock), ("step", self.step))
        return " ".join(f"{word} {number}" for word, number in parts if number is not None)


class ProgramLog:
    """Collects what the checks of one program find.

    runtimes: those that were asked about. strict: a warning with a depth or a size counts as a violation.
    """

    def __init__(self, runtimes: tuple[str, ...], *, strict: bool = False) -> None:
        self.runtimes = runtimes
        self._strict = strict
        self.warnings: list[ProgramWarning] = []
        self.notes: list[str] = []
        self.root: int | None = None
        #: False once a fault was found that leaves the meaning of an execution open.
        self.executable = True
        self._violations: list[Violation] = []
        self._counts: dict[str, int] = {}
        self._refused: set[str] = set()
        self._broken: set[str] = set()

    def violate(
        self,
        kind: str,
        message: str,
        place: Place | None = None,
        *,
        effect: Effect = Effect.RUN,
        runtimes: Collection[str] | None = None,
        blocks: bool = False,
        location: Location | None = None,
        line: int | None = None,
    ) -> None:
        """Adds a fault of `runtimes` (None: all). `blocks`: the program cannot be executed as it stands."""
        affected = tuple(name for name in self.runtimes if runtimes is None or name in runtimes)
        if not affected:
            return
        self._broken.update(affected)
        if effect is Effect.LOAD:
            self._refused.update(affected)
        if blocks:
            self.executable = False
        self._counts[kind] = self._counts.get(kind, 0) + 1
        if self._counts[kind] > VIOLATIONS_PER_KIND:
            return
        where = place or Place()
        self._violations.append(
            Violation(
                kind=kind,
                message=f"{where}: {message}" if place else message,
                effect=effect,
                runtimes=affected,
                rank=where.rank,
                threadblock=where.threadblock,
                step=where.step,
                buffer=location.buffer.value if location else None,
                chunk=location.offset if location else None,
                line=line,
            )
        )

    def warn(
        self,
        kind: str,
        message: str,
        runtimes: Collection[str],
        *,
        fifo_depth: int | None = None,
        chunk_bytes: int | None = None,
    ) -> None:
        """Adds a warning for those of `runtimes` that were asked about."""
        if self._strict and (fifo_depth is not None or chunk_bytes is not None):
            self.violate(kind, message, runtimes=runtimes)
            return
        affected = tuple(name for name in self.runtimes if name in runtimes)
        if affected:
            self.warnings.append(
                ProgramWarning(
                    kind=kind, message=message, runtimes=affected, fifo_depth=fifo_depth, chunk_bytes=chunk_bytes
                )
            )

    def note(self, message: str) -> None:
        """Adds a remark."""
        self.notes.append(message)

    def report(self, source: str) -> Report:
        """Everything found so far."""
        for kind, count in self._counts.items():
            if count > VIOLATIONS_PER_KIND:
                self.note(
                    f"{format_count(count - VIOLATIONS_PER_KIND, 'more violation')} of kind '{kind}', not listed"
                )
        return Report(
            source=source,
            runtimes=self.runtimes,
            loads=tuple(name for name in self.runtimes if name not in self._refused),
            accepts=tuple(name for name in self.runtimes if name not in self._broken),
            violations=tuple(self._violations),
            warnings=tuple(self.warnings),
            notes=tuple(self.notes),
            root=self.root,
        )


ALL_RUNTIMES = tuple(RUNTIMES)
