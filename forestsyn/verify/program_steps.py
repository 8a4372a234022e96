"""Form and limits of threadblocks and steps."""

from __future__ import annotations

from forestsyn.ir.program import Location, Operation, Program, RankProgram, Step, Threadblock
from forestsyn.units import format_count
from forestsyn.verify.program_report import Effect, Place, ProgramLog
from forestsyn.verify.runtime_limits import COUNT_MAX, FUSED_REDUCTIONS_MAX, OFFSET_MAX, Runtime

_NOP = Operation.NOP
#: Operations that read chunks at `source`, and that write chunks at `destination`.
_USES_SOURCE = frozenset(set(Operation) - {Operation.RECV, Operation.RECV_COPY_SEND, _NOP})
_USES_DESTINATION = frozenset(set(Operation) - {Operation.SEND, Operation.RECV_REDUCE_SEND, _NOP})


def check_threadblock(
    program: Program, rank: int, number: int, room: dict[str, int], runtimes: list[Runtime], log: ProgramLog
) -> None:
    """Reports what is wrong with one threadblock. room: chunks of each buffer that its steps may address."""
    own = program.ranks[rank]
    threadblock = own.threadblocks[number]
    place = Place(rank, number)
    _check_peers(program, threadblock, place, runtimes, log)
    for runtime in runtimes:
        if len(threadblock.steps) > runtime.steps_max:
            message = f"{len(threadblock.steps)} steps, {runtime.name} takes at most {runtime.steps_max}"
            log.violate("steps", message, place, effect=Effect.LOAD, runtimes=(runtime.name,))
    _check_operations(threadblock, place, runtimes, log)
    _check_nops(threadblock, place, log)
    _check_fusion(threadblock, place, log)
    for index, step in enumerate(threadblock.steps):
        if step.depends_on is not None:
            _check_dependency(own, step, Place(rank, number, index), log)
        if step.operation is _NOP:
            continue
        if not 0 < step.count <= COUNT_MAX:
            _report_count(step, Place(rank, number, index), log)
        uses_source, uses_destination = step.operation in _USES_SOURCE, step.operation in _USES_DESTINATION
        if uses_source and not _inside(step.source, step.count, room):
            _report_offset(own, step, step.source, room, Place(rank, number, index), log)
        if uses_destination and not _inside(step.destination, step.count, room):
            _report_offset(own, step, step.destination, room, Place(rank, number, index), log)


def _check_peers(
    program: Program, threadblock: Threadblock, place: Place, runtimes: list[Runtime], log: ProgramLog
) -> None:
    for word, peer in (("send", threadblock.send_peer), ("receive", threadblock.receive_peer)):
        if peer == place.rank:
            message = f"its {word} peer is its own rank"
            log.violate("peer", message, place, effect=Effect.LOAD, blocks=True)
        elif not -1 <= peer < len(program.ranks):
            message = f"its {word} peer is {peer}, expected −1 or a rank below {len(program.ranks)}"
            checking = [runtime.name for runtime in runtimes if runtime.peers_checked]
            others = [runtime.name for runtime in runtimes if not runtime.peers_checked]
            log.violate("peer", message, place, effect=Effect.LOAD, runtimes=checking, blocks=True)
            log.violate("peer", message, place, runtimes=others, blocks=True)
    channel = threadblock.channel
    for runtime in runtimes:
        only = (runtime.name,)
        if not 0 <= channel <= runtime.channels_max:
            message = f"channel {channel} is invalid, {runtime.name} has {runtime.channels_max}"
            log.violate("channel", message, place, effect=Effect.LOAD, runtimes=only)
        elif channel >= min(program.channel_count, runtime.channels_max):
            count = format_count(program.channel_count, "channel")
            message = f"channel {channel} is never connected: the program has {count}"
            log.violate("channel", message, place, runtimes=only)


def _check_operations(threadblock: Threadblock, place: Place, runtimes: list[Runtime], log: ProgramLog) -> None:
    used = {step.operation for step in threadblock.steps}
    if threadblock.send_peer < 0 and any(operation.sends for operation in used):
        log.violate("peer", "it has a send but no send peer", place, effect=Effect.LOAD, blocks=True)
    if threadblock.receive_peer < 0 and any(operation.receives for operation in used):
        log.violate("peer", "it has a receive but no receive peer", place, effect=Effect.LOAD, blocks=True)
    for runtime in runtimes:
        if used <= runtime.operations:
            continue
        refused = sorted(operation.value for operation in used - runtime.operations)
        message = f"{runtime.name} loads but cannot run steps of type {' and '.join(refused)}"
        log.violate("operation", message, place, runtimes=(runtime.name,))


def _check_nops(threadblock: Threadblock, place: Place, log: ProgramLog) -> None:
    """A nop holds one more dependency of the next real step, which must have one itself."""
    chained = False
    for index, step in enumerate(threadblock.steps):
        here = Place(place.rank, place.threadblock, index)
        if step.operation is _NOP:
            if step.depends_on is None:
                message = "a nop that waits for nothing shifts the step numbers of its threadblock"
                log.violate("nop", message, here, blocks=True)
            if not 0 <= step.count <= COUNT_MAX:
                message = f"count is {step.count}, expected 0 to {COUNT_MAX}"
                log.violate("count", message, here, effect=Effect.LOAD)
            chained = True
            continue
        if chained and step.depends_on is None:
            message = "it follows a nop but waits for nothing itself: the chain of dependencies is not closed"
            log.violate("nop", message, here, effect=Effect.LOAD, blocks=True)
        chained = False
    if chained:
        log.violate("nop", "its last step is a nop, whose dependency would hold for no step", place)


def _check_fusion(threadblock: Threadblock, place: Place, log: ProgramLog) -> None:
    run, previous = 0, None
    for step in threadblock.steps:
        joins = (
            previous is not None
            and step.operation is previous.operation is Operation.REDUCE
            and step.destination == previous.destination
            and step.source.buffer is previous.source.buffer
            and step.depends_on is None
            and not previous.flagged
        )
        run = run + 1 if joins else 1
        if run == FUSED_REDUCTIONS_MAX + 1:
            message = f"more than {FUSED_REDUCTIONS_MAX} reductions into one place in a row are fused into one step"
            log.violate("fusion", message, place)
        previous = step


def _check_dependency(own: RankProgram, step: Step, place: Place, log: ProgramLog) -> None:
    waited = step.depends_on
    assert waited is not None, "the caller checked that"
    name = f"step {waited.step} of threadblock {waited.threadblock}"
    if not 0 <= waited.threadblock < len(own.threadblocks):
        log.violate("dependency", f"it waits for {name}, which does not exist", place, blocks=True)
        return
    if waited.threadblock == place.threadblock:
        log.violate("dependency", f"it waits for {name}, its own threadblock", place, blocks=True)
        return
    steps = own.threadblocks[waited.threadblock].steps
    if not 0 <= waited.step < len(steps):
        message = f"it waits for {name}, which has only {format_count(len(steps), 'step')}"
        log.violate("dependency", message, place, blocks=True)
        return
    target = steps[waited.step]
    if target.flagged and target.operation is not _NOP:
        return
    if not any(later.flagged and later.operation is not _NOP for later in steps[waited.step :]):
        message = f"it waits for {name}, which is not flagged, and no later step is: it waits forever"
        log.violate("dependency", message, place, blocks=True)


def _report_count(step: Step, place: Place, log: ProgramLog) -> None:
    message = f"count is {step.count}, expected 1 to {COUNT_MAX}"
    effect = Effect.RUN if step.count == 0 else Effect.LOAD
    log.violate("count", message, place, effect=effect, blocks=True)


def _inside(location: Location, count: int, room: dict[str, int]) -> bool:
    offset = location.offset
    return 0 <= offset <= OFFSET_MAX and offset + count <= room[location.buffer]


def _report_offset(
    own: RankProgram, step: Step, location: Location, room: dict[str, int], place: Place, log: ProgramLog
) -> None:
    chunks = room[location.buffer]
    # Loaders look at the first chunk and the declared size only, let −1 pass, and do not look at rrc at all.
    declared = {"i": own.input_chunks, "o": own.output_chunks, "s": own.scratch_chunks}[location.buffer]
    unchecked = step.operation is Operation.RECV_REDUCE_COPY or -1 <= location.offset < declared
    last = location.offset + step.count - 1
    buffer = location.buffer.value
    found = f"{buffer}[{location.offset}]" if step.count == 1 else f"{buffer}[{location.offset}..{last}]"
    message = f"'{step.operation.value}' uses {found}, but {buffer} has {format_count(chunks, 'chunk')}"
    if location.offset > OFFSET_MAX:
        message += f" and offsets end at {OFFSET_MAX}"
    effect = Effect.RUN if unchecked else Effect.LOAD
    log.violate("offset", message, place, effect=effect, blocks=True, location=location)
