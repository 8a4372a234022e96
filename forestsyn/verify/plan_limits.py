"""What the executor of MSCCL++ holds and does, as the verifier knows it (mscclpp 0.9.0).

Read from execution_plan.cc, executor.cc, execution_common.hpp and execution_kernel.hpp. The lowering keeps its own
table on purpose: a slip here must not pass there.
"""

from __future__ import annotations

from functools import cache

from forestsyn.ir.plan import PlanOperation as Op

RUNTIME = "mscclpp"

STEPS_MAX = 64
BLOCK_CHANNELS_MAX = 16
BLOCK_BUFFERS_MAX = 16
STEP_CHANNELS_MAX = 8
#: Ranges on each side of an operation: 8 remote ones and 2 of its own.
STEP_RANGES_MAX = 10
BARRIERS_MAX = 16
STEP_SEMAPHORES_MAX = 16
THREADS_MAX = 1024
#: Packets and reductions work on vectors of this many bytes.
VECTOR_BYTES = 16
OFFSET_MAX = 2**32 - 1
MINIMUM_BYTES_MAX = 2**31 - 1
#: Rounds of a pipeline: the loader keeps 32 bits, the kernel 16.
ROUNDS_MAX = 2**16 - 1
SHARED_SCRATCH_BYTES = 2**26

#: The spelling of a plan -> the collective whose result the verifier knows.
COLLECTIVES = {
    "allreduce": "allreduce",
    "allgather": "allgather",
    "reducescatter": "reduce-scatter",
    "reduce_scatter": "reduce-scatter",
    "reduce-scatter": "reduce-scatter",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "alltoall": "alltoall",
}

SYNCHRONIZING = frozenset({Op.SIGNAL, Op.WAIT, Op.RELAXED_SIGNAL, Op.RELAXED_WAIT, Op.FLUSH})
PUTS = frozenset({Op.PUT, Op.PUT_SIGNAL, Op.PUT_SIGNAL_FLUSH})
#: Source n goes to destination n.
PAIRED = PUTS | {Op.GET, Op.PUT_PACKETS}
#: Operations whose ranges are packets in scratch, wholly or in part.
PACKETS = frozenset(
    {
        Op.PUT_PACKETS,
        Op.READ_PUT_PACKETS,
        Op.COPY_PACKETS,
        Op.UNPACK_PACKETS,
        Op.REDUCE_PACKETS,
        Op.REDUCE_SEND_PACKETS,
        Op.REDUCE_COPY_PACKETS,
        Op.REDUCE_COPY_SEND_PACKETS,
        Op.GROUP_STORE_PACKETS,
    }
)

#: Operations that store through a switch.
SWITCHED = frozenset({Op.GROUP_LOAD_REDUCE_STORE, Op.GROUP_STORE, Op.GROUP_STORE_PACKETS})

#: Operations whose threads take every n-th vector of 16 bytes of their ranges, as those of `PACKETS` take packets.
VECTORS = frozenset({Op.REDUCE, Op.REDUCE_SEND, Op.READ_REDUCE, Op.READ_REDUCE_SEND})

#: For every operation on data: its sources and destinations in order, each with the most that may stand there.
#: l own plain, p own packets, r remote plain, q remote packets, g a switch's plain, k a switch's packets.
SHAPES: dict[Op, tuple[tuple[tuple[str, int], ...], tuple[tuple[str, int], ...]]] = {
    Op.PUT: ((("l", 8),), (("r", 8),)),
    Op.PUT_SIGNAL: ((("l", 8),), (("r", 8),)),
    Op.PUT_SIGNAL_FLUSH: ((("l", 8),), (("r", 8),)),
    Op.GET: ((("r", 8),), (("l", 8),)),
    Op.COPY: ((("l", 1),), (("l", 1),)),
    Op.REDUCE: ((("l", 10),), (("l", 1),)),
    Op.REDUCE_SEND: ((("l", 10),), (("l", 1), ("r", 9))),
    Op.READ_REDUCE: ((("l", 1), ("r", 9)), (("l", 1),)),
    Op.READ_REDUCE_SEND: ((("l", 1), ("r", 9)), (("l", 1), ("r", 9))),
    Op.PUT_PACKETS: ((("l", 8),), (("q", 8),)),
    Op.READ_PUT_PACKETS: ((("p", 1),), (("q", 8),)),
    Op.COPY_PACKETS: ((("l", 1),), (("p", 1),)),
    Op.UNPACK_PACKETS: ((("p", 1),), (("l", 1),)),
    Op.REDUCE_PACKETS: ((("l", 1), ("p", 9)), (("l", 1),)),
    Op.REDUCE_SEND_PACKETS: ((("l", 1), ("p", 9)), (("l", 1), ("q", 9))),
    Op.REDUCE_COPY_PACKETS: ((("l", 1), ("p", 9)), (("l", 1), ("p", 1))),
    Op.REDUCE_COPY_SEND_PACKETS: ((("l", 1), ("p", 9)), (("l", 1), ("p", 1), ("q", 8))),
    Op.GROUP_LOAD_REDUCE_STORE: ((("g", 1),), (("g", 1),)),
    Op.GROUP_STORE: ((("l", 1),), (("g", 1),)),
    Op.GROUP_STORE_PACKETS: ((("p", 1),), (("k", 1),)),
}


@cache
def kinds_of(side: tuple[tuple[str, int], ...], count: int) -> list[str] | None:
    """What each of `count` ranges on one side of an operation is; None when there may not be so many, or no fewer.

    Every part but the last must be there in full; the last takes the rest and may be empty if it is not the only one.
    """
    kinds: list[str] = []
    for number, (kind, most) in enumerate(side):
        final = number == len(side) - 1
        taken = min(most, count - len(kinds)) if final else 1
        if taken < (1 if number == 0 or not final else 0):
            return None
        kinds += [kind] * taken
    return kinds if len(kinds) == count else None
