"""How large a program must be: refused from its trees, before minutes go into a text that nothing could read.

Every transfer of a piece takes a step that sends and a step that receives. One fused step does both where a rank
passes a piece on, at most once for each tree and inner rank, and once at the root of an allreduce; targets without
fused operations do so nowhere. Pieces are never joined, so that

    steps ≥ 2 · transfers − inner ranks − roots,

and a step is a line of the file and one of the nodes that a runtime's reader counts for each rank.
"""

from __future__ import annotations

import numpy as np

from forestsyn.errors import UnsupportedError
from forestsyn.frontend import msccl_xml, mscclpp_json
from forestsyn.ir.forest import Forest
from forestsyn.ir.program import Operation
from forestsyn.ir.target import MSCCLPP, Target
from forestsyn.pipeline.results import ForestResult
from forestsyn.units import format_bytes

#: The shortest line that a step can take.
_STEP_BYTES = len(
    '      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="0" deps="0" hasdep="0"/>\n'
)
_HINT = "use fewer ranks, or fewer trees (--trees); 'forestsyn forest' gives the trees of clusters of any size"


def check_forest_size(result: ForestResult, target: Target) -> None:
    """Refuse trees whose program no reader could hold. Raises UnsupportedError."""
    if target == MSCCLPP:
        return  # steps of a plan carry many pieces; its text is measured
    steps = steps_at_least(result.forests, fused=Operation.RECV_COPY_SEND in target.operations)
    ranks = result.bound.topology.rank_count
    nodes = 1 + ranks - (-steps // ranks)
    if nodes > target.nodes_max:
        raise UnsupportedError(
            f"some rank needs at least {nodes:,} XML nodes, {target.name} has at most {target.nodes_max:,}",
            target=target.name,
            limit="nodes_max",
            value=nodes,
            hint=_HINT,
        )
    if steps * _STEP_BYTES > msccl_xml.BYTES_MAX:
        raise _too_long(f"{steps:,} steps or more take a file of at least", steps * _STEP_BYTES, target)


def check_text_size(text: str, target: Target) -> None:
    """Refuse a text that the reader would not take back. Raises UnsupportedError."""
    if len(text) > _bytes_max(target):
        raise _too_long("the program takes a file of", len(text), target)


def steps_at_least(forests: tuple[Forest, ...], *, fused: bool) -> int:
    """A lower bound on the steps of all ranks together."""
    transfers = sum(forest.tree_count * (forest.rank_count - 1) for forest in forests)
    if not fused:
        return 2 * transfers
    roots = min(forest.tree_count for forest in forests) if len(forests) > 1 else 0
    return 2 * transfers - sum(_inner_ranks(forest) for forest in forests) - roots


def _inner_ranks(forest: Forest) -> int:
    """Ranks that are neither root nor leaf, counted once for each tree."""
    ordered = np.sort(forest.parents, axis=1)
    distinct = 1 + np.count_nonzero(np.diff(ordered, axis=1), axis=1)
    return int((distinct - 2).sum()) * forest.turns  # without −1, the parent of the root, and the root itself


def _too_long(what: str, size: int, target: Target) -> UnsupportedError:
    limit = _bytes_max(target)
    return UnsupportedError(
        f"{what} {format_bytes(size)}; forestsyn reads back at most {format_bytes(limit)}, and writes nothing unread",
        target=target.name,
        limit="file_bytes",
        value=size,
        hint=_HINT,
    )


def _bytes_max(target: Target) -> int:
    return mscclpp_json.BYTES_MAX if target == MSCCLPP else msccl_xml.BYTES_MAX
