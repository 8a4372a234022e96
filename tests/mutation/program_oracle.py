"""A slow, obvious executor of programs, for comparison: random interleavings, data as multisets, nothing shared.

It runs one message at a time: a random threadblock that can proceed does. A chunk holds a Counter of
(rank, chunk of that rank's input), so that contributions are counted without any encoding.
"""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations

from forestsyn.ir.program import Operation, Program, Step

WHOLE = 10**9
Cell = tuple[int, str, int]


class Stuck(Exception):
    """Nobody can proceed and somebody is not done."""


class Garbage(Exception):
    """An undefined chunk was used."""


def memory_cell(program: Program, rank: int, buffer: str, offset: int, in_place: bool) -> Cell:
    """The memory behind a chunk; in place, the output stands for both, and the input for reduce-scatter."""
    shard = program.chunk_count // len(program.ranks)
    if in_place and program.collective == "reduce-scatter" and buffer == "o":
        return rank, "i", rank * shard + offset
    if in_place and program.collective == "allgather" and buffer == "i":
        return rank, "o", rank * shard + offset
    if in_place and program.collective != "reduce-scatter" and buffer == "i":
        return rank, "o", offset
    return rank, buffer, offset


def execute(
    program: Program, *, in_place: bool, depth: int, unit: int, seed: int
) -> dict[Cell, Counter[tuple[int, int]]]:
    """One random interleaving. Raises Stuck or Garbage."""
    choose = random.Random(seed)
    memory: dict[Cell, Counter[tuple[int, int]]] = {}
    for rank, own in enumerate(program.ranks):
        for chunk in range(own.input_chunks):
            memory[memory_cell(program, rank, "i", chunk, in_place)] = Counter({(rank, chunk): 1})
    blocks = [(rank, number) for rank, own in enumerate(program.ranks) for number in range(len(own.threadblocks))]
    state = dict.fromkeys(blocks, (0, 0))  # step, chunks of it that are done
    flags = dict.fromkeys(blocks, -1)
    fifos: dict[tuple[int, int, int], list[list[Counter[tuple[int, int]]]]] = {}
    while True:
        left = [b for b in blocks if state[b][0] < len(program.ranks[b[0]].threadblocks[b[1]].steps)]
        able = [b for b in left if _able(program, b, state[b], flags, fifos, depth)]
        if not left:
            return memory
        if not able:
            raise Stuck
        _proceed(program, choose.choice(able), state, flags, fifos, memory, unit, in_place)


def right_result(program: Program, memory: dict[Cell, Counter[tuple[int, int]]], in_place: bool) -> bool:
    """Whether every output holds what the collective promises; a root must be given."""
    ranks, chunks = len(program.ranks), program.chunk_count
    shard = chunks // ranks
    for rank in range(ranks):
        wanted: dict[int, Counter[tuple[int, int]]] = {}
        for chunk in range(chunks):
            if program.collective == "allreduce" or (program.collective == "reduce" and rank == program.root):
                wanted[chunk] = Counter({(peer, chunk): 1 for peer in range(ranks)})
            elif program.collective == "reduce-scatter" and chunk < shard:
                wanted[chunk] = Counter({(peer, rank * shard + chunk): 1 for peer in range(ranks)})
            elif program.collective == "allgather":
                wanted[chunk] = Counter({(chunk // shard, chunk % shard): 1})
            elif program.collective == "broadcast":
                assert program.root is not None
                wanted[chunk] = Counter({(program.root, chunk): 1})
            elif program.collective == "alltoall":
                wanted[chunk] = Counter({(chunk // shard, rank * shard + chunk % shard): 1})
        for chunk, value in wanted.items():
            if memory.get(memory_cell(program, rank, "o", chunk, in_place)) != value:
                return False
    return True


def has_race(program: Program, *, in_place: bool, unit: int) -> bool:
    """Whether two conflicting accesses are unordered, by the closure of happens-before on all messages."""
    nodes, before = _message_graph(program, unit)
    reached: dict[int, set[int]] = {}

    def ancestors(node: int) -> set[int]:
        if node not in reached:
            reached[node], stack = set(), [node]
            while stack:
                for earlier in before[stack.pop()]:
                    if earlier not in reached[node]:
                        reached[node].add(earlier)
                        stack.append(earlier)
        return reached[node]

    accesses: dict[Cell, list[tuple[int, bool]]] = {}
    for node, (rank, _, step, first, last) in enumerate(nodes):
        for side, writes in _sides(step):
            for chunk in range(first, last):
                cell = memory_cell(program, rank, side.buffer.value, side.offset + chunk, in_place)
                accesses.setdefault(cell, []).append((node, writes))
    return any(
        (first[1] or second[1])
        and first[0] != second[0]
        and first[0] not in ancestors(second[0])
        and second[0] not in ancestors(first[0])
        for entries in accesses.values()
        for first, second in combinations(entries, 2)
    )


def _sides(step: Step) -> list[tuple[object, bool]]:
    sides = []
    if step.operation.value in ("s", "rrs", "rrc", "rrcs", "cpy", "re"):
        sides.append((step.source, False))
    if step.operation.value in ("r", "rcs", "rrc", "rrcs", "cpy", "re"):
        sides.append((step.destination, True))
    return sides


def _message_graph(program: Program, unit: int):
    nodes, before = [], []
    sent: dict[tuple[int, int, int], list[int]] = {}
    received: dict[tuple[int, int, int], list[int]] = {}
    ends: dict[tuple[int, int, int], tuple[int, int]] = {}
    for rank, own in enumerate(program.ranks):
        for number, threadblock in enumerate(own.threadblocks):
            previous = None
            for index, step in enumerate(threadblock.steps):
                pieces = range(0, step.count, unit) if step.operation is not Operation.NOP else range(1)
                begin = len(nodes)
                for first in pieces:
                    nodes.append((rank, number, step, first, min(step.count, first + unit)))
                    before.append([] if previous is None else [previous])
                    previous = len(nodes) - 1
                    if step.operation.sends:
                        sent.setdefault((rank, threadblock.send_peer, threadblock.channel), []).append(previous)
                    if step.operation.receives:
                        received.setdefault((threadblock.receive_peer, rank, threadblock.channel), []).append(
                            previous
                        )
                ends[rank, number, index] = (begin, len(nodes) - 1)
    for connection, sends in sent.items():
        for sender, receiver in zip(sends, received[connection], strict=True):
            before[receiver].append(sender)
    for rank, own in enumerate(program.ranks):
        for number, threadblock in enumerate(own.threadblocks):
            for index, step in enumerate(threadblock.steps):
                wait = step.depends_on
                if wait is not None:
                    steps = own.threadblocks[wait.threadblock].steps
                    end = next(
                        position
                        for position in range(wait.step, len(steps))
                        if steps[position].flagged and steps[position].operation is not Operation.NOP
                    )
                    before[ends[rank, number, index][0]].append(ends[rank, wait.threadblock, end][1])
    return nodes, before


def _able(program, block, position, flags, fifos, depth) -> bool:
    rank, number = block
    threadblock = program.ranks[rank].threadblocks[number]
    step = threadblock.steps[position[0]]
    wait = step.depends_on
    if position[1] == 0 and wait is not None and flags[rank, wait.threadblock] < wait.step:
        return False
    if step.operation.receives and not fifos.get((threadblock.receive_peer, rank, threadblock.channel)):
        return False
    full = len(fifos.get((rank, threadblock.send_peer, threadblock.channel), ())) >= depth
    return not (step.operation.sends and full)


def _proceed(program, block, state, flags, fifos, memory, unit, in_place) -> None:
    rank, number = block
    threadblock = program.ranks[rank].threadblocks[number]
    index, done = state[block]
    step = threadblock.steps[index]
    last = min(step.count, done + unit)
    arrived = None
    if step.operation.receives:
        arrived = fifos[threadblock.receive_peer, rank, threadblock.channel].pop(0)
    leaving = []
    for chunk in range(done, last):

        def cell(side, chunk=chunk):
            return memory_cell(program, rank, side.buffer.value, side.offset + chunk, in_place)

        value = arrived[chunk - done] if arrived is not None else None
        if step.operation.value in ("s", "cpy"):
            value = _defined(memory, cell(step.source))
        elif step.operation.value in ("rrs", "rrc", "rrcs"):
            value = value + _defined(memory, cell(step.source))
        elif step.operation.value == "re":
            value = _defined(memory, cell(step.destination)) + _defined(memory, cell(step.source))
        if step.operation.value in ("r", "rcs", "rrc", "rrcs", "cpy", "re"):
            memory[cell(step.destination)] = value
        leaving.append(value)
    if step.operation.sends:
        fifos.setdefault((rank, threadblock.send_peer, threadblock.channel), []).append(leaving)
    if last < step.count:
        state[block] = (index, last)
        return
    state[block] = (index + 1, 0)
    if step.flagged and step.operation is not Operation.NOP:
        flags[block] = index


def _defined(memory, cell):
    if cell not in memory:
        raise Garbage
    return memory[cell]
