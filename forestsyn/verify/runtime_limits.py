"""What each runtime can load and execute: the verifier's own table.

It repeats facts that lowering knows from `forestsyn.ir.target`, on purpose: a slip there must not pass here.
Read from the runtimes' sources: microsoft/msccl b23e9cd5, Azure/msccl-executor-nccl c6f6b36d, ROCm/rccl 0cbce2a7.
"""

from __future__ import annotations

import msgspec

from forestsyn.ir.program import Operation, Protocol

MSCCL = "msccl"
EXECUTOR = "executor"
RCCL = "rccl"

#: Messages in flight on one connection: a ring of 8 slots, of which a Simple message takes 4.
FIFO_DEPTH = {Protocol.SIMPLE: 2, Protocol.LL: 8, Protocol.LL128: 8}
#: `cnt` is checked to be below 72 and is also the most chunks that one message carries.
COUNT_MAX = 71
#: Offsets are kept in 16 bits, the threadblock that a step waits for in 8 bits.
OFFSET_MAX = 32_767
WAITED_THREADBLOCK_MAX = 127
#: Sends, and receives, of one rank on one channel.
PEERS_PER_CHANNEL_MAX = 32
#: Consecutive `re` steps that the runtimes fuse into one.
FUSED_REDUCTIONS_MAX = 16
#: Threadblocks spin while they wait, so all must be resident, one on each multiprocessor: an A100 has 108.
RESIDENT_THREADBLOCKS = 108

_COMMON = frozenset(("allreduce", "allgather", "reduce-scatter", "reduce", "broadcast", "alltoall"))
_EXECUTOR_ONLY = frozenset(("send", "recv", "gather", "scatter", "alltoallv"))
_NVIDIA_SLOTS = {Protocol.SIMPLE: 2 * 2**20, Protocol.LL: 32 * 2**10, Protocol.LL128: 576_000}
_AMD_SLOTS = {Protocol.SIMPLE: 2 * 2**20, Protocol.LL: 16 * 2**10, Protocol.LL128: 53_760}


class Runtime(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One runtime.

    collectives: what its loader knows, in forestsyn's words. operations: what its kernels execute.
    steps_max, threadblocks_max: refused beyond. channels_max: the size of its channel table; `channels_refused`
    says whether a larger `nchannels` is refused (else it only warns, and the channels beyond are out of bounds).
    peers_checked: whether its loader checks the range of peers. chunk_counts_checked: whether it checks
    input_chunks and output_chunks against the chunk count. both_places: one file may serve calls in place and out
    of place. window_half_open: sizes minimum <= n < maximum, and maximum 0 admits none (else n <= maximum, and 0
    admits all). message_bytes: the most that one message carries, by protocol.
    """

    name: str
    collectives: frozenset[str]
    operations: frozenset[Operation]
    steps_max: int
    threadblocks_max: int
    channels_max: int
    channels_refused: bool
    peers_checked: bool
    chunk_counts_checked: bool
    both_places: bool
    window_half_open: bool
    message_bytes: dict[Protocol, int]


RUNTIMES: dict[str, Runtime] = {
    MSCCL: Runtime(
        name=MSCCL,
        collectives=_COMMON | {"custom"},
        operations=frozenset(Operation),
        steps_max=256,
        threadblocks_max=216,
        channels_max=32,
        channels_refused=False,
        peers_checked=True,
        chunk_counts_checked=True,
        both_places=False,
        window_half_open=True,
        message_bytes=_NVIDIA_SLOTS,
    ),
    EXECUTOR: Runtime(
        name=EXECUTOR,
        collectives=_COMMON | _EXECUTOR_ONLY,
        operations=frozenset(Operation),
        steps_max=64,
        threadblocks_max=1_024,
        channels_max=32,
        channels_refused=True,
        peers_checked=False,
        chunk_counts_checked=False,
        both_places=True,
        window_half_open=False,
        message_bytes=_NVIDIA_SLOTS,
    ),
    RCCL: Runtime(
        name=RCCL,
        collectives=_COMMON | _EXECUTOR_ONLY,
        operations=frozenset(
            (Operation.SEND, Operation.RECV, Operation.COPY, Operation.REDUCE, Operation.NOP),
        ),
        steps_max=64,
        threadblocks_max=64,
        channels_max=128,
        channels_refused=True,
        peers_checked=False,
        chunk_counts_checked=False,
        both_places=True,
        window_half_open=False,
        message_bytes=_AMD_SLOTS,
    ),
}
