"""Exchanges to programs, directly: see `exchange` for the algorithms and `composer` for waits.

Buffers are used as in the lowering of schedules: contributions are read from the input, which is never written,
results go to the output, sums of other ranks' shards to the output in an allreduce and else to scratch.
"""

from __future__ import annotations

from collections.abc import Callable

from forestsyn.errors import UnsupportedError
from forestsyn.ir.collective import Collective
from forestsyn.ir.program import Operation, Program, Protocol, RankProgram
from forestsyn.ir.target import Target
from forestsyn.patterns.composer import RankComposer
from forestsyn.patterns.exchange import Exchange, Form
from forestsyn.patterns.exchange_blocks import compose_blocks
from forestsyn.patterns.exchange_vectors import compose_one_shot, compose_vectors


def exchange_program(
    exchange: Exchange,
    *,
    target: Target,
    out_of_place: bool,
    protocol: Protocol,
    name: str,
    minimum_bytes: int,
    maximum_bytes: int,
) -> Program:
    """The program that executes `exchange` on `target`; the arguments mean the same as for a schedule.

    out_of_place matters to an allgather, and where the target wants a file for each layout. maximum_bytes: 0
    means no limit, or the most that is wise where scratch is allocated for it.
    Raises UnsupportedError, naming rank, limit and value, when the target cannot hold the program.
    """
    if Operation.SEND not in target.operations:
        raise UnsupportedError(
            f"{target.name} runs no programs of threadblocks that send and receive",
            target=target.name,
            limit="operations",
            hint="use a pattern that has a schedule",
        )
    collective, count = exchange.collective, len(exchange.order)
    fused = Operation.RECV_REDUCE_COPY in target.operations
    starts = _output_starts(exchange)
    ranks = [RankComposer(output_start=start, fused=fused) for start in starts]
    if exchange.form in (Form.ONE_SHOT, Form.TWO_LEVEL):
        compose_one_shot(exchange, ranks)
    elif exchange.form is Form.VECTORS:
        compose_vectors(exchange, ranks)
    else:
        compose_blocks(exchange, ranks, out_of_place=out_of_place, fused=fused, count_max=target.count_max)
    inputs = 1 if collective is Collective.ALLGATHER else exchange.chunk_count
    outputs = 1 if collective is Collective.REDUCE_SCATTER else exchange.chunk_count
    programs = tuple(rank.program(input_chunks=inputs, output_chunks=outputs) for rank in ranks)
    scratch = any(rank.scratch_chunks for rank in programs)
    serves_both = collective.reduces and target.both_places
    _check_limits(target, programs, count)
    return Program(
        name=name,
        collective=str(collective),
        protocol=protocol,
        chunk_count=exchange.chunk_count,
        channel_count=1,
        in_place=serves_both or not out_of_place,
        out_of_place=serves_both or out_of_place,
        minimum_bytes=minimum_bytes,
        maximum_bytes=maximum_bytes or (target.bytes_max_with_scratch if scratch else target.bytes_max),
        ranks=programs,
    )


def _output_starts(exchange: Exchange) -> list[int | None]:
    """Per rank, where its output lies in its input in place; an allgather then uses the output alone."""
    if exchange.collective is Collective.REDUCE_SCATTER:
        return list(range(len(exchange.order)))
    start = None if exchange.collective is Collective.ALLGATHER else 0
    return [start] * len(exchange.order)


def _check_limits(target: Target, ranks: tuple[RankProgram, ...], count: int) -> None:
    checks: list[tuple[str, str, Callable[[RankProgram], int]]] = [
        ("ranks_max", "ranks", lambda rank: count),
        ("peers_per_channel_max", "peers to send to", _peers),
        ("threadblocks_max", "threadblocks", lambda rank: len(rank.threadblocks)),
        ("steps_max", "steps of a threadblock", lambda rank: max(len(block.steps) for block in rank.threadblocks)),
        (
            "nodes_max",
            "XML nodes",
            lambda rank: 1 + count + sum(1 + len(block.steps) for block in rank.threadblocks),
        ),
        (
            "offset_max",
            "as the largest chunk offset",
            lambda rank: max(rank.input_chunks, rank.output_chunks, rank.scratch_chunks) - 1,
        ),
    ]
    for number, rank in enumerate(ranks):
        for limit, noun, measure in checks:
            value, most = measure(rank), getattr(target, limit)
            if value > most:
                raise UnsupportedError(
                    f"rank {number} needs {value} {noun}, {target.name} has at most {most}",
                    target=target.name,
                    limit=limit,
                    value=value,
                    rank=number,
                    hint="use another pattern, or another target",
                )


def _peers(rank: RankProgram) -> int:
    return sum(block.send_peer >= 0 for block in rank.threadblocks)
