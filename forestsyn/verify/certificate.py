"""How the checkers of certificates report: every violation is a sentence with its witness, 20 at most."""

from __future__ import annotations

from collections.abc import Sequence

from forestsyn.errors import VerificationError

#: Violations that one error lists; one kind of fault never needs more to be understood.
MAXIMUM_VIOLATIONS = 20


def reject_if_any(subject: str, violations: Sequence[str]) -> None:
    """Raise VerificationError about `subject` when there are violations; lists the first 20."""
    if not violations:
        return
    count = len(violations)
    number = f"{MAXIMUM_VIOLATIONS} or more violations" if count >= MAXIMUM_VIOLATIONS else f"{count} violations"
    raise VerificationError(
        f"{subject} is wrong: {'1 violation' if count == 1 else number}",
        violations=violations[:MAXIMUM_VIOLATIONS],
    )
