"""Shallower trees at the same congestion: repack a few trees at a time.

Problem. Tree packing (see `packing`) grows one batch after the other, so late batches take what is left and become
deep. The forest is exact already; only its depth is to fall.

Guarantee. Never worse: a neighbourhood is replaced only when its depths improve, and the replacement is packed within
the capacity that the replaced trees used plus what nobody used, so no load grows beyond the arcs.

Method: large neighbourhood search (Shaw 1998). Take some of the deepest trees and some others, give their units back,
and pack them again with the deepest trees' roots first. What is packed again is the demand of trees that did fit, so
packing cannot fail. It stops at the depth that no forest on these arcs can beat (the largest distance between two
ranks), when a row of attempts brought nothing, or when its budget of work is spent; work is counted in arcs × trees
× ranks, not in seconds, so the result is the same on every machine. The random choices come from a fixed seed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from forestsyn.core.packing import Arc, PackedTree, pack_trees

#: Work units (arcs × trees × ranks of each repacked neighbourhood) spent at most.
BUDGET = 1_500_000
#: Neighbourhoods in a row that may bring nothing before the search ends.
PATIENCE = 40
_SIZES = (4, 8, 12, 16)


def refine_depth(
    rank_count: int, arcs: Sequence[Arc], trees: list[PackedTree], budget: int = BUDGET
) -> list[PackedTree]:
    """The same demand on the same arcs, with fewer transfers in a chain where that was found."""
    choose = random.Random(2402_06787)
    least = _distance_bound(rank_count, arcs, sorted({tree.root for tree in trees}))
    free = {(tail, head): units for tail, head, units in arcs}
    for tree in trees:
        _use(free, tree, tree.multiplicity)
    idle = 0
    while max(tree.depth for tree in trees) > least and idle < PATIENCE:
        chosen = _neighbourhood(trees, choose)
        budget -= len(arcs) * len(chosen) * rank_count
        if budget < 0:
            break
        repacked = _repacked(rank_count, trees, chosen, free)
        idle = idle + 1 if repacked is trees else 0
        trees = repacked
    return trees


def _neighbourhood(trees: list[PackedTree], choose: random.Random) -> list[int]:
    """Positions of trees to repack: some of the deepest, then some of the others."""
    size = choose.choice((*_SIZES, max(_SIZES[0], len(trees) // 2)))
    ranking = sorted(range(len(trees)), key=lambda position: (-trees[position].depth, choose.random()))
    deep = ranking[: max(1, size // 2)]
    others = ranking[len(deep) :]
    choose.shuffle(others)
    return deep + others[:size]


def _repacked(
    rank_count: int, trees: list[PackedTree], chosen: list[int], free: dict[tuple[int, int], int]
) -> list[PackedTree]:
    old = [trees[position] for position in chosen]
    demand = [0] * rank_count
    for tree in old:
        demand[tree.root] += tree.multiplicity
        _use(free, tree, -tree.multiplicity)
    roots = list(dict.fromkeys(tree.root for tree in old))
    arcs = [(tail, head, units) for (tail, head), units in free.items() if units]
    new = pack_trees(rank_count, arcs, demand, roots)
    better = _cost(new) < _cost(old)
    for tree in new if better else old:
        _use(free, tree, tree.multiplicity)
    if not better:
        return trees
    gone = set(chosen)
    return [tree for position, tree in enumerate(trees) if position not in gone] + new


def _cost(trees: list[PackedTree]) -> tuple[int, int, int]:
    """Deepest first, then how many units are deep (each level counts four times the one before), then trees."""
    return (
        max(tree.depth for tree in trees),
        sum(tree.multiplicity << 2 * tree.depth for tree in trees),
        len(trees),
    )


def _use(free: dict[tuple[int, int], int], tree: PackedTree, units: int) -> None:
    for head, tail in enumerate(tree.parents):
        if tail >= 0:
            free[tail, head] -= units


def _distance_bound(rank_count: int, arcs: Sequence[Arc], roots: Sequence[int]) -> int:
    """The largest number of arcs on a shortest path from any of `roots`."""
    following: list[list[int]] = [[] for _ in range(rank_count)]
    for tail, head, _ in arcs:
        following[tail].append(head)
    farthest = 0
    for root in roots:
        distance = {root: 0}
        queue = [root]
        for tail in queue:
            for head in following[tail]:
                if head not in distance:
                    distance[head] = distance[tail] + 1
                    queue.append(head)
        farthest = max(farthest, distance[queue[-1]])
    return farthest
