"""Reads MSCCL XML as the three runtimes do.

The result is the program that the runtimes would execute, as plain data that may be wrong (`verify_program` judges
it), and findings on the form of the text: what makes a runtime's loader refuse it, what it loads but misreads, and
what it ignores. Steps are numbered by their place in the document, as the runtimes count them, not by `s`.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from forestsyn.frontend.msccl_fields import Fields
from forestsyn.frontend.msccl_findings import DIALECTS, EXECUTORS, MSCCL, Finding, FindingLog
from forestsyn.frontend.msccl_rank import read_rank
from forestsyn.frontend.msccl_tree import Element, read_tree
from forestsyn.ir.program import Program, Protocol, RankProgram

#: The largest public file has 4 MiB. More than this is not a program that a runtime could hold.
BYTES_MAX = 128 * 2**20
#: Children that the parser keeps of one element; one rank more crashes it.
RANKS_MAX = 1_024
#: Nodes that the parser keeps for one rank: <algo>, every <gpu>, and the rank's own <tb> and <step>.
NODES_MAX = 4_095
#: What microsoft/msccl assumes where the file says no maxBytes.
MSCCL_MAXIMUM_BYTES = 2**27

#: Spelling in the file -> (forestsyn's word, whose spelling it is). Whether a runtime can do a collective that it
#: can spell is the verifier's matter.
_COLLECTIVES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "reduce_scatter": ("reduce-scatter", (MSCCL,)),
    "reducescatter": ("reduce-scatter", EXECUTORS),
    **{word: (word, DIALECTS) for word in ("allreduce", "allgather", "reduce", "broadcast", "alltoall", "custom")},
    **{word: (word, DIALECTS) for word in ("send", "recv", "gather", "scatter", "alltoallv")},
}
_NAME_MAX = 63


class ReadProgram(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file as read. program: None when no runtime could make a program of it; `findings` then say why."""

    source: str
    program: Program | None
    findings: tuple[Finding, ...]


def parse_msccl_xml(data: bytes | str, *, source: str) -> ReadProgram:
    """Reads the text of one file; `source` names it in reports. Never raises for what the text holds."""
    text = data if isinstance(data, str) else data.decode("latin-1")
    log = FindingLog(text)
    if len(text) > BYTES_MAX:
        log.unreadable("size", f"the file has {len(text)} bytes, expected at most {BYTES_MAX}", None)
        return ReadProgram(source=source, program=None, findings=log.findings())
    algorithm = read_tree(text, log)
    program = _read_algorithm(algorithm, log) if algorithm is not None else None
    return ReadProgram(source=source, program=program if log.readable else None, findings=log.findings())


def _read_algorithm(algorithm: Element, log: FindingLog) -> Program | None:
    fields = Fields(algorithm, log)
    _check_required(fields)
    rank_count = fields.integer("ngpus")
    if not 1 <= rank_count <= RANKS_MAX:
        fields.unreadable("ranks", f"ngpus is {rank_count}, expected 1 to {RANKS_MAX}")
        return None
    protocol = _read_protocol(fields)
    ranks = _read_ranks(algorithm, rank_count, log)
    if not log.readable or protocol is None:
        return None
    in_place = fields.switch("inplace")
    return Program(
        name=_read_name(fields),
        collective=_read_collective(fields),
        protocol=protocol,
        chunk_count=fields.integer("nchunksperloop"),
        channel_count=fields.integer("nchannels"),
        in_place=in_place,
        out_of_place=fields.switch("outofplace") if fields.has("outofplace") else not in_place,
        minimum_bytes=fields.integer("minBytes", bits=64) if fields.has("minBytes") else 0,
        maximum_bytes=fields.integer("maxBytes", bits=64) if fields.has("maxBytes") else MSCCL_MAXIMUM_BYTES,
        ranks=ranks,
    )


def _check_required(fields: Fields) -> None:
    fields.require("ngpus", "nchunksperloop", "nchannels", "proto", "coll", "inplace")
    fields.require("name", dialects=(MSCCL,))
    fields.require("outofplace", "minBytes", "maxBytes", dialects=EXECUTORS)
    threads = fields.integer("nthreads") if fields.has("nthreads") else 0
    if threads < 0 or threads % 32 or (fields.text("proto") == Protocol.SIMPLE and threads & (threads - 1)):
        message = f"nthreads is {threads}, expected a multiple of 32, with Simple a power of two"
        fields.misbehave("threads", message, (MSCCL,))


def _read_name(fields: Fields) -> str:
    # The text was decoded byte by byte; names written in UTF-8 are put together again here.
    name = fields.text("name").encode("latin-1", "replace").decode("utf-8", "replace")
    if len(name) > _NAME_MAX:
        fields.note("name", f"the name has {len(name)} characters; the runtime cuts it at {_NAME_MAX}")
    if name == "2D" and fields.text("coll") == "alltoall":
        fields.misbehave("name", "an alltoall named '2D' selects a built-in kernel; give another name", (MSCCL,))
    return name


def _read_protocol(fields: Fields) -> Protocol | None:
    word = fields.text("proto")
    try:
        return Protocol(word)
    except ValueError:
        choices = ", ".join(protocol.value for protocol in Protocol)
        fields.unreadable("protocol", f"proto is '{word[:40]}', expected one of {choices} in exactly this case")
        return None


def _read_collective(fields: Fields) -> str:
    word = fields.text("coll")
    name, dialects = _COLLECTIVES.get(word, (word, ()))
    others = tuple(dialect for dialect in DIALECTS if dialect not in dialects)
    if others:
        twin = next((text for text, entry in _COLLECTIVES.items() if entry[0] == name and text != word), None)
        hint = f", which is spelled '{twin}' there" if twin else ""
        fields.refuse("collective", f"coll is '{word[:40]}'{hint}, not known to {', '.join(others)}", others)
    return name


def _read_ranks(algorithm: Element, rank_count: int, log: FindingLog) -> tuple[RankProgram, ...]:
    if len(algorithm.children) > RANKS_MAX:
        message = f"{len(algorithm.children)} <gpu> elements crash the parser, expected at most {RANKS_MAX}"
        log.unreadable("ranks", message, algorithm.offset)
        return ()
    by_rank: dict[int, RankProgram] = {}
    for element in algorithm.children:
        fields = Fields(element, log)
        fields.require("id", "i_chunks", "o_chunks", "s_chunks")
        rank = fields.integer("id")
        if not 0 <= rank < rank_count:
            fields.note("ranks", f"<gpu> has the id {rank} and is never used: ngpus is {rank_count}")
        elif rank in by_rank:
            fields.unreadable("ranks", f'<gpu id="{rank}"> is given twice')
        else:
            by_rank[rank] = read_rank(fields, log)
            _check_nodes(fields, 1 + len(algorithm.children))
    for rank in range(rank_count):
        if rank not in by_rank:
            log.misbehave("missing-rank", f"rank {rank} has no <gpu>: it would do nothing", algorithm.offset)
    nothing = RankProgram(input_chunks=0, output_chunks=0, scratch_chunks=0, threadblocks=())
    return tuple(by_rank.get(rank, nothing) for rank in range(rank_count))


def _check_nodes(fields: Fields, shared: int) -> None:
    own = sum(1 + len(threadblock.children) for threadblock in fields.element.children)
    if shared + own > NODES_MAX:
        message = f"rank {fields.text('id')} needs {shared + own} XML nodes, expected at most {NODES_MAX}"
        fields.refuse("nodes", message, DIALECTS)
