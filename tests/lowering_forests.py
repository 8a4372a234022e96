"""Forests for tests of the lowering: random, star, chain and two-level trees, with uneven demands."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from forestsyn.ir.forest import Direction, Forest

Parents = tuple[int, ...]
Shape = Callable[[random.Random, int, int], Parents]


def random_tree(source: random.Random, ranks: int, root: int) -> Parents:
    """A tree grown by uniformly chosen attachments."""
    parents = [-1] * ranks
    inside = [root]
    others = [rank for rank in range(ranks) if rank != root]
    source.shuffle(others)
    for rank in others:
        parents[rank] = source.choice(inside)
        inside.append(rank)
    return tuple(parents)


def star(_: random.Random, ranks: int, root: int) -> Parents:
    """Every rank next to the root."""
    return tuple(-1 if rank == root else root for rank in range(ranks))


def ring(_: random.Random, ranks: int, root: int) -> Parents:
    """root → root + 1 → root + 2 …"""
    return tuple(-1 if rank == root else (rank - 1) % ranks for rank in range(ranks))


def two_level(_: random.Random, ranks: int, root: int, size: int = 4) -> Parents:
    """The root reaches its own host as a star, and rank `root mod size` of each other host, which does the same."""
    parents = []
    for rank in range(ranks):
        head = min(rank // size * size + root % size, ranks - 1)
        if rank == root:
            parents.append(-1)
        elif rank // size == root // size or rank == head:
            parents.append(root)
        else:
            parents.append(head)
    return tuple(parents)


SHAPES: tuple[Shape, ...] = (random_tree, star, ring, two_level)


def make_forest(ranks: int, trees: list[tuple[int, int, Parents]], direction: Direction) -> Forest:
    """`trees` are (root, multiplicity, parents) in any order; every edge is its own route."""
    rows = sorted(trees, key=lambda tree: (tree[0], -tree[1], tree[2]))
    demand = [0] * ranks
    routes: dict[tuple[int, int], int] = {}
    edge_routes = []
    for root, multiplicity, parents in rows:
        demand[root] += multiplicity
        edges = [
            (parent, rank) if direction is Direction.OUT else (rank, parent) for rank, parent in enumerate(parents)
        ]
        edge_routes.append([-1 if -1 in edge else routes.setdefault(edge, len(routes)) for edge in edges])
    return Forest(
        direction=direction,
        rank_count=ranks,
        demand=tuple(demand),
        time_units=Fraction(1),
        roots=np.array([row[0] for row in rows], dtype=np.int32),
        multiplicities=np.array([row[1] for row in rows], dtype=np.int64),
        parents=np.array([row[2] for row in rows], dtype=np.int32).reshape(len(rows), ranks),
        routes=tuple(routes),
        edge_routes=np.array(edge_routes, dtype=np.int32).reshape(len(rows), ranks),
    )


def reversed_forest(forest: Forest) -> Forest:
    """The same trees with data moving the other way."""
    other = Direction.IN if forest.direction is Direction.OUT else Direction.OUT
    rows = zip(forest.roots.tolist(), forest.multiplicities.tolist(), forest.parents.tolist(), strict=True)
    return make_forest(
        forest.rank_count, [(root, multiplicity, tuple(parents)) for root, multiplicity, parents in rows], other
    )


def random_forest(
    seed: int, ranks: int, demand: list[int], direction: Direction, shapes: tuple[Shape, ...] = SHAPES
) -> Forest:
    """Each root's demand divided at random among trees of random shapes."""
    source = random.Random(seed)
    trees: dict[tuple[int, Parents], int] = {}
    for root, wanted in enumerate(demand):
        while wanted:
            multiplicity = source.randint(1, wanted)
            key = (root, source.choice(shapes)(source, ranks, root))
            trees[key] = trees.get(key, 0) + multiplicity
            wanted -= multiplicity
    return make_forest(ranks, [(root, count, parents) for (root, parents), count in trees.items()], direction)
