"""Execution plans: what each threadblock of each rank does on MSCCL++, operation by operation.

A `Plan` is what MSCCL++'s executor reads, one field for one attribute of its JSON, so that reading and writing a file
are plain translations. It is plain data and may hold a wrong plan: the verifier judges it.

Execution is one-sided. A put writes a peer's buffer; a signal raises a counter at the peer, a wait waits for the next
count. The n-th channel of a type from rank a to b and the n-th from b to a are the two ends of one connection.
Threadblocks run concurrently, each its operations in order, but its threads are kept together only by `nop`.
Ids inside a threadblock (`channel_ids`, `buffer_id`, `switch_channel_id` of an operation) are positions in the
threadblock's own lists, whose entries are positions in the lists of its GPU.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec
from msgspec import field

from forestsyn.ir.program import Buffer


class PlanOperation(StrEnum):
    """What an operation does. Packets carry a flag beside each 8 bytes, so that reading one waits for it."""

    SYNC = "nop"  # the threads of the threadblock meet
    BARRIER = "barrier"  # threadblocks meet
    PUT = "put"  # remote = local
    PUT_SIGNAL = "pws"
    PUT_SIGNAL_FLUSH = "pwsf"
    GET = "get"  # local = remote
    COPY = "copy"  # local = local
    SIGNAL = "signal"
    WAIT = "wait"
    FLUSH = "flush"
    RELAXED_SIGNAL = "rlxsignal"  # orders execution, not data
    RELAXED_WAIT = "rlxwait"
    REDUCE = "re"  # local = sum of locals
    REDUCE_SEND = "res"  # the same, and remotes = the sum
    READ_REDUCE = "rre"  # local = local + remotes
    READ_REDUCE_SEND = "rres"
    PUT_PACKETS = "ppkt"
    READ_PUT_PACKETS = "rppkt"
    COPY_PACKETS = "cpkt"
    UNPACK_PACKETS = "upkt"
    REDUCE_PACKETS = "repkt"
    REDUCE_SEND_PACKETS = "respkt"
    REDUCE_COPY_PACKETS = "recpkt"
    REDUCE_COPY_SEND_PACKETS = "recspkt"
    GROUP_LOAD_REDUCE_STORE = "glres"  # all ranks of a switch = sum over all
    GROUP_STORE = "gstore"  # all ranks of a switch = local
    GROUP_STORE_PACKETS = "gstorepkt"
    PIPELINE = "pipeline"  # repeats `operations`, one slice of the data after the other
    SEMAPHORE_ACQUIRE = "sem_acquire"
    SEMAPHORE_RELEASE = "sem_release"


class ChannelType(StrEnum):
    """How a channel moves bytes: mapped memory, a proxy with a NIC or copy engine, or a switch that combines."""

    MEMORY = "memory"
    PORT = "port"
    SWITCH = "switch"
    NONE = "none"


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Parts leave out of the text what they do not use."""


class BufferRange(_Part, frozen=True, kw_only=True):
    """`size` chunks from chunk `index` on: of an own buffer, of a remote one, or of all buffers of a switch channel.

    Exactly one of buffer, remote and switch says which.
    """

    buffer: Buffer | None = field(name="type", default=None)
    remote: int | None = field(name="buffer_id", default=None)
    switch: int | None = field(name="switch_channel_id", default=None)
    index: int
    size: int


class GroupShare(_Part, frozen=True, kw_only=True):
    """Part `threadblock` of `size` even parts of every range of the operation."""

    threadblock: int = field(name="tb_id")
    size: int = field(name="tbg_size")


class Iteration(_Part, frozen=True, kw_only=True):
    """How a pipeline cuts its data: slices of `unit_size` bytes of `chunk_count` chunks."""

    unit_size: int
    chunk_count: int = field(name="num_chunks")


class PlanStep(_Part, frozen=True, kw_only=True):
    """One operation; attributes that it does not use are None or empty."""

    operation: PlanOperation = field(name="name")
    sources: tuple[BufferRange, ...] = field(name="src_buff", default=())
    destinations: tuple[BufferRange, ...] = field(name="dst_buff", default=())
    channel_ids: tuple[int, ...] = ()
    channel_type: ChannelType | None = None
    share: GroupShare | None = field(name="tbg_info", default=None)
    barrier_id: int | None = None
    threadblock_count: int | None = field(name="num_threadblocks", default=None)
    semaphore_ids: tuple[int, ...] = ()
    reduce_op: str | None = None
    iteration: Iteration | None = field(name="iter_context", default=None)
    steps: tuple[PlanStep, ...] = field(name="ops", default=())


class BlockChannels(_Part, frozen=True, kw_only=True):
    """Channels of one type that a threadblock uses, as positions among its GPU's channels of that type."""

    channel_type: ChannelType
    channel_ids: tuple[int, ...]


class BlockBuffers(_Part, frozen=True, kw_only=True):
    """Remote buffers that a threadblock reaches through one type of channel, as positions in its GPU's list."""

    access_channel_type: ChannelType
    remote_buffer_ids: tuple[int, ...]


class PlanBlock(_Part, frozen=True, kw_only=True):
    """A threadblock. `id` must be its position."""

    id: int
    steps: tuple[PlanStep, ...] = field(name="ops")
    channels: tuple[BlockChannels, ...]
    remote_buffers: tuple[BlockBuffers, ...] = field(name="remote_buffer_refs", default=())


class RankGroup(_Part, frozen=True, kw_only=True):
    """The ranks that a switch channel joins."""

    size: int
    ranks: tuple[int, ...]


class GpuChannels(_Part, frozen=True, kw_only=True):
    """Memory or port channels, one to each entry of `connected_to`; or the switch channels of `rank_groups`."""

    channel_type: ChannelType
    connected_to: tuple[int, ...] = ()
    buffer: Buffer | None = field(name="buffer_type", default=None)
    rank_groups: tuple[RankGroup, ...] = ()


class RemoteBuffer(_Part, frozen=True, kw_only=True):
    """A buffer of another rank that this one writes or reads."""

    rank: int
    buffer: Buffer = field(name="type")
    access_channel_types: tuple[ChannelType, ...]


class Semaphore(_Part, frozen=True, kw_only=True):
    """A counter between threadblocks of one GPU."""

    init_value: int


class PlanGpu(_Part, frozen=True, kw_only=True):
    """The part of one rank. `id` must be its position. Buffer sizes are in chunks."""

    id: int
    input_chunks: int
    output_chunks: int
    scratch_chunks: int
    blocks: tuple[PlanBlock, ...] = field(name="threadblocks")
    channels: tuple[GpuChannels, ...]
    remote_buffers: tuple[RemoteBuffer, ...]
    semaphores: tuple[Semaphore, ...] = ()


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A collective's plan for all ranks.

    protocol: ``LL`` keeps packets in scratch, anything else is plain. in_place: the calls that it is for.
    reuse_resources: one set of channels and one scratch buffer for all calls, whatever their buffers are.
    minimum_bytes, maximum_bytes: sizes of calls, of the output for an allgather, of the input for the others.
    """

    name: str
    collective: str
    protocol: str
    in_place: bool = field(name="inplace")
    reuse_resources: bool = False
    use_double_scratch_buffer: bool = False
    buffer_alignment: int = 16
    threads_per_block: int = field(name="num_threads_per_block", default=1024)
    minimum_bytes: int = field(name="min_message_size", default=0)
    maximum_bytes: int = field(name="max_message_size", default=2**64 - 1)
    gpus: tuple[PlanGpu, ...]
