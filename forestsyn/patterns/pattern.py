"""What `candidate_schedules` gives: a name, and either a schedule or an exchange."""

from __future__ import annotations

import msgspec

from forestsyn.ir.schedule import Schedule
from forestsyn.patterns.exchange import Exchange

#: Why most omissions are: an algorithm wants a pair of ranks to talk that cannot directly.
NOT_JOINED = "it needs ranks to talk that reach each other only through other ranks"


class Pattern(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, eq=False):
    """A classic algorithm on one topology.

    name: short and stable, such as `ring x8`. Exactly one of the two others is given. schedule: for the lowering.
    exchange: for `exchange_program`, where a schedule cannot say it: every rank adds up everything by itself, or
    data of several roots travels in one step.
    """

    name: str
    schedule: Schedule | None = None
    exchange: Exchange | None = None


class Omission(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An algorithm that does not exist on a topology, and why."""

    name: str
    reason: str


class Candidates(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, eq=False):
    """All patterns that exist, and the algorithms that do not."""

    patterns: tuple[Pattern, ...]
    omissions: tuple[Omission, ...]
