"""Moves of data: accesses in order, values, and what packets tell.

A packet is written by the thread that read its sources, so whoever has it knows that everything it was made of has
been read at the same place of the range: its past, the moves behind it. That orders a later write there, cell by
cell, even where nothing tells that the whole operation is done. Whoever has all packets of a move knows that all of
it has been read.

What is stored through a switch takes its way over the switch even to the own memory. It has arrived everywhere once
its writer has signalled, or its kernel has ended: a signal goes out after all that was done before it, a relaxed one
makes no such promise.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from forestsyn.ir.plan import Plan
from forestsyn.verify.plan_actions import SCRATCH, USER, Access, Action, Machine, Move
from forestsyn.verify.plan_actors import Actor, Block
from forestsyn.verify.plan_limits import SWITCHED
from forestsyn.verify.plan_memory import ORDER, Cells, Clock, Conflict, Past, cells_of
from forestsyn.verify.plan_report import PlanFaults
from forestsyn.verify.plan_values import Values


class Data:
    """All memory of a run. call: the one that is being executed, which chooses the half of alternating scratch."""

    def __init__(self, plan: Plan, machine: Machine, values: Values, faults: PlanFaults) -> None:
        self.machine = machine
        self.values = values
        self.faults = faults
        self.call = 0
        self._halves = 2 if plan.use_double_scratch_buffer else 1
        self._signals: dict[int, list[tuple[int, int, int]]] = {}  # actor -> up to which action, who signalled, when
        self.memory = [
            (Cells(user, self._arrived), Cells(scratch * self._halves, self._arrived))
            for user, scratch in zip(machine.user_cells, machine.scratch_cells, strict=True)
        ]

    def note_signal(self, block: Block) -> None:
        """`block` signals: what it knows to have been stored through switches is there for all who hear of it."""
        for actor, signals in self._signals.items():
            until = int(block.clock[ORDER][actor])
            if not signals or signals[-1][0] < until:
                signals.append((until, block.number, block.time))

    def note_end(self, block: Block, caller: Actor) -> None:
        """The kernel of `block` has ended: what it stored is there for all who hear of what its caller does next."""
        if block.number in self._signals:
            self._signals[block.number].append((block.time, caller.number, caller.time + 1))

    def _arrived(self, touch: tuple[int, int], clock: Clock) -> bool:
        actor, time = touch
        return any(
            until >= time and clock[ORDER][teller] >= when for until, teller, when in self._signals.get(actor, ())
        )

    def have_packets(self, action: Action) -> bool:
        """Whether all packets that `action` reads are of this call."""
        return all(
            self._cells(source).packets[cell] == self.call
            for move in action.moves
            for source in move.sources
            if source.packets
            for cell in self._where(source)
        )

    def senders(self, move: Move) -> list[Clock]:
        """What those knew who wrote the packets that `move` reads."""
        found: dict[int, Clock] = {}
        for source in (source for source in move.sources if source.packets):
            senders = self._cells(source).senders
            for cell in self._where(source):
                sender = senders[cell]
                if sender is not None:
                    found[id(sender)] = sender
        return list(found.values())

    def pasts(self, move: Move) -> list[Past]:
        """How the packets that `move` reads came about, packet by packet."""
        return [
            self._cells(source).pasts[cell]
            for source in move.sources
            if source.packets
            for cell in self._where(source)[::2]
        ]

    def move(self, block: Block, action: Action, move: Move, touch: tuple[int, int], actor: Actor) -> None:
        """`actor` executes one move of an action of `block`."""
        total = self._read(block, action, move, touch, actor)
        packets = any(access.packets for access in (*move.sources, *move.destinations))
        known = self._knowledge(move, (*touch, action.moves.index(move)), actor) if packets else []
        switched = action.operation in SWITCHED
        if switched:
            self._signals.setdefault(actor.number, [])
        for target in move.destinations:
            cells, where = self._cells(target), self._where(target)
            report = _Report(self.faults, block, target, where, known)
            cells.write(where, touch, actor.clock, report, switched=switched)
            for number, cell in enumerate(where):
                cells.values[cell] = total[number // 2] if target.packets else total[number]
            if target.packets:
                for number, cell in enumerate(where):
                    cells.packets[cell] = self.call
                    cells.senders[cell], cells.pasts[cell] = known[number // 2]
            elif target.area == SCRATCH:
                for cell in where:
                    cells.packets[cell] = -1

    def _read(
        self, block: Block, action: Action, move: Move, touch: tuple[int, int], actor: Actor
    ) -> list[int | None]:
        """The sums of the sources, cell by cell."""
        total: list[int | None] | None = None
        for source in move.sources:
            cells, where = self._cells(source), self._where(source)
            if source.packets:
                cells.note_read(where, touch)
            else:
                cells.read(where, touch, actor.clock, self.faults.reporter(source.rank, source.area))
            term = [cells.values[cell] for cell in (where[::2] if source.packets else where)]
            if self.values.collective is not None and None in term:
                self.faults.undefined(block, action, source, where[term.index(None)])
            if total is None:
                total = term
            else:
                total = [self._add(block, action, *pair) for pair in zip(total, term, strict=True)]
        assert total is not None, "a move has a source"
        return total

    def _add(self, block: Block, action: Action, left: int | None, right: int | None) -> int | None:
        if self.values.collective is None or left is None or right is None:
            return left
        value, wrong = self.values.add(left, right)
        if wrong:
            self.faults.bad_sum(block, action, wrong)
        return value

    def _knowledge(self, move: Move, own: tuple[int, int, int], actor: Actor) -> list[tuple[Clock, Past]]:
        """For every cell of data: the clock and the past of what is made of the packets there."""
        sources = [(self._cells(source), self._where(source)[::2]) for source in move.sources if source.packets]
        known = []
        for number in range(move.destinations[0].count):
            parts = [(cells.senders[where[number]], cells.pasts[where[number]]) for cells, where in sources]
            clocks = [clock for clock, _ in parts if clock is not None]
            clock = reduce(np.maximum, clocks, actor.clock)
            known.append((clock, frozenset(((*own, number),)).union(*(past for _, past in parts))))
        return known

    def _cells(self, access: Access) -> Cells:
        return self.memory[access.rank][access.area]

    def _where(self, access: Access) -> range:
        if access.area == USER or self._halves == 1:
            return cells_of(access, 0)
        return cells_of(access, self.call % 2 * self.machine.scratch_cells[access.rank])


class _Report:
    """Passes on conflicts of a write, but for those that packets put in order.

    Those that the writer has seen in full, and, cell by cell, those that the written packets were made of.
    """

    def __init__(
        self, faults: PlanFaults, block: Block, target: Access, where: range, known: list[tuple[Clock, Past]]
    ) -> None:
        self._faults = faults
        self._block = block
        self._target = target
        self._where = where
        self._known = known

    def __call__(self, conflict: Conflict) -> None:
        reads = [] if conflict.first_writes else self._faults.reads_of(conflict, self._target.rank, self._target.area)
        if reads and all(name[:3] in self._block.done for name in reads):
            return
        if self._known:
            number = (conflict.cell - self._where.start) // (2 if self._target.packets else 1)
            clock, past = self._known[number]
            actor, time = conflict.first
            if clock[ORDER][actor] >= time and not conflict.late:
                return
            if reads and all(name in past for name in reads):
                return
        self._faults.reporter(self._target.rank, self._target.area)(conflict)
