"""Where the GPUs of a direct network go: its shape is proven from its links, never from names.

Full meshes and rings lie on a circle, lines on a line; grids of two and three dimensions (meshes, tori) are found by
trying the factorizations of the number of GPUs and checking that every link is one step; hypercubes are drawn with
one direction for each bit; two equal halves whose twins are linked are a cube of two faces (DGX-1). Everything else
is spread by springs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import cos, pi, prod, sin

import msgspec

from forestsyn.graph.spread import spread_positions

Edge = tuple[int, int]
Point = tuple[float, float]

#: Where each bit of a hypercube's vertex number moves it.
_BITS: tuple[Point, ...] = ((1.7, 0.0), (0.0, 1.7), (0.75, -0.65), (3.6, 0.45), (0.45, 3.4))


class Arrangement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """points: one for each vertex, neighbours about 1 apart. shape: in words. wraps: edges that go round the edge."""

    points: tuple[Point, ...]
    shape: str
    wraps: frozenset[Edge] = frozenset()


def arrange(count: int, edges: Sequence[Edge]) -> Arrangement:
    """Positions for vertices 0 … count − 1 in rank order, joined by undirected `edges` (tail < head)."""
    known = frozenset(edges)
    if len(known) == count * (count - 1) // 2 and count > 2:
        return Arrangement(points=_circle(count), shape="full mesh")
    if count.bit_length() - 1 in range(3, len(_BITS) + 1) and known == _cube_edges(count):
        return Arrangement(points=_cube(count), shape=f"hypercube of {count.bit_length() - 1} dimensions")
    for sizes in _factorizations(count):
        wraps = _grid_wraps(sizes, known)
        if wraps is not None:
            return _grid(sizes, wraps)
    if _is_twin(count, known):
        return Arrangement(points=_faces(count), shape="two linked faces")
    if _is_connected(count, known):
        return Arrangement(points=spread_positions(count, sorted(known)), shape="irregular mesh")
    return Arrangement(points=_rows(count), shape="no links of their own")


def _factorizations(count: int) -> Iterator[tuple[int, ...]]:
    """Sizes of grids in row-major order, fewest dimensions first; every size at least 2."""
    yield (count,)
    for rows in range(2, count // 2 + 1):
        if count % rows == 0:
            yield (rows, count // rows)
    for rows in range(2, count // 4 + 1):
        for columns in range(2, count // rows // 2 + 1):
            if count % (rows * columns) == 0:
                yield (rows, columns, count // rows // columns)


def _grid_wraps(sizes: Sequence[int], edges: frozenset[Edge]) -> frozenset[Edge] | None:
    """The links round the edge when every link is one step of the grid and every step inside it a link, else None."""
    steps = sum(prod(sizes) // size * (size - 1) for size in sizes)
    wraps = []
    for tail, head in edges:
        moved = [
            (abs(a - b), size)
            for a, b, size in zip(_place(tail, sizes), _place(head, sizes), sizes, strict=True)
            if a != b
        ]
        if len(moved) != 1 or moved[0][0] not in (1, moved[0][1] - 1):
            return None
        if moved[0][0] != 1:
            wraps.append((tail, head))
    return frozenset(wraps) if len(edges) - len(wraps) == steps else None


def _grid(sizes: tuple[int, ...], wraps: frozenset[Edge]) -> Arrangement:
    count, text = prod(sizes), "×".join(map(str, sizes))
    if len(sizes) == 1:
        return Arrangement(points=_circle(count), shape=f"ring of {count}") if wraps else _line(count)
    places = [_place(vertex, sizes) for vertex in range(count)]
    if len(sizes) == 2:
        points = tuple((float(column), float(row)) for row, column in places)
    else:
        points = tuple(_oblique(place, sizes) for place in places)
    return Arrangement(points=points, shape=f"{text} {'torus' if wraps else 'mesh'}", wraps=wraps)


def _oblique(place: Sequence[int], sizes: Sequence[int]) -> Point:
    """The first coordinate goes back into the page."""
    depth, row, column = place
    step = max(0.6 * (sizes[0] - 1) + 0.5, 1.5)
    return column * step + depth * 0.6, row * step + (sizes[0] - 1 - depth) * 0.5


def _cube_edges(count: int) -> frozenset[Edge]:
    bits = [1 << bit for bit in range(count.bit_length() - 1)]
    return frozenset((vertex, vertex | bit) for vertex in range(count) for bit in bits if not vertex & bit)


def _cube(count: int) -> tuple[Point, ...]:
    shifts = [(x, y) for x, y in _BITS[: count.bit_length() - 1]]
    return tuple(
        (
            sum(x for bit, (x, _) in enumerate(shifts) if vertex >> bit & 1),
            sum(y for bit, (_, y) in enumerate(shifts) if vertex >> bit & 1),
        )
        for vertex in range(count)
    )


def _place(vertex: int, sizes: Sequence[int]) -> tuple[int, ...]:
    places = []
    for size in reversed(sizes):
        vertex, place = divmod(vertex, size)
        places.append(place)
    return tuple(reversed(places))


def _line(count: int) -> Arrangement:
    return Arrangement(points=tuple((float(place), 0.0) for place in range(count)), shape=f"line of {count}")


def _circle(count: int) -> tuple[Point, ...]:
    radius = max(1.1 / (2 * sin(pi / count)), 0.8)
    angles = [2 * pi * (place + 0.5) / count - pi / 2 - pi / count for place in range(count)]
    return tuple((radius * cos(angle), radius * sin(angle)) for angle in angles)


def _rows(count: int) -> tuple[Point, ...]:
    wide = min(count, 8)
    return tuple((float(place % wide), float(place // wide)) for place in range(count))


def _is_twin(count: int, edges: frozenset[Edge]) -> bool:
    """Two equal halves, each connected, and links between them only from a vertex to its twin, all of them."""
    half, odd = divmod(count, 2)
    if odd or half not in (3, 4):
        return False
    across = {edge for edge in edges if edge[0] < half <= edge[1]}
    near = {edge for edge in edges if edge[1] < half}
    far = {(tail - half, head - half) for tail, head in edges if tail >= half}
    return across == {(vertex, vertex + half) for vertex in range(half)} and near == far and _is_connected(half, near)


def _faces(count: int) -> tuple[Point, ...]:
    """A face in front, its twin behind it, like the drawing of a cube."""
    half = count // 2
    corners = ((0.0, 0.0), (1.9, 0.0), (1.9, 1.9), (0.0, 1.9))[:half]
    return (*((x, y + 0.95) for x, y in corners), *((x + 2.9, y) for x, y in corners))


def _is_connected(count: int, edges: set[Edge] | frozenset[Edge]) -> bool:
    labels = list(range(count))
    for tail, head in sorted(edges):
        old, new = labels[head], labels[tail]
        labels = [new if label == old else label for label in labels]
    return all(first == second for first, second in pairwise(labels))
