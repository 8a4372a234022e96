"""Mutants: programs made wrong in one place.

`mutants(program)` yields (kind, mutated program) in a fixed order. Every mutant of a correct program that moves each
chunk once is truly wrong, so a verifier must reject it. The kinds in `NEEDS_TIGHT_WAITS` also presume that no wait is
implied by the rest: true of the samples, while a compiled program may keep a wait that messages through other ranks
imply; there the closure of happens-before (`program_oracle.has_race`) must confirm that nothing is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from forestsyn.ir.program import (
    Buffer,
    Dependency,
    Location,
    Operation,
    Program,
    RankProgram,
    Step,
    Threadblock,
)

Mutants = Iterator[Program]
Site = tuple[int, int, int]  # rank, threadblock, step

NEEDS_TIGHT_WAITS = frozenset(("wait dropped", "flag and wait moved forward"))

_TO_COPY = {"re": "cpy", "rrc": "r", "rrcs": "rcs", "rrs": "rcs"}
_TO_REDUCTION = {"r": "rrc", "rcs": "rrcs", "cpy": "re"}


def mutants(program: Program, *, per_kind: int | None = None) -> Iterator[tuple[str, Program]]:
    """All mutants of `program`, at most `per_kind` of each kind, spread over its sites."""
    for kind, mutate in KINDS.items():
        every = list(mutate(program))
        stride = 1 if per_kind is None else max(1, -(-len(every) // per_kind))
        for mutant in every[::stride]:
            yield kind, mutant


# Helpers: places, and programs with one thing replaced.


def _sites(program: Program) -> Iterator[tuple[Site, Step]]:
    for rank, own in enumerate(program.ranks):
        for number, threadblock in enumerate(own.threadblocks):
            for index, step in enumerate(threadblock.steps):
                yield (rank, number, index), step


def _blocks(program: Program) -> Iterator[tuple[int, int, Threadblock]]:
    for rank, own in enumerate(program.ranks):
        for number, threadblock in enumerate(own.threadblocks):
            yield rank, number, threadblock


def _with_rank(program: Program, rank: int, own: RankProgram) -> Program:
    ranks = (*program.ranks[:rank], own, *program.ranks[rank + 1 :])
    return msgspec.structs.replace(program, ranks=ranks)


def _with_block(program: Program, rank: int, number: int, **changes: object) -> Program:
    own = program.ranks[rank]
    blocks = list(own.threadblocks)
    blocks[number] = msgspec.structs.replace(blocks[number], **changes)
    return _with_rank(program, rank, msgspec.structs.replace(own, threadblocks=tuple(blocks)))


def _with_step(program: Program, site: Site, **changes: object) -> Program:
    rank, number, index = site
    steps = list(program.ranks[rank].threadblocks[number].steps)
    steps[index] = msgspec.structs.replace(steps[index], **changes)
    return _with_block(program, rank, number, steps=tuple(steps))


def _renumbered(program: Program, rank: int, number: int, position: int, shift: int) -> Program:
    """Waits for steps at or after `position` of a threadblock follow a step that was put in or taken out there."""
    blocks = []
    for threadblock in program.ranks[rank].threadblocks:
        steps = []
        for step in threadblock.steps:
            wait = step.depends_on
            if wait is not None and wait.threadblock == number and wait.step >= position:
                wait = Dependency(threadblock=number, step=max(0, wait.step + shift))
                step = msgspec.structs.replace(step, depends_on=wait)
            steps.append(step)
        blocks.append(msgspec.structs.replace(threadblock, steps=tuple(steps)))
    own = msgspec.structs.replace(program.ranks[rank], threadblocks=tuple(blocks))
    return _with_rank(program, rank, own)


def _without_step(program: Program, site: Site) -> Program:
    rank, number, index = site
    steps = program.ranks[rank].threadblocks[number].steps
    shorter = _with_block(program, rank, number, steps=steps[:index] + steps[index + 1 :])
    return _renumbered(shorter, rank, number, index + 1, -1)


def _with_extra(program: Program, site: Site, extra: Step) -> Program:
    rank, number, index = site
    moved = _renumbered(program, rank, number, index, 1)
    steps = moved.ranks[rank].threadblocks[number].steps
    return _with_block(moved, rank, number, steps=(*steps[:index], extra, *steps[index:]))


def _shifted(location: Location, by: int) -> Location:
    return msgspec.structs.replace(location, offset=location.offset + by)


def _size(program: Program, rank: int, location: Location) -> int:
    own = program.ranks[rank]
    return {"i": own.input_chunks, "o": own.output_chunks, "s": own.scratch_chunks}[location.buffer.value]


def _another(program: Program, rank: int, step: Step, location: Location) -> Location | None:
    """The same buffer, other chunks."""
    size = _size(program, rank, location)
    if location.offset + 2 * step.count <= size:
        return _shifted(location, step.count)
    return _shifted(location, -step.count) if location.offset >= step.count else None


def _pairs(program: Program) -> Iterator[tuple[Site, Site]]:
    """Every send with its receive."""
    ends: dict[tuple[int, int, int], tuple[list[Site], list[Site]]] = {}
    for (rank, number, index), step in _sites(program):
        threadblock = program.ranks[rank].threadblocks[number]
        if step.operation.sends:
            key = (rank, threadblock.send_peer, threadblock.channel)
            ends.setdefault(key, ([], []))[0].append((rank, number, index))
        if step.operation.receives:
            key = (threadblock.receive_peer, rank, threadblock.channel)
            ends.setdefault(key, ([], []))[1].append((rank, number, index))
    for sends, receives in ends.values():
        yield from zip(sends, receives, strict=True)


def _step_at(program: Program, site: Site) -> Step:
    return program.ranks[site[0]].threadblocks[site[1]].steps[site[2]]


# The kinds.


def _step_dropped(program: Program) -> Mutants:
    for site, step in _sites(program):
        if step.operation is not Operation.NOP:
            yield _without_step(program, site)


def _steps_swapped(program: Program) -> Mutants:
    for (rank, number, index), step in _sites(program):
        steps = program.ranks[rank].threadblocks[number].steps
        if index + 1 == len(steps) or steps[index + 1].operation is not step.operation:
            continue
        if not (step.operation.sends or step.operation.receives) or step.source == steps[index + 1].source:
            continue
        swapped = (*steps[:index], steps[index + 1], step, *steps[index + 2 :])
        yield _with_block(program, rank, number, steps=swapped)


def _wrong_source(program: Program) -> Mutants:
    for site, step in _sites(program):
        other = _another(program, site[0], step, step.source)
        if step.operation in (Operation.SEND, Operation.COPY, Operation.REDUCE) and other is not None:
            yield _with_step(program, site, source=other)


def _wrong_destination(program: Program) -> Mutants:
    for site, step in _sites(program):
        writes = step.operation not in (Operation.SEND, Operation.RECV_REDUCE_SEND, Operation.NOP)
        other = _another(program, site[0], step, step.destination)
        if writes and other is not None:
            yield _with_step(program, site, destination=other)


def _past_the_end(program: Program) -> Mutants:
    for send, receive in _pairs(program):
        step = _step_at(program, receive)
        if step.operation in (Operation.RECV, Operation.RECV_COPY_SEND, Operation.RECV_REDUCE_COPY):
            end = _size(program, receive[0], step.destination)
            outside = msgspec.structs.replace(step.destination, offset=end)
            yield _with_step(program, receive, destination=outside)
            if _step_at(program, send).operation is Operation.SEND and not step.operation.sends:
                count = end - step.destination.offset + 1
                yield _with_step(_with_step(program, send, count=count), receive, count=count)


def _wrong_buffer(program: Program) -> Mutants:
    for site, step in _sites(program):
        if step.operation is Operation.SEND:
            buffer = Buffer.SCRATCH if step.source.buffer is not Buffer.SCRATCH else Buffer.INPUT
            yield _with_step(program, site, source=msgspec.structs.replace(step.source, buffer=buffer))


def _chunk_shifted_at_both_ends(program: Program) -> Mutants:
    for send, receive in _pairs(program):
        sender, receiver = _step_at(program, send), _step_at(program, receive)
        if sender.operation is not Operation.SEND or receiver.operation is not Operation.RECV:
            continue
        source = _another(program, send[0], sender, sender.source)
        destination = _another(program, receive[0], receiver, receiver.destination)
        if source is not None and destination is not None:
            yield _with_step(_with_step(program, send, source=source), receive, destination=destination)


def _message_deleted(program: Program) -> Mutants:
    for send, receive in _pairs(program):
        if _step_at(program, send).operation is Operation.SEND:
            receiver = _step_at(program, receive)
            if receiver.operation in (Operation.RECV, Operation.RECV_REDUCE_COPY):
                first, second = sorted((send, receive), reverse=True)
                yield _without_step(_without_step(program, first), second)


def _message_shortened(program: Program) -> Mutants:
    for send, receive in _pairs(program):
        sender, receiver = _step_at(program, send), _step_at(program, receive)
        if sender.count > 1 and sender.operation is Operation.SEND and receiver.operation is Operation.RECV:
            shorter = _with_step(program, send, count=sender.count - 1)
            yield _with_step(shorter, receive, count=receiver.count - 1)


def _count_higher(program: Program) -> Mutants:
    for site, step in _sites(program):
        if step.operation.sends or step.operation.receives:
            yield _with_step(program, site, count=step.count + 1)


def _count_lower(program: Program) -> Mutants:
    for site, step in _sites(program):
        if step.operation is not Operation.NOP:
            yield _with_step(program, site, count=step.count - 1)


def _wrong_peer(program: Program) -> Mutants:
    count = len(program.ranks)
    for rank, number, threadblock in _blocks(program):
        used = {step.operation for step in threadblock.steps}
        for peer in range(count):
            if peer == rank:
                continue
            if peer != threadblock.send_peer and any(operation.sends for operation in used):
                yield _with_block(program, rank, number, send_peer=peer)
            if peer != threadblock.receive_peer and any(operation.receives for operation in used):
                yield _with_block(program, rank, number, receive_peer=peer)


def _bad_peer(program: Program) -> Mutants:
    for rank, number, threadblock in _blocks(program):
        if threadblock.send_peer >= 0:
            yield _with_block(program, rank, number, send_peer=rank)
            yield _with_block(program, rank, number, send_peer=len(program.ranks))
            yield _with_block(program, rank, number, send_peer=-1)


def _wrong_channel(program: Program) -> Mutants:
    wider = msgspec.structs.replace(program, channel_count=program.channel_count + 1)
    for rank, number, threadblock in _blocks(program):
        if threadblock.send_peer >= 0 or threadblock.receive_peer >= 0:
            yield _with_block(program, rank, number, channel=program.channel_count)
            yield _with_block(wider, rank, number, channel=program.channel_count)


def _connection_shared(program: Program) -> Mutants:
    for rank, number, threadblock in _blocks(program):
        for other in range(number):
            first = program.ranks[rank].threadblocks[other]
            if first.send_peer >= 0 and threadblock.send_peer >= 0:
                yield _with_block(program, rank, number, send_peer=first.send_peer, channel=first.channel)


def _reduction_to_copy(program: Program) -> Mutants:
    for site, step in _sites(program):
        if step.operation.value in _TO_COPY:
            yield _with_step(program, site, operation=Operation(_TO_COPY[step.operation.value]))


def _copy_to_reduction(program: Program) -> Mutants:
    for site, step in _sites(program):
        if step.operation.value in _TO_REDUCTION:
            changes = {"operation": Operation(_TO_REDUCTION[step.operation.value])}
            if step.operation is not Operation.COPY:
                changes["source"] = step.destination
            yield _with_step(program, site, **changes)


def _reduction_twice(program: Program) -> Mutants:
    for (rank, number, index), step in _sites(program):
        if step.operation is Operation.REDUCE:
            again = msgspec.structs.replace(step, depends_on=None)
            yield _with_extra(program, (rank, number, index + 1), again)


def _extra_contribution(program: Program) -> Mutants:
    for site, step in _sites(program):
        if step.operation is Operation.SEND and step.source.buffer is not Buffer.SCRATCH and site[2] == 0:
            extra = Step(operation=Operation.REDUCE, source=step.source, destination=step.source, count=1)
            yield _with_extra(program, site, extra)


def _flag_cleared(program: Program) -> Mutants:
    for rank, number, threadblock in _blocks(program):
        waited = {
            step.depends_on.step
            for other in program.ranks[rank].threadblocks
            for step in other.steps
            if step.depends_on is not None and step.depends_on.threadblock == number
        }
        if waited:
            last = max(waited)
            steps = tuple(
                msgspec.structs.replace(step, flagged=step.flagged and index < last)
                for index, step in enumerate(threadblock.steps)
            )
            yield _with_block(program, rank, number, steps=steps)


def _wait_dropped(program: Program) -> Mutants:
    for site, step in _sites(program):
        rank, number, index = site
        if step.depends_on is None:
            continue
        if step.operation is Operation.NOP:
            yield _without_step(program, site)
        elif index == 0 or _step_at(program, (rank, number, index - 1)).operation is not Operation.NOP:
            yield _with_step(program, site, depends_on=None)


def _wait_for_nothing(program: Program) -> Mutants:
    for site, step in _sites(program):
        if step.depends_on is None:
            continue
        blocks = program.ranks[site[0]].threadblocks
        end = len(blocks[step.depends_on.threadblock].steps)
        for threadblock, index in ((step.depends_on.threadblock, end), (len(blocks), 0), (site[1], site[2])):
            yield _with_step(program, site, depends_on=Dependency(threadblock=threadblock, step=index))


def _flag_and_wait_moved_forward(program: Program) -> Mutants:
    """The wait ends one step early: its target is flagged too soon."""
    for site, step in _sites(program):
        wait = step.depends_on
        if wait is None or wait.step == 0:
            continue
        early = (site[0], wait.threadblock, wait.step - 1)
        if _step_at(program, early).operation is not Operation.NOP:
            earlier = Dependency(threadblock=wait.threadblock, step=wait.step - 1)
            yield _with_step(_with_step(program, early, flagged=True), site, depends_on=earlier)


def _cycle_of_waits(program: Program) -> Mutants:
    """The step that is waited for waits for the one that waits for it."""
    for site, step in _sites(program):
        wait = step.depends_on
        if wait is None or step.operation is Operation.NOP:
            continue
        target = (site[0], wait.threadblock, wait.step)
        back = Dependency(threadblock=site[1], step=site[2])
        if _step_at(program, target).depends_on is None:
            yield _with_step(_with_step(program, target, depends_on=back), site, flagged=True)


def _everybody_receives_first(program: Program) -> Mutants:
    """Each first send goes behind the receive that follows it, on every rank."""
    changed, blocks = program, 0
    for rank, number, threadblock in _blocks(program):
        steps = threadblock.steps
        if len(steps) > 1 and steps[0].operation is Operation.SEND and steps[1].operation.receives:
            changed = _with_block(changed, rank, number, steps=(steps[1], steps[0], *steps[2:]))
            blocks += 1
    if blocks > len(program.ranks) - 1:
        yield changed


def _nop_chain_open(program: Program) -> Mutants:
    for site, step in _sites(program):
        if step.operation is Operation.NOP:
            yield _with_step(program, site, depends_on=None)
            follower = (site[0], site[1], site[2] + 1)
            if _step_at(program, follower).operation is not Operation.NOP:
                yield _with_step(program, follower, depends_on=None)


def _nop_at_the_end(program: Program) -> Mutants:
    for site, step in _sites(program):
        if step.depends_on is not None and step.operation is not Operation.NOP:
            rank, number, _ = site
            steps = program.ranks[rank].threadblocks[number].steps
            last = msgspec.structs.replace(step, operation=Operation.NOP, count=0, flagged=False)
            yield _with_block(program, rank, number, steps=(*steps, last))


def _rank_missing(program: Program) -> Mutants:
    for rank, own in enumerate(program.ranks):
        yield _with_rank(program, rank, msgspec.structs.replace(own, threadblocks=()))


def _wrong_place(program: Program) -> Mutants:
    """In-place programs that keep everything in one buffer, offered for calls out of place."""
    buffers = {side.buffer for _, step in _sites(program) for side in (step.source, step.destination)}
    if program.in_place and not {Buffer.INPUT, Buffer.OUTPUT} <= buffers:
        yield msgspec.structs.replace(program, in_place=False, out_of_place=True)


def _wrong_root(program: Program) -> Mutants:
    if program.root is not None:
        yield msgspec.structs.replace(program, root=(program.root + 1) % len(program.ranks))


def _wrong_collective(program: Program) -> Mutants:
    if program.collective == "allgather":
        yield msgspec.structs.replace(program, collective="alltoall")
    if program.collective == "allreduce":
        yield msgspec.structs.replace(program, collective="broadcast", root=0)


KINDS: dict[str, Callable[[Program], Mutants]] = {
    "step dropped": _step_dropped,
    "steps swapped": _steps_swapped,
    "wrong source": _wrong_source,
    "wrong destination": _wrong_destination,
    "past the end": _past_the_end,
    "wrong buffer": _wrong_buffer,
    "chunk shifted at both ends": _chunk_shifted_at_both_ends,
    "message deleted": _message_deleted,
    "message shortened": _message_shortened,
    "count higher": _count_higher,
    "count lower": _count_lower,
    "wrong peer": _wrong_peer,
    "bad peer": _bad_peer,
    "wrong channel": _wrong_channel,
    "connection shared": _connection_shared,
    "reduction to copy": _reduction_to_copy,
    "copy to reduction": _copy_to_reduction,
    "reduction twice": _reduction_twice,
    "extra contribution": _extra_contribution,
    "flag cleared": _flag_cleared,
    "wait dropped": _wait_dropped,
    "wait for nothing": _wait_for_nothing,
    "flag and wait moved forward": _flag_and_wait_moved_forward,
    "cycle of waits": _cycle_of_waits,
    "everybody receives first": _everybody_receives_first,
    "nop chain open": _nop_chain_open,
    "nop at the end": _nop_at_the_end,
    "rank missing": _rank_missing,
    "wrong place": _wrong_place,
    "wrong root": _wrong_root,
    "wrong collective": _wrong_collective,
}
