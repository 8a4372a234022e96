"""Programs as MSCCL XML, in the form that the runtimes' own small parser accepts.

The parser takes one element a line, one space before each attribute, double quotes, no entities, no declaration, and
at most 16 attributes; steps run in document order. Every attribute that any of the runtimes needs is written,
always in the same order. Facts read from the parsers of microsoft/msccl b23e9cd5, Azure/msccl-executor-nccl c6f6b36d
and ROCm/rccl 0cbce2a7.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from forestsyn.errors import UnsupportedError
from forestsyn.ir.collective import Collective
from forestsyn.ir.program import Program, RankProgram, Step, Threadblock
from forestsyn.ir.target import Target

_NAME = re.compile(r"[^\x00-\x1f\x7f-\U0010ffff\"<>&]{1,63}")


def emit_msccl_xml(program: Program, target: Target) -> str:
    """The text of `program` in the dialect of `target`; ends with a newline.

    Raises UnsupportedError when the name does not fit the format.
    """
    if not _NAME.fullmatch(program.name):
        raise UnsupportedError(
            f"a program cannot be named {program.name!r}",
            target=target.name,
            limit="name",
            hint="use 1 to 63 printable ASCII characters without quotes, < > and &",
        )
    return "".join(f"{line}\n" for line in _algorithm(program, target))


def _algorithm(program: Program, target: Target) -> Iterator[str]:
    spelled = target.reduce_scatter if program.collective == Collective.REDUCE_SCATTER else program.collective
    yield (
        f'<algo name="{program.name}" proto="{program.protocol}" nchannels="{program.channel_count}"'
        f' nchunksperloop="{program.chunk_count}" ngpus="{len(program.ranks)}" coll="{spelled}"'
        f' inplace="{program.in_place:d}" outofplace="{program.out_of_place:d}"'
        f' minBytes="{program.minimum_bytes}" maxBytes="{program.maximum_bytes}">'
    )
    for rank, own in enumerate(program.ranks):
        yield from _gpu(rank, own)
    yield "</algo>"


def _gpu(rank: int, program: RankProgram) -> Iterator[str]:
    yield (
        f'  <gpu id="{rank}" i_chunks="{program.input_chunks}" o_chunks="{program.output_chunks}"'
        f' s_chunks="{program.scratch_chunks}">'
    )
    for number, threadblock in enumerate(program.threadblocks):
        yield from _threadblock(number, threadblock)
    yield "  </gpu>"


def _threadblock(number: int, threadblock: Threadblock) -> Iterator[str]:
    yield (
        f'    <tb id="{number}" send="{threadblock.send_peer}" recv="{threadblock.receive_peer}"'
        f' chan="{threadblock.channel}">'
    )
    for position, step in enumerate(threadblock.steps):
        yield _step(position, step)
    yield "    </tb>"


def _step(position: int, step: Step) -> str:
    needed = step.depends_on
    threadblock, number = (needed.threadblock, needed.step) if needed else (-1, -1)
    return (
        f'      <step s="{position}" type="{step.operation}"'
        f' srcbuf="{step.source.buffer}" srcoff="{step.source.offset}"'
        f' dstbuf="{step.destination.buffer}" dstoff="{step.destination.offset}" cnt="{step.count}"'
        f' depid="{threadblock}" deps="{number}" hasdep="{step.flagged:d}"/>'
    )
