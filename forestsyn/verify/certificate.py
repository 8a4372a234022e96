"""How the checkers of certificates report: every violation is a sentence with its witness, 20 at most."""

from __future__ import annotations

from collections.abc import Sequence

from forestsyn.errors import VerificationError
from forestsyn.units import format_count

#: Violations that one error lists; one kind of fault never needs more to be understood.
MAXIMUM_VIOLATIONS = 20


def reject_if_any(subject: str, violations: Sequence[str]) -> None:
    """Raise VerificationError about `subject` when there are violations; lists the first 20."""
    if not violations:
        return
    listed = violations[:MAXIMUM_VIOLATIONS]
    more = "or more violation" if len(listed) == MAXIMUM_VIOLATIONS else "violation"
    raise VerificationError(
        f"{subject} is wrong: {format_count(len(listed), more)}",
        violations=listed,
    )
