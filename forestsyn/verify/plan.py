"""The independent verifier of execution plans, and so of MSCCL++ JSON files.

It shares no code with the stages that make plans, nor with the verifier of programs but for the form of reports.
The checks, in this order:

1. form, ids, ranges and the executor's limits (plan_form);
2. pairing: every counter is taken as often in a call as given (plan_run);
3. progress, order of all accesses, and values, over calls that follow one another (plan_run, plan_memory,
   plan_values): deadlock, races, missing nops, puts before the peer is ready, data overwritten before it is read,
   requests that outlive their call, and the result with every contribution counted once.

Where ranges are cut into shares in different ways, a second run with chunks that the shares do not divide shows
whether the rounding of the loader matters.
"""

from __future__ import annotations

from collections.abc import Iterable

from forestsyn.ir.plan import Plan
from forestsyn.ir.plan import PlanOperation as Op
from forestsyn.verify.plan_actions import Machine
from forestsyn.verify.plan_form import check_plan_form
from forestsyn.verify.plan_limits import RUNTIME
from forestsyn.verify.plan_machine import build_machine, common_elements, shares_overlap
from forestsyn.verify.plan_report import PlanFaults
from forestsyn.verify.plan_run import PlanRun
from forestsyn.verify.program import FormFinding
from forestsyn.verify.program_report import Effect, ProgramLog, Report

#: Cells that operations may touch in one call; plans that a GPU holds need far fewer.
_WORK_MAX = 1 << 22


def verify_plan(
    plan: Plan | None,
    *,
    source: str = "plan",
    findings: Iterable[FormFinding] = (),
    root: int | None = None,
    strict: bool = False,
) -> Report:
    """Checks `plan` for MSCCL++.

    plan: None when the reader could make none; `findings` then hold the reason. source: its name in reports. root: of
    a broadcast or reduce, which a file does not say; None finds the one that fits. strict: what goes wrong at some
    sizes within the window, or rests on relaxed signals or on a `flush` that this version does not execute, is a
    violation, not a warning.
    """
    log = ProgramLog((RUNTIME,), strict=strict)
    for finding in findings:
        if finding.effect == Effect.LOAD:
            log.violate(finding.kind, finding.message, effect=Effect.LOAD)
        else:
            log.note(finding.message)
    if plan is None:
        log.violate("unreadable", "the loader can make no plan of this file", effect=Effect.LOAD)
        return log.report(source)
    check_plan_form(plan, log)
    if log.executable:
        _execute(plan, log, root, strict)
    if not log.executable:
        log.note("not executed, or not to the end: first mend the violations above")
    return log.report(source)


def _execute(plan: Plan, log: ProgramLog, root: int | None, strict: bool) -> None:
    elements = common_elements(plan)
    sizes = [elements, elements + 1] if shares_overlap(plan) else [elements]
    if any(step.operation is Op.PIPELINE for gpu in plan.gpus for block in gpu.blocks for step in block.steps):
        log.note("pipelines are executed in two rounds")
    for size in sizes:
        machine = build_machine(plan, size)
        if _work(machine) > _WORK_MAX:
            text = f"its operations touch {_work(machine):,} cells, too many to be executed here"
            log.violate("too-fine", text, blocks=True)
            return
        log.root = PlanRun(plan, machine, PlanFaults(log, strict=strict), strict=strict).run(root)
        if log.report("").violations:
            return


def _work(machine: Machine) -> int:
    """Cells in memory, and touched by operations."""
    moves = (move for thread in machine.threads for action in thread.actions for move in action.moves)
    touched = sum(access.count for move in moves for access in (*move.sources, *move.destinations))
    return touched + sum(machine.user_cells) + sum(machine.scratch_cells)
