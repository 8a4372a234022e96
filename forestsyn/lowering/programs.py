"""A schedule to a program: channels and threadblocks, chains, timetable, steps, then numbers and dependencies.

The order of the stages: `pieces` (cut), `threadblocks` (who), `chains` (joined transfers), `timetable` (when),
`steps` with `placement` (what and where), `dependencies` (waits and flags); this module strings them together and
refuses what the target cannot hold.
"""

from __future__ import annotations

from forestsyn.errors import UnsupportedError
from forestsyn.ir.program import Operation, Program, Protocol, RankProgram, Threadblock
from forestsyn.ir.schedule import Schedule
from forestsyn.ir.target import Target
from forestsyn.lowering.chains import join_transfers
from forestsyn.lowering.dependencies import number_steps
from forestsyn.lowering.instances import replicate
from forestsyn.lowering.pieces import cut_pieces
from forestsyn.lowering.placement import Placement
from forestsyn.lowering.remedies import remedy
from forestsyn.lowering.resources import LEAST, Resources
from forestsyn.lowering.steps import Draft, draft_steps
from forestsyn.lowering.threadblocks import Block, choose_threadblocks
from forestsyn.lowering.timetable import make_timetable


def lower_schedule(
    schedule: Schedule,
    *,
    target: Target,
    out_of_place: bool,
    protocol: Protocol,
    name: str,
    minimum_bytes: int,
    maximum_bytes: int,
    resources: Resources = LEAST,
) -> Program:
    """The program that executes `schedule` on `target`.

    out_of_place: the layout of the calls it is for. A reduction serves both layouts, and says so where the target
    lets it. maximum_bytes: 0 means no limit, or the most that is wise where the target has none or scratch is
    allocated for it. resources: what the program may spend.
    Raises UnsupportedError, naming rank, limit and value, when the target cannot hold the program.
    """
    if schedule.rank_count > target.ranks_max:
        raise _refusal(target, "ranks_max", schedule.rank_count, "the topology", "ranks", None)
    last_chunk = schedule.chunk_count * resources.instances - 1
    if last_chunk > target.offset_max:
        # Every rank has a buffer of all chunks; millions of them would be cut into steps for nothing.
        raise _refusal(target, "offset_max", last_chunk, "rank 0", "as the largest chunk offset", 0)
    schedule = cut_pieces(schedule, target.count_max)
    fused = Operation.RECV_COPY_SEND in target.operations
    placement = Placement(schedule, out_of_place=out_of_place, fused=fused)
    roots = {piece.root for piece in schedule.pieces} if placement.copies_own else set()
    reserved = tuple(int(rank in roots) for rank in range(schedule.rank_count))
    threadblocks = choose_threadblocks(schedule, target, reserved=reserved, resources=resources)
    chains = join_transfers(schedule, threadblocks, fused=fused)
    timetable = make_timetable(schedule, threadblocks, chains, separate_reduction=not fused)
    drafts = draft_steps(schedule, threadblocks, chains, timetable, placement, count_max=target.count_max)
    serves_both = schedule.collective.reduces and target.both_places
    single = Program(
        name=name,
        collective=str(schedule.collective),
        protocol=protocol,
        chunk_count=schedule.chunk_count,
        channel_count=threadblocks.channel_count,
        in_place=serves_both or not out_of_place,
        out_of_place=serves_both or out_of_place,
        minimum_bytes=minimum_bytes,
        maximum_bytes=maximum_bytes or _widest_window(target, placement),
        ranks=_build_ranks(threadblocks.blocks, drafts, placement),
        root=schedule.root,
    )
    program = replicate(single, resources.instances)
    _check_limits(target, program)
    return program


def _widest_window(target: Target, placement: Placement) -> int:
    return target.bytes_max_with_scratch if any(placement.scratch_chunks) else target.bytes_max


def _build_ranks(
    blocks: tuple[tuple[Block, ...], ...], drafts: list[Draft], placement: Placement
) -> tuple[RankProgram, ...]:
    """Number the steps of each rank; the threadblock of local copies, if any, comes last."""
    rows: dict[int, list[Draft]] = {}
    for draft in sorted(drafts, key=lambda draft: (draft.block, draft.time)):
        rows.setdefault(draft.block, []).append(draft)
    ranks = []
    first = 0
    for rank, own in enumerate(blocks):
        members = [rows[first + number] for number in range(len(own))]
        first += len(own)
        if -1 - rank in rows:
            own = (*own, Block(0, -1, -1))
            members.append(rows[-1 - rank])
        threadblocks = tuple(
            Threadblock(
                send_peer=block.send_peer, receive_peer=block.receive_peer, channel=block.channel, steps=steps
            )
            for block, steps in zip(own, number_steps(members), strict=True)
        )
        ranks.append(
            RankProgram(
                input_chunks=placement.input_chunks,
                output_chunks=placement.output_chunks,
                scratch_chunks=placement.scratch_chunks[rank],
                threadblocks=threadblocks,
            )
        )
    return tuple(ranks)


def _check_limits(target: Target, program: Program) -> None:
    if program.channel_count > target.channels_max:
        raise _refusal(target, "channels_max", program.channel_count, program.name, "channels", None)
    for number, rank in enumerate(program.ranks):
        _check_rank(target, number, rank, len(program.ranks))


def _check_rank(target: Target, rank: int, program: RankProgram, rank_count: int) -> None:
    where = f"rank {rank}"
    steps = [len(threadblock.steps) for threadblock in program.threadblocks]
    nodes = 1 + rank_count + len(steps) + sum(steps)
    offset = max(program.input_chunks, program.output_chunks, program.scratch_chunks) - 1
    if len(steps) > target.threadblocks_max:
        raise _refusal(target, "threadblocks_max", len(steps), where, "threadblocks", rank)
    if max(steps, default=0) > target.steps_max:
        raise _refusal(target, "steps_max", max(steps), where, "steps of a threadblock", rank)
    if nodes > target.nodes_max:
        raise _refusal(target, "nodes_max", nodes, where, "XML nodes", rank)
    if offset > target.offset_max:
        raise _refusal(target, "offset_max", offset, where, "as the largest chunk offset", rank)


def _refusal(target: Target, limit: str, value: int, what: str, noun: str, rank: int | None) -> UnsupportedError:
    return UnsupportedError(
        f"{what} needs {value:,} {noun}, {target.name} has at most {getattr(target, limit):,}",
        target=target.name,
        limit=limit,
        value=value,
        rank=rank,
        hint=remedy(target, limit),
    )
