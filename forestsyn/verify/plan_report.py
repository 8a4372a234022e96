"""Faults of an execution, in words: who, where, which chunk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from forestsyn.ir.plan import PlanOperation as Op
from forestsyn.verify.plan_actions import SCRATCH, Access, Action, Machine, Port
from forestsyn.verify.plan_actors import Actor, Block, Counter
from forestsyn.verify.plan_limits import PACKETS, VECTORS
from forestsyn.verify.plan_memory import Conflict, cells_of
from forestsyn.verify.program_report import Place, ProgramLog

if TYPE_CHECKING:
    from forestsyn.verify.plan_run import PlanRun

_SHOWN = 4


class PlanFaults:
    """Turns what a `PlanRun` finds into violations of `log`.

    strict: data that rests on relaxed signals, or on stores that a switch may not have delivered, are a violation.
    broken_values: data went wrong before the result.
    """

    def __init__(self, log: ProgramLog, *, strict: bool) -> None:
        self.log = log
        self._strict = strict
        self.broken_values = False
        self._seen: set[tuple[object, ...]] = set()
        self._run: PlanRun

    def attach(self, run: PlanRun) -> None:
        """Names are those of `run`; called once, before anything else."""
        self._run = run
        self.reporter = cache(self._reporter)

    def check_pairing(
        self, machine: Machine, counters: Sequence[Counter], semaphores: Sequence[Sequence[Counter]]
    ) -> bool:
        """Whether in each call every counter is taken as often as given; says where not."""
        before = len(self._seen)
        for (rank, way, number, peer), counter in zip(machine.counters, counters, strict=True):
            place = f"{way} channel {number} of rank {rank} to rank {peer}"
            if counter.given_per_call != counter.taken_per_call:
                text = (
                    f"rank {peer} signals {counter.given_per_call} times, rank {rank} waits {counter.taken_per_call}"
                )
                self._add("pairing", f"{place}: {text}", Place(rank=rank), place)
            elif len(counter.takers) > 1:
                text = f"{place}: {len(counter.takers)} threadblocks wait on it, and which gets which signal is open"
                self._add("shared-wait", text, Place(rank=rank), place)
        for rank, own in enumerate(semaphores):
            for number, counter in enumerate(own):
                if counter.given_per_call != counter.taken_per_call:
                    text = f"semaphore {number} is released {counter.given_per_call} times in a call"
                    text = f"{text} and acquired {counter.taken_per_call} times"
                    self._add("pairing", text, Place(rank=rank), rank, number)
        return len(self._seen) == before

    def unreached(self, block: Block, action: Action) -> None:
        """A signal over a channel that the peer does not have."""
        text = f"'{action.operation}' on a channel whose other end does not exist at the peer"
        self._add("pairing", text, _place(block, action), block.number, action.step)

    def deadlock(self, waiting: Sequence[tuple[Block, Action]]) -> None:
        """Nobody moves."""
        self.broken_values = True
        shown = "; ".join(
            f"{_place(block, action)} waits at {self._wait(block, action)}" for block, action in waiting[:_SHOWN]
        )
        more = f"; and {len(waiting) - _SHOWN} more" if len(waiting) > _SHOWN else ""
        block, action = waiting[0]
        self.log.violate("deadlock", f"nothing moves any more: {shown}{more}", _place(block, action), blocks=True)

    def unordered(self, block: Block, action: Action, port: Port) -> None:
        """Two requests on a port whose order is open, one of them with a signal."""
        text = f"'{action.operation}' and the request before it on port channel {port.number}"
        self._add(
            "unsynced",
            f"{text} come from different threads without a nop between",
            _place(block, action),
            block.number,
            action.step,
        )

    def undefined(self, block: Block, action: Action, source: Access, cell: int) -> None:
        """A read of what nothing has written."""
        self.broken_values = True
        text = f"it reads {self._cell(source.rank, source.area, cell)} of rank {source.rank}, which holds nothing"
        self._add("undefined-read", text, _place(block, action), block.number, action.step)

    def bad_sum(self, block: Block, action: Action, text: str) -> None:
        """A sum of unlike parts, or of the same twice."""
        self.broken_values = True
        kind = "counted-twice" if "second time" in text else "mixed-chunks"
        self._add(kind, f"it {text}", _place(block, action), block.number, action.step)

    def wrong_result(self, rank: int, cell: int, found: int | None, expected: int) -> None:
        """The output is not what the collective promises."""
        self.broken_values = True
        values, machine = self._run.values, self._run.machine
        chunk = cell * machine.unit // machine.elements
        text = f"o[{chunk}] ends as {values.describe(found)}, expected {values.describe(expected)}"
        self._add("wrong-result", text, Place(rank=rank), rank, chunk)

    def reads_of(self, conflict: Conflict, rank: int, area: int) -> list[tuple[int, int, int, int]]:
        """How the past of packets names the first access, a read by threads of a cell of `rank`; none for others."""
        actor, time = conflict.first
        if actor >= len(self._run.blocks):
            return []
        return [
            (
                actor,
                time,
                move,
                (self._place_of(access, conflict.cell) - access.start) // (2 if access.packets else 1),
            )
            for move, access in self._covering(conflict.first, rank, area, conflict.cell)
        ]

    def _reporter(self, rank: int, area: int) -> Callable[[Conflict], None]:
        def report(conflict: Conflict) -> None:
            self._conflict(rank, area, conflict)

        return report

    def _conflict(self, rank: int, area: int, conflict: Conflict) -> None:
        (first, first_time), (second, second_time) = conflict.first, conflict.second
        if (conflict.relaxed and self._is_caller(first)) or (conflict.late and self._is_caller(second)):
            return  # what a caller wrote is visible everywhere once its kernel runs, what a kernel wrote once it ends
        before, after = self._actor(first, first_time), self._actor(second, second_time)
        cell = f"{self._cell(rank, area, conflict.cell)} of rank {rank}"
        does = "writes" if conflict.second_writes else "reads"
        place = self._place(second, second_time)
        key = (*conflict.first, *conflict.second)
        if conflict.relaxed:
            text = f"{after} reads {cell} written by {before}, ordered by relaxed signals or packets only"
            self._add_weak("relaxed", text, place, conflict)
        elif conflict.late:
            text = f"{after} {does} {cell}, which {before} stores through a switch: it is there after a signal only"
            self._add_weak("late-store", text, place, conflict)
        elif self._is_caller(second):
            port = first >= len(self._run.blocks) + len(self._run.callers)
            kind, verb = "unflushed" if port else "unfinished", "written" if conflict.first_writes else "read"
            text = f"the call of rank {rank} may end before {before} has {verb} {cell}"
            self._add(kind, text, self._place(first, first_time), *key)
        elif self._is_caller(first):
            text = f"{after} {does} {cell}, which may not have begun this call: nothing told it so"
            self._add("before-ready", text, place, *key)
        elif first == second and first < len(self._run.blocks):
            if self._same_thread(rank, area, conflict):
                return
            self._add("unsynced", f"it {does} {cell} after {before} without a nop between", place, *key)
        elif conflict.first_writes and not conflict.second_writes:
            self._add("race", f"it reads {cell}, which {before} writes: nothing orders the two", place, *key)
        else:
            verb = "written" if conflict.first_writes else "read"
            text = f"it overwrites {cell}, which {before} may not have {verb} yet"
            self._add("overwritten", text, place, *key)

    def _same_thread(self, rank: int, area: int, conflict: Conflict) -> bool:
        """Whether both accesses are by the same thread: operations that cut ranges alike, which begin at one cell."""
        kinds = {self._cutting(conflict.first), self._cutting(conflict.second)}
        touches = (conflict.first, conflict.second)
        starts = {access.start for touch in touches for _, access in self._covering(touch, rank, area, conflict.cell)}
        return len(kinds) == 1 and None not in kinds and len(starts) == 1

    def _cutting(self, touch: tuple[int, int]) -> str | None:
        """How the threads of an operation share its data: packet by packet, vector by vector; None: otherwise."""
        found = self._run.blocks[touch[0]].actions[touch[1] - 1]
        operation = found[1].operation if found else None
        return "packets" if operation in PACKETS else "vectors" if operation in VECTORS else None

    def _covering(self, touch: tuple[int, int], rank: int, area: int, cell: int) -> list[tuple[int, Access]]:
        """(move, range) of every range of an action that holds a cell, in either half of scratch."""
        found = self._run.blocks[touch[0]].actions[touch[1] - 1]
        moves = found[1].moves if found else ()
        return [
            (number, access)
            for number, move in enumerate(moves)
            for access in (*move.sources, *move.destinations)
            if (access.rank, access.area) == (rank, area) and self._place_of(access, cell) in cells_of(access, 0)
        ]

    def _place_of(self, access: Access, cell: int) -> int:
        """A cell, in whichever half of scratch."""
        return cell % self._run.machine.scratch_cells[access.rank] if access.area == SCRATCH else cell

    def _add(self, kind: str, message: str, place: Place, *key: object) -> None:
        if (kind, *key) not in self._seen:
            self._seen.add((kind, *key))
            self.log.violate(kind, message, place)

    def _add_weak(self, kind: str, message: str, place: Place, conflict: Conflict) -> None:
        """An order that executions may not show to be too weak: a violation of strict verdicts, else a warning."""
        if self._strict:
            self._add(kind, message, place, *conflict.first, *conflict.second)
        elif (kind, conflict.first[0], conflict.second[0]) not in self._seen:
            self._seen.add((kind, conflict.first[0], conflict.second[0]))
            self.log.warn(kind, message, self.log.runtimes)

    def _is_caller(self, actor: int) -> bool:
        return 0 <= actor - len(self._run.blocks) < len(self._run.callers)

    def _find(self, actor: int) -> tuple[Actor, int]:
        """An actor and its rank."""
        run = self._run
        if actor < len(run.blocks):
            return run.blocks[actor], run.blocks[actor].thread.rank
        actor -= len(run.blocks)
        if actor < len(run.callers):
            return run.callers[actor], actor
        return run.ports[actor - len(run.callers)], run.machine.ports[actor - len(run.callers)].rank

    def _place(self, number: int, time: int) -> Place:
        actor, rank = self._find(number)
        found = actor.actions[time - 1]
        return Place(rank=rank) if found is None else Place(rank=rank, threadblock=found[0], step=found[1].step)

    def _actor(self, number: int, time: int) -> str:
        if self._is_caller(number):
            return f"the caller of rank {self._find(number)[1]}"
        port = number >= len(self._run.blocks) + len(self._run.callers)
        return f"{'the request of ' if port else ''}{self._place(number, time)}"

    def _cell(self, rank: int, area: int, cell: int) -> str:
        machine = self._run.machine
        if area == SCRATCH:
            cell %= max(1, machine.scratch_cells[rank])
            return f"s[{cell * machine.unit // machine.elements}]"
        first_input, first_output = machine.bases[rank]
        inside = 0 <= cell - first_output < machine.output_cells
        name, first = ("o", first_output) if inside else ("i", first_input)
        return f"{name}[{(cell - first) * machine.unit // machine.elements}]"

    def _wait(self, block: Block, action: Action) -> str:
        if action.operation in (Op.WAIT, Op.RELAXED_WAIT):
            machine, run = self._run.machine, self._run
            stuck = [name for name in action.ids if not run.counters[name].ready] or list(action.ids)
            _, way, number, peer = machine.counters[stuck[0]]
            return f"'{action.operation}' for rank {peer} on {way} channel {number}"
        return f"'{action.operation}'"


def _place(block: Block, action: Action) -> Place:
    return Place(rank=block.thread.rank, threadblock=block.thread.block, step=action.step)
