"""The message sizes that a program offers itself for, in words."""

from __future__ import annotations

from forestsyn.ir.program import Program
from forestsyn.ir.target import Target
from forestsyn.units import format_bytes


def window_sentence(program: Program, target: Target) -> str:
    """What `minBytes` and `maxBytes` of the file mean to its runtime.

    A target with a largest window has no word for 'no limit'; where the file has that largest end, the sentence says
    so, and what it costs.
    """
    low, high = program.minimum_bytes, program.maximum_bytes
    half_open = target.bytes_max > 0
    sizes = _sizes(low, high, half_open=half_open)
    if not half_open or high not in (target.bytes_max, target.bytes_max_with_scratch):
        return sizes
    scratch = high * max(rank.scratch_chunks for rank in program.ranks) // program.chunk_count
    cost = f" and allocates scratch for the largest size, here {format_bytes(scratch)} a rank" if scratch else ""
    return f"{sizes}; {target.name} has no word for 'no limit'{cost}: set the end with --max-bytes"


def _sizes(low: int, high: int, *, half_open: bool) -> str:
    if not high:
        return f"from {format_bytes(low)}, without an upper limit" if low else "of every size"
    end = f"below {format_bytes(high)}" if half_open else f"up to {format_bytes(high)}"
    return f"from {format_bytes(low)}, {end}" if low else end
