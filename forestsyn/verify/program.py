"""The independent verifier of threadblock programs, and so of MSCCL XML files.

It shares no code with the stages that make programs. The checks, each in a module of its own, in this order:

1. form and limits of each runtime (program_form, program_steps), with what the reader of the file found;
2. pairing of both ends of each connection (program_pairing);
3. deadlock by message-level runs at FIFO depth 2 and 8, with whole and with split actions (program_deadlock);
4. races on chunks (program_races), for each placement of the buffers that the program offers itself for;
5. the result, by symbolic execution that counts contributions (program_values), likewise.

Later checks need the earlier ones: a program whose form, pairing or progress is broken has no meaningful execution,
and the report says that it was not executed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol as Interface

from forestsyn.errors import InputError
from forestsyn.ir.program import Program
from forestsyn.verify.program_deadlock import check_deadlock
from forestsyn.verify.program_execution import check_execution
from forestsyn.verify.program_form import check_form
from forestsyn.verify.program_machine import build_machine
from forestsyn.verify.program_pairing import check_pairing
from forestsyn.verify.program_report import ALL_RUNTIMES, Effect, ProgramLog, Report
from forestsyn.verify.program_values import KNOWN_COLLECTIVES


class FormFinding(Interface):
    """What a reader found in the text of a file, see `forestsyn.frontend.msccl_findings.Finding`."""

    @property
    def kind(self) -> str:
        """A short stable word."""

    @property
    def message(self) -> str:
        """What was found."""

    @property
    def line(self) -> int | None:
        """1-based; None for the whole file."""

    @property
    def effect(self) -> str:
        """``load`` (its loader refuses), ``run`` (it loads, then misbehaves) or ``note``."""

    @property
    def dialects(self) -> tuple[str, ...]:
        """The runtimes that it concerns."""


def verify_program(
    program: Program | None,
    *,
    source: str = "program",
    findings: Iterable[FormFinding] = (),
    target: str | None = None,
    strict: bool = False,
) -> Report:
    """Checks `program` for the runtime `target`, or for all of them (None).

    program: None when the reader could make none; `findings` then hold the reason. source: its name in reports.
    target: ``msccl``, ``executor`` or ``rccl``; with None the program is accepted if at least one of them loads it,
    runs it and gets the right result. strict: hazards that bite at some sizes or FIFO depths are violations, not
    warnings. Raises InputError for an unknown target; what is wrong with the program is in the report.
    """
    if target is not None and target not in ALL_RUNTIMES:
        raise InputError(f"unknown runtime '{target}', expected one of {', '.join(ALL_RUNTIMES)}", where="target")
    log = ProgramLog(ALL_RUNTIMES if target is None else (target,), strict=strict)
    _take_findings(findings, log)
    if program is None:
        log.violate("unreadable", "no runtime can make a program of this file", effect=Effect.LOAD)
        return log.report(source)
    check_form(program, log)
    if log.executable:
        _execute(program, log)
    if not log.executable:
        log.note("not executed, or not to the end: first mend the violations above")
    return log.report(source)


def _execute(program: Program, log: ProgramLog) -> None:
    machine = build_machine(program)
    check_pairing(machine, log)
    if not log.executable:
        return
    run = check_deadlock(program, machine, log)
    if run is None:
        return
    if program.collective not in KNOWN_COLLECTIVES:
        log.note(f"the result of '{program.collective}' is not defined, so only form, progress and races are checked")
    check_execution(program, machine, run, log)


def _take_findings(findings: Iterable[FormFinding], log: ProgramLog) -> None:
    for finding in findings:
        where = "" if finding.line is None else f"line {finding.line}: "
        message = f"{where}{finding.message}"
        if finding.effect in (Effect.LOAD, Effect.RUN):
            effect = Effect(finding.effect)
            log.violate(finding.kind, message, effect=effect, runtimes=finding.dialects, line=finding.line)
        else:
            log.note(message)
