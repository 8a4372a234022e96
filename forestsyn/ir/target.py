"""Targets: what each runtime can execute, as data that lowering obeys and back ends spell.

Facts read from the runtimes' sources: microsoft/msccl b23e9cd5, Azure/msccl-executor-nccl c6f6b36d, ROCm/rccl
0cbce2a7. The verifier keeps its own table on purpose: a slip here must not pass there.
"""

from __future__ import annotations

import msgspec

from forestsyn.ir.program import Operation

_MOVES_ONLY = frozenset({Operation.SEND, Operation.RECV, Operation.COPY, Operation.REDUCE, Operation.NOP})


class Target(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of one runtime.

    operations: what its kernels execute. steps_max: steps of a threadblock, nops included.
    threadblocks_max: per rank (they spin, so all must be resident at once). channels_max: channels of a program.
    peers_per_channel_max: sends, and receives, of a rank on one channel. count_max: chunks in one step.
    offset_max: the largest chunk offset. waited_threadblock_max: the largest id another threadblock can wait for.
    nodes_max: XML nodes read per rank. reduce_scatter: how the dialect spells it.
    both_places: one file may offer itself for in-place and out-of-place calls.
    bytes_max: the upper end of a size window that is meant to have none (0: the runtime has a word for it).
    bytes_max_with_scratch: the same for a program with scratch, where the runtime allocates it for the largest size.
    """

    name: str
    operations: frozenset[Operation]
    steps_max: int
    threadblocks_max: int
    channels_max: int = 32
    peers_per_channel_max: int = 32
    count_max: int = 71
    offset_max: int = 32_767
    waited_threadblock_max: int = 127
    nodes_max: int = 4_095
    ranks_max: int = 1_024
    reduce_scatter: str
    both_places: bool
    bytes_max: int = 0
    bytes_max_with_scratch: int = 0


MSCCL = Target(
    name="msccl",
    operations=frozenset(Operation),
    steps_max=256,
    threadblocks_max=108,
    reduce_scatter="reduce_scatter",
    both_places=False,
    bytes_max=1 << 40,
    bytes_max_with_scratch=1 << 30,
)
EXECUTOR = Target(
    name="executor",
    operations=frozenset(Operation),
    steps_max=64,
    threadblocks_max=108,
    reduce_scatter="reducescatter",
    both_places=True,
)
RCCL = Target(
    name="rccl",
    operations=_MOVES_ONLY,
    steps_max=64,
    threadblocks_max=64,
    waited_threadblock_max=63,
    reduce_scatter="reducescatter",
    both_places=True,
)

#: Execution plans, which are no programs: of these limits only steps (operations), threadblocks (the V100 has the
#: fewest multiprocessors, and all threadblocks must be resident) and ranks apply; mscclpp 0.9.0.
MSCCLPP = Target(
    name="mscclpp",
    operations=frozenset(),
    steps_max=64,
    threadblocks_max=80,
    reduce_scatter="reducescatter",
    both_places=False,
)

#: The runtimes that read MSCCL XML.
TARGETS: dict[str, Target] = {target.name: target for target in (MSCCL, EXECUTOR, RCCL)}
ALL_TARGETS: dict[str, Target] = {**TARGETS, MSCCLPP.name: MSCCLPP}
