"""Every error that forestsyn raises on purpose.

    ForestsynError
    ├─ InputError           exit  2   the user's file or option is wrong
    ├─ InfeasibleError      exit  3   no schedule can exist; carries the cut that proves it
    ├─ UnsupportedError     exit  4   valid, but the chosen runtime cannot express it
    ├─ VerificationError    exit  5   a checker rejected a forest, schedule or program
    └─ InternalError        exit 70   an invariant of forestsyn broke; never caused by input

A message answers: what, where, found against expected, what to do. The fields hold the same as data, so that
`--json` and a library caller need not parse text.
"""

from __future__ import annotations

from collections.abc import Sequence


class ForestsynError(Exception):
    """Base of all deliberate errors. `exit_code` is the process status that the command line uses."""

    exit_code = 1

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        head = f"{self.where}: {self.message}" if self.where else self.message
        return f"{head}\n  hint: {self.hint}" if self.hint else head


class InputError(ForestsynError):
    """A file, an option or an argument is wrong. `where` is `FILE:LINE`, a path inside the file, or an option."""

    exit_code = 2


class InfeasibleError(ForestsynError):
    """No schedule can exist. `cut` names the vertices of a set that no link leaves towards the other ranks."""

    exit_code = 3

    def __init__(
        self, message: str, *, cut: Sequence[str] = (), where: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, where=where, hint=hint)
        self.cut = tuple(cut)


class UnsupportedError(ForestsynError):
    """The request is valid but `target` cannot express it: `limit` names the limit, `value` what was needed."""

    exit_code = 4

    def __init__(
        self,
        message: str,
        *,
        target: str | None = None,
        limit: str | None = None,
        value: int | None = None,
        rank: int | None = None,
        where: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, where=where, hint=hint)
        self.target = target
        self.limit = limit
        self.value = value
        self.rank = rank


class VerificationError(ForestsynError):
    """A checker rejected something. `violations` lists what it found, each a sentence with its witness."""

    exit_code = 5

    def __init__(
        self,
        message: str,
        *,
        violations: Sequence[str] = (),
        where: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, where=where, hint=hint)
        self.violations = tuple(violations)

    def __str__(self) -> str:
        lines = [super().__str__(), *(f"  - {violation}" for violation in self.violations)]
        return "\n".join(lines)


class InternalError(ForestsynError):
    """An invariant of forestsyn broke. Never caused by input; please report it."""

    exit_code = 70
