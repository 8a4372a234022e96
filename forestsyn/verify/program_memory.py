"""Where the chunks of a collective lie: sizes of the caller's buffers, and which of them are one memory.

N = chunk_count, n ranks, p = N/n:

    collective        input   output   in place
    allreduce, …        N       N      i[k] is o[k]
    allgather           p       N      i[k] is o[rank·p + k]
    reduce-scatter      N       p      o[k] is i[rank·p + k]

Scratch is a buffer of its own and starts undefined.
"""

from __future__ import annotations

import msgspec

from forestsyn.ir.program import Program, RankProgram

#: Collectives whose chunk count is a multiple of the number of ranks.
_SHARDED = frozenset(("allgather", "reduce-scatter", "alltoall"))
#: Collectives with whole buffers on both sides.
_WHOLE = frozenset(("allreduce", "reduce", "broadcast", "alltoall"))


def shard_chunks(program: Program) -> int | None:
    """p = N/n for the collectives that shard (None where it is not whole), N for the others."""
    if program.collective not in _SHARDED:
        return program.chunk_count
    shard, rest = divmod(program.chunk_count, len(program.ranks))
    return None if rest else shard


def input_chunks(program: Program, own: RankProgram) -> int:
    """Chunks of the caller's input; as declared for collectives that forestsyn does not know."""
    if program.collective == "allgather":
        return program.chunk_count // len(program.ranks)
    known = program.collective in _WHOLE or program.collective == "reduce-scatter"
    return program.chunk_count if known else own.input_chunks


def output_chunks(program: Program, own: RankProgram) -> int:
    """Chunks of the caller's output; as declared for collectives that forestsyn does not know."""
    if program.collective == "reduce-scatter":
        return program.chunk_count // len(program.ranks)
    known = program.collective in _WHOLE or program.collective == "allgather"
    return program.chunk_count if known else own.output_chunks


class RankMemory(msgspec.Struct, frozen=True, kw_only=True):
    """The memory of one rank as cells 0 .. cell_count−1, one a chunk.

    bases: the cell of chunk 0 of the input, the output and the scratch. input_count, output_count: their sizes.
    """

    bases: tuple[int, int, int]
    input_count: int
    output_count: int
    cell_count: int


def lay_out(program: Program, *, in_place: bool) -> list[RankMemory]:
    """The memory of every rank. The program's chunks must divide evenly where its collective shards."""
    return [_lay_out_rank(program, rank, in_place) for rank in range(len(program.ranks))]


def _lay_out_rank(program: Program, rank: int, in_place: bool) -> RankMemory:
    own = program.ranks[rank]
    inputs, outputs = input_chunks(program, own), output_chunks(program, own)
    if not in_place:
        input_base, output_base = 0, inputs
    elif program.collective == "allgather":
        input_base, output_base = rank * inputs, 0
    elif program.collective == "reduce-scatter":
        input_base, output_base = 0, rank * outputs
    else:
        input_base, output_base = 0, 0
    user = max(input_base + inputs, output_base + outputs)
    return RankMemory(
        bases=(input_base, output_base, user),
        input_count=inputs,
        output_count=outputs,
        cell_count=user + own.scratch_chunks,
    )
