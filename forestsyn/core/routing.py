"""The physical route of every tree edge.

A logical arc may hide several routes, each good for some units. Trees take them one after the other; a tree whose
edge needs more units than one route has left is divided, so that in the result every edge has one route.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from forestsyn.core.logical import LogicalGraph, Route
from forestsyn.core.packing import PackedTree


class RoutedTree(msgspec.Struct, frozen=True):
    """`units` identical unit trees: parents[v] and the route of the edge parents[v] → v; −1 and None at the root."""

    root: int
    units: int
    parents: tuple[int, ...]
    routes: tuple[Route | None, ...]


def route_trees(graph: LogicalGraph, trees: Sequence[PackedTree]) -> list[RoutedTree]:
    """The trees with one route per edge, in the order of `trees`; equal ones are merged."""
    left: dict[tuple[int, int], list[tuple[Route, int]]] = {}
    rows: dict[tuple[int, tuple[int, ...], tuple[Route | None, ...]], int] = {}
    for tree in trees:
        units = tree.multiplicity
        while units:
            choice: list[Route | None] = [None] * graph.rank_count
            part = units
            for head, tail in enumerate(tree.parents):
                if tail >= 0:
                    bag = left.setdefault((tail, head), graph.routes(tail, head))
                    choice[head], available = bag[-1]
                    part = min(part, available)
            for head, tail in enumerate(tree.parents):
                if tail >= 0:
                    route, available = left[tail, head].pop()
                    if available > part:
                        left[tail, head].append((route, available - part))
            key = (tree.root, tree.parents, tuple(choice))
            rows[key] = rows.get(key, 0) + part
            units -= part
    return [RoutedTree(root, units, parents, routes) for (root, parents, routes), units in rows.items()]
