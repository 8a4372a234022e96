"""The message sizes that a plan can serve: offsets are 32 bits, scratch of shared resources is 64 MiB.

A chunk is a multiple of `buffer_alignment` bytes. A share of one must not be empty where a port moves it, since an
empty request is no request on every NIC.
"""

from __future__ import annotations

from forestsyn.errors import UnsupportedError
from forestsyn.ir.plan import ChannelType, Plan
from forestsyn.ir.target import MSCCLPP
from forestsyn.units import format_bytes

_OFFSETS = 1 << 32
#: PREDFINED_SCRATCH_SIZE of mscclpp 0.9.0: what `reuse_resources` counts on.
_SHARED_SCRATCH = 1 << 26
#: A pipeline counts its rounds in 16 bits.
_ROUNDS_MAX = (1 << 16) - 1
#: The loader reads the smallest size as a 32-bit integer.
_MINIMUM_MAX = (1 << 31) - 1


def choose_window(plan: Plan, shares: int, minimum_bytes: int, maximum_bytes: int) -> tuple[int, int]:
    """The smallest and the largest size for `plan`, within those that are wanted (0: none is).

    Raises UnsupportedError when nothing is left.
    """
    unit = plan.buffer_alignment
    gpu = plan.gpus[0]
    chunks = gpu.output_chunks if plan.collective == "allgather" else gpu.input_chunks
    smallest, largest = minimum_bytes, _largest_chunk(plan) * chunks
    if any(channels.channel_type is ChannelType.PORT for own in plan.gpus for channels in own.channels):
        smallest = max(smallest, unit * shares * chunks)
    if 0 < maximum_bytes < largest:
        largest = maximum_bytes
    if smallest > min(largest, _MINIMUM_MAX):
        raise UnsupportedError(
            f"the plan serves sizes up to {format_bytes(min(largest, _MINIMUM_MAX))}, the smallest that is wanted or "
            f"possible is {format_bytes(smallest)}",
            target=MSCCLPP.name,
            limit="bytes",
            value=smallest,
            hint="widen the window with --min-bytes and --max-bytes, or use --protocol Simple for large messages",
        )
    return smallest, largest


def _largest_chunk(plan: Plan) -> int:
    """Bytes of the largest chunk for which every offset fits."""
    packets = plan.protocol == "LL"
    ends = [1]
    for gpu in plan.gpus:
        ends += [gpu.input_chunks, gpu.output_chunks, gpu.scratch_chunks * (2 if packets else 1)]
    largest = (_OFFSETS - plan.buffer_alignment) // max(ends)
    scratch = max(gpu.scratch_chunks for gpu in plan.gpus)
    rounds = [
        step.iteration
        for gpu in plan.gpus
        for block in gpu.blocks
        for step in block.steps
        if step.iteration is not None
    ]
    if rounds:
        largest = min(largest, min(_ROUNDS_MAX * each.unit_size // each.chunk_count for each in rounds))
    if plan.reuse_resources and scratch:
        halves = 2 if plan.use_double_scratch_buffer else 1
        largest = min(largest, _SHARED_SCRATCH // halves // scratch)
    return largest - largest % plan.buffer_alignment
