"""Deadlock: at which FIFO depth and from which chunk size a program gets stuck, and the cycle that shows it.

What counts depends on the protocol of the file: a Simple connection holds 2 messages, LL and LL128 hold 8.

- Stuck with whole actions even at depth 8: no connection of any protocol runs it. A violation.
- Stuck with whole actions at depth 2 only: a warning that says the depth, whatever the protocol. (Over a network
  sender and receiver have a ring each, so such Simple files do run somewhere; they hang on NVLink and PCIe.)
- Stuck at the depth of its own protocol only once actions are split into several messages: a warning that says the
  chunk size from which that happens, unless the file's own window of sizes excludes it; a violation if that is so
  at every size of the window.

An action of c chunks is split once c > m, where m = ⌊message size / chunk size⌋ chunks go into one message, between
1 and 71. If messages of m chunks hang and those of m + 1 do not, the program hangs for chunks larger than
message size / (m + 1).
"""

from __future__ import annotations

from forestsyn.ir.program import Program, Protocol
from forestsyn.units import format_bytes, format_count
from forestsyn.verify.program_machine import Machine
from forestsyn.verify.program_report import ProgramLog
from forestsyn.verify.program_run import UNBOUNDED, WHOLE, Run, run_machine
from forestsyn.verify.runtime_limits import FIFO_DEPTH, RUNTIMES, Runtime

_SHALLOW = FIFO_DEPTH[Protocol.SIMPLE]
_DEEP = FIFO_DEPTH[Protocol.LL]
#: Threads of a wait cycle that a message lists.
_CYCLE_SHOWN = 8


def check_deadlock(program: Program, machine: Machine, log: ProgramLog) -> Run | None:
    """Reports deadlocks; returns a finished run with messages of one chunk, None when there is none to have."""
    run = run_machine(machine, depth=_SHALLOW, unit=1)
    if run.finished:
        return run  # then it finishes at every greater depth and with whole actions too, see program_run
    whole = run_machine(machine, depth=_DEEP, unit=WHOLE)
    if not whole.finished:
        _report_cycle(machine, whole, log)
        return None
    _check_depth(program, machine, log)
    _check_split(program, machine, log)
    return run_machine(machine, depth=UNBOUNDED, unit=1)


def warn_of_size(
    program: Program, log: ProgramLog, kind: str, what: str, most_chunks: int, fifo_depth: int | None
) -> None:
    """Reports `what`, which happens when at most `most_chunks` chunks fit into one message.

    A warning with the chunk size for every runtime whose window of sizes reaches it, a violation for those whose
    window holds nothing else.
    """
    affected: dict[int, list[str]] = {}
    for name in log.runtimes:
        runtime = RUNTIMES[name]
        size = runtime.message_bytes[program.protocol]
        smallest, largest = _chunk_window(program, runtime)
        if largest is not None and size // max(1, largest) > most_chunks:
            continue
        if size // max(1, smallest) <= most_chunks:
            message = f"{what}, at every size that the file offers itself for ({smallest}-byte chunks and more)"
            log.violate(kind, message, runtimes=(name,))
        else:
            affected.setdefault(size // (most_chunks + 1), []).append(name)
    for chunk_bytes, names in affected.items():
        message_bytes = chunk_bytes * program.chunk_count
        limit = f"chunks larger than {format_bytes(chunk_bytes)} (messages larger than {format_bytes(message_bytes)})"
        log.warn(kind, f"{what}, for {limit}", names, fifo_depth=fifo_depth, chunk_bytes=chunk_bytes)


def _check_depth(program: Program, machine: Machine, log: ProgramLog) -> None:
    """Whole actions pass at depth 8: says from which depth on they do, if that is more than 2."""
    shallow = run_machine(machine, depth=_SHALLOW, unit=WHOLE)
    if shallow.finished:
        return
    depth = next(
        depth for depth in range(_SHALLOW + 1, _DEEP + 1) if run_machine(machine, depth=depth, unit=WHOLE).finished
    )
    own = "which is what its protocol has" if program.protocol is Protocol.SIMPLE else "which Simple has"
    message = (
        f"deadlock where a connection holds {_SHALLOW} messages, {own} on NVLink and PCIe; it needs FIFO depth "
        f"{depth}: {_describe_cycle(machine, shallow)}"
    )
    log.warn("deadlock-depth", message, log.runtimes, fifo_depth=depth - 1)


def _check_split(program: Program, machine: Machine, log: ProgramLog) -> None:
    """Whole actions pass at the file's own depth, or at depth 8: says from which size on splitting hangs."""
    own_depth = FIFO_DEPTH[program.protocol]
    depth = own_depth if run_machine(machine, depth=own_depth, unit=WHOLE).finished else _DEEP
    if run_machine(machine, depth=depth, unit=1).finished:
        if program.protocol is not Protocol.SIMPLE and run_machine(machine, depth=_SHALLOW, unit=WHOLE).finished:
            message = f"it would deadlock with Simple (FIFO depth {_SHALLOW}) once actions are split"
            log.warn("deadlock-depth", message, log.runtimes, fifo_depth=_SHALLOW)
        return
    for most in range(machine.largest_count() - 1, 0, -1):
        run = run_machine(machine, depth=depth, unit=most)
        if not run.finished:
            what = f"deadlock at FIFO depth {depth} once actions are split: {_describe_cycle(machine, run)}"
            warn_of_size(program, log, "deadlock-size", what, most, depth)
            return


def _chunk_window(program: Program, runtime: Runtime) -> tuple[int, int | None]:
    """The smallest and the largest chunk, in bytes, that a runtime runs the program with; None = no limit."""
    chunks = program.chunk_count
    low, high = program.minimum_bytes, program.maximum_bytes
    if runtime.window_half_open:
        return -(-low // chunks), max(1, -(-(high - 1) // chunks))
    return -(-low // chunks), -(-high // chunks) if high else None


def _report_cycle(machine: Machine, run: Run, log: ProgramLog) -> None:
    first = _cycle(run)[0]
    place = machine.place(first[0], first[1])
    stuck = format_count(len(run.blocked), "stuck threadblock")
    message = f"deadlock: {stuck}, {_describe_cycle(machine, run)}"
    log.violate("deadlock", message, place, blocks=True)


def _cycle(run: Run) -> list[tuple[int, int, int]]:
    """Blocked threads, each waiting for the next, the last for the first (or for one that will never come)."""
    by_thread = {entry[0]: entry for entry in run.blocked}
    path: list[tuple[int, int, int]] = []
    seen: dict[int, int] = {}
    current = run.blocked[0][0]
    while current in by_thread:
        if current in seen:
            return path[seen[current] :]
        seen[current] = len(path)
        path.append(by_thread[current])
        current = by_thread[current][2]
    return path


def _describe_cycle(machine: Machine, run: Run) -> str:
    cycle = _cycle(run)
    names = [_describe_wait(machine, entry) for entry in cycle[:_CYCLE_SHOWN]]
    if len(cycle) > _CYCLE_SHOWN:
        names.append(f"… {len(cycle) - _CYCLE_SHOWN} more …")
    last = cycle[-1][2]
    if last == cycle[0][0]:
        return f"each waiting for the next: {' → '.join(names)} → {machine.place(cycle[0][0], cycle[0][1])}"
    return f"waiting for what never comes: {' → '.join(names)}"


def _describe_wait(machine: Machine, entry: tuple[int, int, int]) -> str:
    thread, index, holder = entry
    action = machine.threads[thread].actions[index]
    place = machine.place(thread, index)
    if action.waits is not None and action.waits[0] == holder:
        return f"{place} (depends on step {action.waits[1]} there)"
    owner = machine.threads[thread]
    if action.shape.receives and machine.connections[owner.incoming].sender == holder:
        return f"{place} (receives from rank {machine.connections[owner.incoming].source})"
    return f"{place} (sends to rank {machine.connections[owner.outgoing].destination}, which holds it back)"
