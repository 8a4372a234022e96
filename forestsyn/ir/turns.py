"""What a base and its turn stand for: cycles, the forest written out, and who talks to whom.

A turn g acts on ranks and vertices; its cycles are what its powers carry onto each other. Along a cycle of length L
an element has a position 0 … L − 1, and g adds 1 to it modulo L. The images of a pair (u, v) are then known without
being listed: they hold, for each element of u's cycle, every element of v's cycle whose position differs from its
own as much as v's from u's, modulo gcd(L_u, L_v).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from forestsyn.ir.forest import Direction, Forest

_Array = npt.NDArray[Any]


class Cycles(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, eq=False):
    """The cycles of a permutation of n elements, numbered by their least element, which has position 0.

    numbers, positions: int64[n], the cycle of each element and where on it. lengths: int64[cycles].
    members: int64[n], the elements cycle by cycle, each in the order of positions.
    """

    numbers: npt.NDArray[np.int64]
    positions: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]
    members: npt.NDArray[np.int64]


def cycles_of(permutation: _Array) -> Cycles:
    """The cycles of `permutation`, int[n] with each of 0 … n − 1 once."""
    images: list[int] = permutation.tolist()
    numbers, positions = [-1] * len(images), [0] * len(images)
    lengths: list[int] = []
    members: list[int] = []
    for first in range(len(images)):
        element, length = first, 0
        while numbers[element] < 0:
            numbers[element], positions[element] = len(lengths), length
            members.append(element)
            element, length = images[element], length + 1
        if length:
            lengths.append(length)
    return Cycles(
        numbers=np.array(numbers, dtype=np.int64),
        positions=np.array(positions, dtype=np.int64),
        lengths=np.array(lengths, dtype=np.int64),
        members=np.array(members, dtype=np.int64),
    )


def rank_turn(forest: Forest) -> npt.NDArray[np.int32]:
    """int32[N]: the rank that the turn of a sound `forest` maps each rank to; the rank itself without a turn."""
    ranks = np.arange(forest.rank_count, dtype=np.int32)
    if forest.turn is None:
        return ranks
    vertex_of = _rank_vertices(forest)
    rank_of = np.zeros(len(forest.turn), dtype=np.int32)
    rank_of[vertex_of] = ranks
    image: npt.NDArray[np.int32] = rank_of[forest.turn[vertex_of]]
    return image


def expanded(forest: Forest) -> Forest:
    """The same trees with every row written out and no turn; takes memory in proportion to turns × T × N."""
    if forest.turn is None:
        return forest
    image = rank_turn(forest)
    powers: _Array = np.arange(forest.rank_count, dtype=np.int32)
    vertices: _Array = np.arange(len(forest.turn))
    numbers: dict[tuple[int, ...], int] = {}
    roots, parents, edge_routes = [], [], []
    for _ in range(forest.turns):
        routes = [tuple(vertices[list(route)].tolist()) for route in forest.routes]
        renumbered = np.array([numbers.setdefault(route, len(numbers)) for route in routes], dtype=np.int32)
        roots.append(powers[forest.roots])
        parents.append(_moved(forest.parents, powers, powers))
        edge_routes.append(_moved(forest.edge_routes, renumbered, powers))
        powers, vertices = image[powers], forest.turn[vertices]
    whole = msgspec.structs.replace(
        forest,
        roots=np.concatenate(roots),
        multiplicities=np.tile(forest.multiplicities, forest.turns),
        parents=np.concatenate(parents),
        routes=tuple(numbers),
        edge_routes=np.concatenate(edge_routes),
        turn=None,
        turns=1,
    )
    return _sorted(whole)


def peers_per_rank(forests: Sequence[Forest]) -> npt.NDArray[np.int64]:
    """int64[N]: the number of distinct other ranks each rank exchanges data with over all `forests`, which are for
    the same ranks.

    Where they share a turn, one row of N flags stands for all ranks of a cycle; else N² flags are needed.
    """
    shared = all(_same_turn(forests[0], forest) for forest in forests)
    cycles = cycles_of(rank_turn(forests[0]) if shared else np.arange(forests[0].rank_count))
    starts = np.cumsum(cycles.lengths) - cycles.lengths
    #: Row u's cycle; column: the element of v's cycle by which the images of (u, v) are known.
    seen = np.zeros((len(cycles.lengths), len(cycles.numbers)), dtype=bool)
    for forest in forests:
        for ends in _edges(forest, 1 if shared else forest.turns):
            for rank, peer in (ends, ends[::-1]):
                row, other = cycles.numbers[rank], cycles.numbers[peer]
                period = np.gcd(cycles.lengths[row], cycles.lengths[other])
                seen[row, starts[other] + (cycles.positions[peer] - cycles.positions[rank]) % period] = True
    lengths = np.repeat(cycles.lengths, cycles.lengths)
    counts = [
        int((others // np.gcd(length, others)).sum())
        for length, flags in zip(cycles.lengths.tolist(), seen, strict=True)
        for others in [lengths[flags]]
    ]
    return np.array(counts, dtype=np.int64)[cycles.numbers]


def _rank_vertices(forest: Forest) -> npt.NDArray[np.int64]:
    """int64[N]: the vertex of each rank, read off the routes of one tree."""
    vertices = np.empty(forest.rank_count, dtype=np.int64)
    child_end = -1 if forest.direction is Direction.OUT else 0
    for child, (parent, number) in enumerate(zip(forest.parents[0], forest.edge_routes[0], strict=True)):
        if parent >= 0:
            vertices[child] = forest.routes[number][child_end]
            vertices[parent] = forest.routes[number][-1 - child_end]
    return vertices


def _moved(array: _Array, values: _Array, columns: _Array) -> _Array:
    """Every entry of `array` replaced by its `values` (−1 stays) and every column moved to its place in `columns`."""
    moved = np.empty_like(array)
    moved[:, columns] = np.append(values, np.int32(-1))[array]
    return moved


def _sorted(forest: Forest) -> Forest:
    keys = [*forest.edge_routes.T[::-1], *forest.parents.T[::-1], -forest.multiplicities, forest.roots]
    order = np.lexsort(keys)
    return msgspec.structs.replace(
        forest,
        roots=forest.roots[order],
        multiplicities=forest.multiplicities[order],
        parents=forest.parents[order],
        edge_routes=forest.edge_routes[order],
    )


def _same_turn(forest: Forest, other: Forest) -> bool:
    if forest.turn is None or other.turn is None:
        return forest.turn is other.turn
    return np.array_equal(forest.turn, other.turn)


def _edges(forest: Forest, images: int) -> Iterator[tuple[_Array, _Array]]:
    """The children and parents of each tree, under the first `images` powers of the turn."""
    image = rank_turn(forest)
    powers: _Array = np.arange(forest.rank_count)
    for _ in range(images):
        for parents in forest.parents:
            children = np.flatnonzero(parents >= 0)
            yield powers[children], powers[parents[children]]
        powers = image[powers]
