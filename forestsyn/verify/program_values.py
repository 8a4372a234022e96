"""What every chunk holds in the end, by symbolic execution with contributions counted.

Problem. Does the program leave in every output what its collective promises, each contribution exactly once?

Representation. A value is one integer: key · 2ⁿ + set of ranks, for n ranks. The key says which chunk of the
result the value is a part of, the set whose contributions it sums. Combining two values is defined only for equal
keys and disjoint sets; a contribution that comes twice is a fault at once, so the sets are in truth multisets whose
counts are proved to be 0 or 1. A chunk that was never written is None, and using it is a fault.

Guarantee. Without races the values do not depend on the order, so one topological order of happens-before (that of
a run) stands for all executions.

Expected, with N chunks, n ranks, p = N/n: see `_expected`. Keys: the position in the result for reductions, the
position in the gathered buffer for allgather, the position in the root's buffer for broadcast, and rank·N + position
for alltoall, where all inputs differ.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence

import msgspec

from forestsyn.ir.program import Program
from forestsyn.verify.program_machine import Action, Machine, Thread
from forestsyn.verify.program_memory import RankMemory
from forestsyn.verify.program_run import Run

#: Collectives whose result this module knows.
KNOWN_COLLECTIVES = frozenset(("allreduce", "reduce", "reduce-scatter", "allgather", "broadcast", "alltoall"))

_REDUCTIONS = frozenset(("allreduce", "reduce", "reduce-scatter"))
_Value = int | None


class ValueFault(msgspec.Struct, frozen=True):
    """A fault of the data. thread, action: where it happens, −1 for the final result.

    rank, buffer, offset: the chunk. message: what is wrong with it.
    """

    kind: str
    message: str
    thread: int
    action: int
    rank: int
    buffer: int
    offset: int


def find_value_faults(
    program: Program, machine: Machine, memory: Sequence[RankMemory], run: Run, *, limit: int
) -> tuple[list[ValueFault], int | None]:
    """Executes the finished `run`; returns its first `limit` faults, and the root of a rooted collective.

    The root is `program.root`, or, where that is None, the first rank that makes the result right (rank 0 if none
    does). After a fault of an action the values mean nothing, so the result is checked only without such a fault.
    """
    executor = _Executor(program, machine, memory, limit)
    executor.walk(run)
    if executor.faults:
        return executor.faults, program.root
    return _check_result(program, memory, executor.cells, limit)


class _Executor:
    def __init__(self, program: Program, machine: Machine, memory: Sequence[RankMemory], limit: int) -> None:
        self.faults: list[ValueFault] = []
        self.cells = [_initial(program, rank, own) for rank, own in enumerate(memory)]
        self._machine = machine
        self._memory = memory
        self._limit = limit
        self._ranks = len(program.ranks)
        self._describe = _describer(program)
        self._messages: list[deque[_Value]] = [deque() for _ in machine.connections]

    def walk(self, run: Run) -> None:
        unit = run.unit
        for segment in run.order:
            owner = self._machine.threads[segment.thread]
            action = owner.actions[segment.action]
            first = segment.first * unit
            last = min(action.count, (segment.first + segment.amount) * unit)
            if first < last:
                self._execute(segment.thread, segment.action, owner, action, range(first, last))
            if len(self.faults) >= self._limit:
                return

    def _execute(self, thread: int, index: int, owner: Thread, action: Action, chunks: range) -> None:
        shape = action.shape
        cells = self.cells[owner.rank]
        bases = self._memory[owner.rank].bases
        source = bases[action.source[0]] + action.source[1]
        destination = bases[action.destination[0]] + action.destination[1]
        incoming = self._messages[owner.incoming] if shape.receives else None
        outgoing = self._messages[owner.outgoing] if shape.sends else None
        for chunk in chunks:
            value: _Value = None
            if shape.reads_source:
                value = cells[source + chunk]
                if value is None:
                    self._undefined(thread, index, owner, action.source, chunk)
            if shape.reads_destination:
                if cells[destination + chunk] is None:
                    self._undefined(thread, index, owner, action.destination, chunk)
                value = self._combine(value, cells[destination + chunk], thread, index, action.destination, chunk)
            if incoming is not None:
                message = incoming.popleft()
                if shape.reads_source:
                    value = self._combine(message, value, thread, index, action.source, chunk)
                else:
                    value = message
            if shape.writes:
                cells[destination + chunk] = value
            if outgoing is not None:
                outgoing.append(value)

    def _combine(
        self, left: _Value, right: _Value, thread: int, index: int, side: tuple[int, int], chunk: int
    ) -> _Value:
        if left is None or right is None:
            return None  # reported where it was read
        if (left ^ right) >> self._ranks:
            text = f"it adds {self._describe(left)} to {self._describe(right)}"
            self._fault("mixed-chunks", text, thread, index, side, chunk)
            return None
        common = left & right & ((1 << self._ranks) - 1)
        if common:
            text = f"it adds {_rank_list(common)} a second time: {self._describe(left)} to {self._describe(right)}"
            self._fault("counted-twice", text, thread, index, side, chunk)
            return None
        return left | right

    def _undefined(self, thread: int, index: int, owner: Thread, side: tuple[int, int], chunk: int) -> None:
        name = f"{'ios'[side[0]]}[{side[1] + chunk}]"
        self._fault("undefined-read", f"it reads {name}, which nothing has written", thread, index, side, chunk)

    def _fault(self, kind: str, message: str, thread: int, index: int, side: tuple[int, int], chunk: int) -> None:
        rank = self._machine.threads[thread].rank
        self.faults.append(ValueFault(kind, message, thread, index, rank, side[0], side[1] + chunk))


def _initial(program: Program, rank: int, own: RankMemory) -> list[_Value]:
    """The cells before the start: only the input is defined."""
    cells: list[_Value] = [None] * own.cell_count
    ranks = len(program.ranks)
    for chunk in range(own.input_count):
        if program.collective == "allgather":
            key = rank * own.input_count + chunk
        elif program.collective == "alltoall":
            key = rank * program.chunk_count + chunk
        else:
            key = chunk
        cells[own.bases[0] + chunk] = key << ranks | 1 << rank
    return cells


def _check_result(
    program: Program, memory: Sequence[RankMemory], cells: list[list[_Value]], limit: int
) -> tuple[list[ValueFault], int | None]:
    if program.collective not in ("broadcast", "reduce"):
        return _faults_of_result(program, None, memory, cells, limit), None
    if program.root is not None:
        return _faults_of_result(program, program.root, memory, cells, limit), program.root
    for root in range(len(program.ranks)):
        if not _faults_of_result(program, root, memory, cells, 1):
            return [], root
    return _faults_of_result(program, 0, memory, cells, limit), 0


def _faults_of_result(
    program: Program, root: int | None, memory: Sequence[RankMemory], cells: list[list[_Value]], limit: int
) -> list[ValueFault]:
    faults: list[ValueFault] = []
    describe = _describer(program)
    for rank, chunk, expected in _expected(program, root):
        found = cells[rank][memory[rank].bases[1] + chunk]
        if found != expected:
            message = f"o[{chunk}] ends as {describe(found)}, expected {describe(expected)}"
            faults.append(ValueFault("wrong-result", message, -1, -1, rank, 1, chunk))
            if len(faults) >= limit:
                break
    return faults


def _expected(program: Program, root: int | None) -> Iterator[tuple[int, int, int]]:
    """(rank, chunk of its output, value) for every chunk that the collective promises."""
    ranks, chunks = len(program.ranks), program.chunk_count
    shard, everyone = chunks // ranks, (1 << ranks) - 1
    for rank in range(ranks):
        if program.collective == "reduce" and rank != root:
            continue
        for chunk in range(shard if program.collective == "reduce-scatter" else chunks):
            if program.collective == "reduce-scatter":
                yield rank, chunk, (rank * shard + chunk) << ranks | everyone
            elif program.collective in _REDUCTIONS:
                yield rank, chunk, chunk << ranks | everyone
            elif program.collective == "allgather":
                yield rank, chunk, chunk << ranks | 1 << (chunk // shard)
            elif program.collective == "broadcast":
                assert root is not None, "a rooted collective is checked for one root at a time"
                yield rank, chunk, chunk << ranks | 1 << root
            else:
                owner, place = divmod(chunk, shard)
                yield rank, chunk, (owner * chunks + rank * shard + place) << ranks | 1 << owner


def _describer(program: Program) -> Callable[[_Value], str]:
    """A function that says in words what a value is."""
    ranks, chunks = len(program.ranks), program.chunk_count
    shard = max(1, chunks // ranks)

    def describe(value: _Value) -> str:
        if value is None:
            return "undefined"
        key, owners = value >> ranks, value & ((1 << ranks) - 1)
        if program.collective in _REDUCTIONS:
            return f"chunk {key} summed over {_rank_list(owners, ranks)}"
        position = key % shard if program.collective == "allgather" else key % chunks
        return f"i[{position}] of {_rank_list(owners, ranks)}"

    return describe


def _rank_list(owners: int, ranks: int = 0) -> str:
    members = [rank for rank in range(owners.bit_length()) if owners >> rank & 1]
    if len(members) == ranks > 1:
        return "all ranks"
    word = "rank" if len(members) == 1 else "ranks"
    shown = ", ".join(str(rank) for rank in members[:8])
    return f"{word} {shown}{', …' if len(members) > 8 else ''}"
