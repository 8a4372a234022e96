"""Form and limits of a program and its ranks: what loaders refuse, and what they let pass although it cannot work."""

from __future__ import annotations

from collections import Counter

from forestsyn.ir.program import Program, RankProgram
from forestsyn.units import format_bytes, format_count
from forestsyn.verify.program_memory import input_chunks, output_chunks, shard_chunks
from forestsyn.verify.program_report import Effect, Place, ProgramLog
from forestsyn.verify.program_steps import check_threadblock
from forestsyn.verify.runtime_limits import (
    MSCCL,
    PEERS_PER_CHANNEL_MAX,
    RESIDENT_THREADBLOCKS,
    RUNTIMES,
    WAITED_THREADBLOCK_MAX,
    Runtime,
)

#: microsoft/msccl allocates the scratch of the largest size when it starts; more than this is a slip.
_SCRATCH_BYTES = 16 * 2**30
#: 64 ranks with the 32,768 chunks that offsets can name have a quarter of this in input and output.
_TOTAL_CHUNKS_MAX = 2**24


def check_form(program: Program, log: ProgramLog) -> None:
    """Reports every breach of form and limits to `log`, for each of its runtimes."""
    runtimes = [RUNTIMES[name] for name in log.runtimes]
    if not program.ranks:
        log.violate("ranks", "the program has no ranks", effect=Effect.LOAD, blocks=True)
        return
    _check_chunks(program, log)
    for runtime in runtimes:
        _check_offer(program, runtime, log)
        _check_channels(program, runtime, log)
    _check_scratch(program, log)
    for rank in range(len(program.ranks)):
        _check_rank(program, rank, runtimes, log)


def _check_chunks(program: Program, log: ProgramLog) -> None:
    if program.chunk_count < 1:
        message = f"the program divides the message into {program.chunk_count} chunks, expected at least 1"
        log.violate("chunk-count", message, effect=Effect.LOAD, blocks=True)
    elif shard_chunks(program) is None:
        ranks = format_count(len(program.ranks), "rank")
        chunks = format_count(program.chunk_count, "chunk does", "chunks do")
        message = f"{chunks} not divide evenly among {ranks}"
        log.violate("chunk-count", message, blocks=True)
    _check_total(program, log)
    if program.root is not None and not 0 <= program.root < len(program.ranks):
        message = f"the root is {program.root}, expected a rank below {len(program.ranks)}"
        log.violate("root", message, blocks=True)
    if program.minimum_bytes < 0 or program.maximum_bytes < 0:
        log.violate("window", "minBytes and maxBytes must not be negative")


def _check_total(program: Program, log: ProgramLog) -> None:
    """A few characters can declare buffers that no machine could hold; offsets have 15 bits anyway."""
    declared = sum(own.input_chunks + own.output_chunks + own.scratch_chunks for own in program.ranks)
    total = max(declared, 2 * program.chunk_count * len(program.ranks))
    if total > _TOTAL_CHUNKS_MAX:
        message = f"all buffers together have {total} chunks, too many to check: at most {_TOTAL_CHUNKS_MAX}"
        log.violate("size", message, blocks=True)


def _check_offer(program: Program, runtime: Runtime, log: ProgramLog) -> None:
    """Whether the runtime knows the collective and would ever select the program."""
    only = (runtime.name,)
    low, high = program.minimum_bytes, program.maximum_bytes
    if program.collective not in runtime.collectives:
        message = f"{runtime.name} does not know the collective '{program.collective}'"
        log.violate("collective", message, effect=Effect.LOAD, runtimes=only)
    if runtime.window_half_open:
        if low > high:
            message = f"minBytes {low} is greater than maxBytes {high}"
            log.violate("window", message, effect=Effect.LOAD, runtimes=only)
        elif low == high:
            message = f"{runtime.name} never selects it: no message has at least {low} and fewer than {high} bytes"
            message += "" if high else "; maxBytes 0 does not mean 'no limit' there"
            log.violate("window", message, runtimes=only)
        if program.collective == "alltoall" and program.in_place:
            log.violate("place", "an in-place alltoall is refused", effect=Effect.LOAD, runtimes=only)
        return
    if 0 < high < low:
        message = f"{runtime.name} never selects it: minBytes {low} is greater than maxBytes {high}"
        log.violate("window", message, runtimes=only)
    if not (program.in_place or program.out_of_place):
        message = f"{runtime.name} never selects it: it offers itself neither in place nor out of place"
        log.violate("place", message, runtimes=only)


def _check_channels(program: Program, runtime: Runtime, log: ProgramLog) -> None:
    count, limit = program.channel_count, runtime.channels_max
    if count < 1:
        message = f"the program has {count} channels, expected at least 1"
        log.violate("channels", message, runtimes=(runtime.name,))
    elif count > limit:
        message = f"the program has {count} channels, {runtime.name} at most {limit}"
        if runtime.channels_refused:
            log.violate("channels", message, effect=Effect.LOAD, runtimes=(runtime.name,))
        else:
            log.warn("channels", message, (runtime.name,))


def _check_scratch(program: Program, log: ProgramLog) -> None:
    chunks = max(own.scratch_chunks for own in program.ranks)
    scratch = program.maximum_bytes * chunks // max(1, program.chunk_count)
    if scratch > _SCRATCH_BYTES:
        message = f"msccl would allocate {format_bytes(scratch)} of scratch at start; lower maxBytes"
        log.warn("scratch", message, (MSCCL,))


def _check_rank(program: Program, rank: int, runtimes: list[Runtime], log: ProgramLog) -> None:
    own = program.ranks[rank]
    place = Place(rank)
    count = len(own.threadblocks)
    for runtime in runtimes:
        if count > runtime.threadblocks_max:
            message = f"{count} threadblocks, {runtime.name} takes at most {runtime.threadblocks_max}"
            log.violate("threadblocks", message, place, effect=Effect.LOAD, runtimes=(runtime.name,))
    if count > RESIDENT_THREADBLOCKS:
        message = (
            f"{place}: {count} threadblocks must run at once; a GPU with fewer multiprocessors (A100: 108) hangs"
        )
        log.warn("threadblocks", message, log.runtimes)
    _check_sizes(program, rank, runtimes, log)
    _check_connections(own, place, log)
    _check_waited(own, place, log)
    room = _usable_chunks(program, own)
    for number in range(count):
        check_threadblock(program, rank, number, room, runtimes, log)


def _check_sizes(program: Program, rank: int, runtimes: list[Runtime], log: ProgramLog) -> None:
    own = program.ranks[rank]
    if min(own.input_chunks, own.output_chunks, own.scratch_chunks) < 0:
        message = "a buffer has a negative number of chunks"
        log.violate("buffer-size", message, Place(rank), effect=Effect.LOAD, blocks=True)
    sizes = (
        ("i_chunks", own.input_chunks, len(program.ranks) if program.collective == "allgather" else 1),
        ("o_chunks", own.output_chunks, len(program.ranks) if program.collective == "reduce-scatter" else 1),
    )
    checking = [runtime.name for runtime in runtimes if runtime.chunk_counts_checked]
    for name, chunks, factor in sizes:
        if chunks > 0 and chunks * factor != program.chunk_count:
            whole = program.chunk_count // factor
            message = f"{name} is {chunks}, inconsistent with nchunksperloop {program.chunk_count}: expected {whole}"
            log.violate("buffer-size", message, Place(rank), effect=Effect.LOAD, runtimes=checking)


def _check_connections(own: RankProgram, place: Place, log: ProgramLog) -> None:
    for word, attribute in (("sends to", "send_peer"), ("receives from", "receive_peer")):
        users: dict[tuple[int, int], int] = {}
        for number, threadblock in enumerate(own.threadblocks):
            peer = getattr(threadblock, attribute)
            if peer < 0:
                continue
            first = users.setdefault((peer, threadblock.channel), number)
            if first != number:
                message = f"it {word} rank {peer} on channel {threadblock.channel}, and so does threadblock {first}"
                log.violate("connection", message, Place(place.rank, number), blocks=True)
        for channel, peers in sorted(Counter(channel for _, channel in users).items()):
            if peers > PEERS_PER_CHANNEL_MAX:
                message = f"{word} {peers} peers on channel {channel}, expected at most {PEERS_PER_CHANNEL_MAX}"
                log.violate("peers-per-channel", message, place, effect=Effect.LOAD)


def _check_waited(own: RankProgram, place: Place, log: ProgramLog) -> None:
    """The id of the threadblock that a step waits for is kept in a signed byte, unchecked."""
    if len(own.threadblocks) <= WAITED_THREADBLOCK_MAX + 1:
        return
    waited = {
        step.depends_on.threadblock
        for threadblock in own.threadblocks
        for step in threadblock.steps
        if step.depends_on is not None
    }
    if max(waited, default=0) > WAITED_THREADBLOCK_MAX:
        message = f"a step waits for threadblock {max(waited)}; ids above {WAITED_THREADBLOCK_MAX} wrap round"
        log.violate("waited-threadblock", message, place)


def _usable_chunks(program: Program, own: RankProgram) -> dict[str, int]:
    """Chunks that steps may address: within the declared buffers and within the caller's memory."""
    return {
        "i": min(own.input_chunks, input_chunks(program, own)),
        "o": min(own.output_chunks, output_chunks(program, own)),
        "s": own.scratch_chunks,
    }
