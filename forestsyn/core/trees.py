"""Shallow trees on a rank-only network: the layered way first, growth by flows where it fails."""

from __future__ import annotations

from collections.abc import Sequence

from forestsyn.core.layers import pack_layers
from forestsyn.core.packing import Arc, PackedTree, pack_trees
from forestsyn.core.refine import refine_depth
from forestsyn.graph.flow import INT64_SAFE


def pack_shallow_trees(rank_count: int, arcs: Sequence[Arc], demand: Sequence[int]) -> list[PackedTree]:
    """demand[v] out-trees rooted at every rank v within the capacities of `arcs`, as shallow as was found.

    Raises InternalError when the arcs cannot carry the demand; the caller proves that they can.
    """
    small = sum(demand) + sum(units for _, _, units in arcs) < INT64_SAFE
    trees = pack_layers(rank_count, arcs, demand) if small else None
    if trees is not None:
        return trees
    trees = pack_trees(rank_count, arcs, demand, range(rank_count))
    return refine_depth(rank_count, arcs, trees)
