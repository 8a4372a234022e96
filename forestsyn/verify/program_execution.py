"""Races and results for each placement of the buffers that a program offers itself for."""

from __future__ import annotations

from collections.abc import Sequence

from forestsyn.ir.program import Buffer, Location, Program
from forestsyn.verify.program_deadlock import warn_of_size
from forestsyn.verify.program_machine import BUFFER_INDEX, Machine
from forestsyn.verify.program_memory import RankMemory, lay_out
from forestsyn.verify.program_races import Race, find_overlaps, find_races
from forestsyn.verify.program_report import VIOLATIONS_PER_KIND, Place, ProgramLog
from forestsyn.verify.program_run import UNBOUNDED, WHOLE, Run, run_machine
from forestsyn.verify.program_values import KNOWN_COLLECTIVES, ValueFault, find_value_faults
from forestsyn.verify.runtime_limits import RUNTIMES

_BUFFERS = {index: buffer for buffer, index in BUFFER_INDEX.items()}


def check_execution(program: Program, machine: Machine, run: Run, log: ProgramLog) -> None:
    """Reports races and wrong results. run: a finished run of `machine` with messages of one chunk."""
    for in_place in (True, False):
        runtimes = _runtimes_of(program, in_place, log)
        if runtimes:
            _check_placement(program, machine, run, in_place, runtimes, log)


def _runtimes_of(program: Program, in_place: bool, log: ProgramLog) -> list[str]:
    """The runtimes that call the program with this placement.

    A runtime that knows one flag only takes every program for the one or the other; the others go by both flags.
    """
    offered = program.in_place if in_place else program.out_of_place
    single = program.in_place is in_place
    return [name for name in log.runtimes if (offered if RUNTIMES[name].both_places else single)]


def _check_placement(
    program: Program, machine: Machine, run: Run, in_place: bool, runtimes: list[str], log: ProgramLog
) -> None:
    memory = lay_out(program, in_place=in_place)
    suffix = f" ({'in place' if in_place else 'out of place'})" if program.in_place and program.out_of_place else ""
    for overlap in find_overlaps(machine, memory):
        message = f"its source and its destination overlap without being the same{suffix}"
        log.violate("overlap", message, machine.place(overlap.thread, overlap.action), runtimes=runtimes)
    if not in_place:
        _check_input_kept(program, machine, suffix, runtimes, log)
    ordered = _check_races(program, machine, memory, run, suffix, runtimes, log)
    if ordered is None or program.collective not in KNOWN_COLLECTIVES:
        return
    faults, root = find_value_faults(program, machine, memory, ordered, limit=VIOLATIONS_PER_KIND)
    if root is not None and log.root is None:
        log.root = root
        log.note(f"root {root}, {'as given' if program.root is not None else 'inferred from the result'}")
    for fault in faults:
        _report_fault(machine, fault, suffix, runtimes, log)


def _check_input_kept(program: Program, machine: Machine, suffix: str, runtimes: list[str], log: ProgramLog) -> None:
    """Out of place the input belongs to the caller and is constant."""
    if program.collective not in KNOWN_COLLECTIVES:
        return
    for thread, owner in enumerate(machine.threads):
        for index, action in enumerate(owner.actions):
            if action.shape.writes and action.destination[0] == BUFFER_INDEX[Buffer.INPUT]:
                message = f"out of place it writes i[{action.destination[1]}], the caller's constant input{suffix}"
                location = Location(buffer=Buffer.INPUT, offset=action.destination[1])
                place = machine.place(thread, index)
                log.violate("input-overwritten", message, place, runtimes=runtimes, location=location)


def _check_races(
    program: Program,
    machine: Machine,
    memory: Sequence[RankMemory],
    run: Run,
    suffix: str,
    runtimes: list[str],
    log: ProgramLog,
) -> Run | None:
    """Reports races; returns a run whose order gives the values, None where races leave them open."""
    split = find_races(machine, memory, run, limit=VIOLATIONS_PER_KIND)
    if not split:
        return run
    whole = run
    if machine.largest_count() > 1:
        whole = run_machine(machine, depth=UNBOUNDED, unit=WHOLE)
        races = find_races(machine, memory, whole, limit=VIOLATIONS_PER_KIND)
    else:
        races = split
    if races:
        for race in races:
            _report_race(machine, race, suffix, runtimes, log)
        return None
    place = machine.place(split[0].thread, split[0].action)
    what = f"race once actions are split: {place} {_describe_race(machine, split[0])}{suffix}"
    warn_of_size(program, log, "race-size", what, machine.largest_count() - 1, None)
    return whole


def _report_race(machine: Machine, race: Race, suffix: str, runtimes: list[str], log: ProgramLog) -> None:
    log.violate(
        "race",
        f"{_describe_race(machine, race)}{suffix}",
        machine.place(race.thread, race.action),
        runtimes=runtimes,
        location=Location(buffer=_BUFFERS[race.buffer], offset=race.offset),
    )


def _describe_race(machine: Machine, race: Race) -> str:
    name = f"{_BUFFERS[race.buffer].value}[{race.offset}]"
    other = machine.threads[race.other_thread].number
    return (
        f"{race.word} {name}, and threadblock {other} step {race.other_action} {race.other_word} it in no fixed order"
    )


def _report_fault(machine: Machine, fault: ValueFault, suffix: str, runtimes: list[str], log: ProgramLog) -> None:
    location = Location(buffer=_BUFFERS[fault.buffer], offset=fault.offset)
    place = machine.place(fault.thread, fault.action) if fault.thread >= 0 else Place(fault.rank)
    log.violate(fault.kind, fault.message + suffix, place, runtimes=runtimes, location=location)
