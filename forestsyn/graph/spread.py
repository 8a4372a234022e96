"""Positions in the plane for a graph of no known shape, for pictures only.

Method. Kamada and Kawai's springs (networkx), started from a circle in the order of the vertices, then turned so
that the longest extent lies across the page. Deterministic on one machine; positions are rounded, so that the last
bits of a solver do not show.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

#: Positions are multiples of this share of the distance between neighbours.
_GRAIN = 0.01
#: Vertices keep at least this distance, though edges become longer for it.
_APART = 0.78


def spread_positions(count: int, edges: Sequence[tuple[int, int]]) -> tuple[tuple[float, float], ...]:
    """One (x, y) for each of the vertices 0 … count − 1 of a connected graph; the median edge is about 1 long."""
    import networkx as nx

    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(edges)
    found = nx.kamada_kawai_layout(graph, pos=nx.circular_layout(graph))
    points = _turned(np.array([found[vertex] for vertex in range(count)], dtype=np.float64))
    lengths = [float(np.linalg.norm(points[tail] - points[head])) for tail, head in edges]
    points /= max(min(float(np.median(lengths)), _nearest(points) / _APART), 1e-9)
    grains = np.round(points / _GRAIN).astype(int)
    return tuple((int(x) * _GRAIN, int(y) * _GRAIN) for x, y in grains)


def _nearest(points: npt.NDArray[np.float64]) -> float:
    gaps = np.linalg.norm(points[:, None] - points[None], axis=2)
    return float(gaps[~np.eye(len(points), dtype=bool)].min())


def _turned(points: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Principal axes along x and y; vertex 0 in the upper left half (y points down)."""
    centred = points - points.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    turned: npt.NDArray[np.float64] = centred @ axes.T
    return turned * np.where(turned[0] > 0, -1.0, 1.0)
