"""Programs: what each threadblock of each rank does, step by step.

A `Program` is what MSCCL-style runtimes execute, one field for one attribute of MSCCL XML, so that reading and
writing a file are plain translations. It is plain data and may hold a wrong program: the verifier judges it.

Execution: all threadblocks of a rank run concurrently; each runs its steps strictly in order. A threadblock has
at most one send peer and one receive peer on one channel; (source rank, destination rank, channel) is a
connection, a FIFO. A step may wait for one step of another threadblock of the same rank (`depends_on`); further
ones are put on `nop` steps just before it. A step that others wait for is `flagged`.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Operation(StrEnum):
    """What a step does; `src` and `dst` are chunks of this rank's own buffers, `message` is what arrives."""

    SEND = "s"  # send src
    RECV = "r"  # dst = message
    RECV_COPY_SEND = "rcs"  # dst = message; forward message
    RECV_REDUCE_SEND = "rrs"  # forward message + src; nothing stored
    RECV_REDUCE_COPY = "rrc"  # dst = message + src
    RECV_REDUCE_COPY_SEND = "rrcs"  # dst = message + src; forward it
    COPY = "cpy"  # dst = src
    REDUCE = "re"  # dst = dst + src
    NOP = "nop"  # only waits for `depends_on`

    @property
    def sends(self) -> bool:
        """True when the step sends to the threadblock's send peer."""
        return self in _SENDS

    @property
    def receives(self) -> bool:
        """True when the step receives from the threadblock's receive peer."""
        return self in _RECEIVES


_SENDS = frozenset(
    {Operation.SEND, Operation.RECV_COPY_SEND, Operation.RECV_REDUCE_SEND, Operation.RECV_REDUCE_COPY_SEND}
)
_RECEIVES = frozenset(
    {
        Operation.RECV,
        Operation.RECV_COPY_SEND,
        Operation.RECV_REDUCE_SEND,
        Operation.RECV_REDUCE_COPY,
        Operation.RECV_REDUCE_COPY_SEND,
    }
)


class Buffer(StrEnum):
    """A rank's memory: the user's input, the user's output, and scratch of the runtime."""

    INPUT = "i"
    OUTPUT = "o"
    SCRATCH = "s"


class Protocol(StrEnum):
    """How a connection moves bytes; it sets the FIFO depth and the size of one message."""

    SIMPLE = "Simple"
    LL = "LL"
    LL128 = "LL128"


class Location(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Chunk `offset` of a buffer. Convention on steps that do not use the side: any buffer, offset −1."""

    buffer: Buffer
    offset: int


class Dependency(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Step number `step` of threadblock `threadblock` of the same rank must be finished (for this tile)."""

    threadblock: int
    step: int


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One instruction on `count` consecutive chunks starting at `source` / `destination`."""

    operation: Operation
    source: Location
    destination: Location
    count: int
    depends_on: Dependency | None = None
    flagged: bool = False


class Threadblock(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A sequential executor. Its id is its position in `RankProgram.threadblocks`; −1 means no peer."""

    send_peer: int
    receive_peer: int
    channel: int
    steps: tuple[Step, ...]


class RankProgram(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The program of one rank; its id is its position in `Program.ranks`. Buffer sizes are in chunks."""

    input_chunks: int
    output_chunks: int
    scratch_chunks: int
    threadblocks: tuple[Threadblock, ...]


class Program(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A collective's program for all ranks.

    collective: the word of the file's dialect as forestsyn spells it (`allgather`, `reduce-scatter`, …; also
    `alltoall` and `custom`, which forestsyn reads and verifies but does not synthesize).
    chunk_count: chunks of the whole message (`nchunksperloop`).
    in_place / out_of_place: which pointer layouts the file offers itself for.
    minimum_bytes, maximum_bytes: the window of message sizes it offers itself for; maximum 0 = no limit.
    root: the root of broadcast and reduce; the file itself does not say it.
    """

    name: str
    collective: str
    protocol: Protocol
    chunk_count: int
    channel_count: int
    in_place: bool
    out_of_place: bool
    minimum_bytes: int
    maximum_bytes: int
    ranks: tuple[RankProgram, ...]
    root: int | None = None
