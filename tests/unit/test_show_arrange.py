"""Shapes of direct networks are proven from links, and nothing lies on top of anything else."""

from __future__ import annotations

from itertools import combinations
from math import dist

import pytest

from forestsyn.frontend import load_topology
from forestsyn.show.arrange import Arrangement, arrange


def _of(spec: str) -> Arrangement:
    topology = load_topology(spec)
    place = {vertex: rank for rank, vertex in enumerate(topology.ranks)}
    edges = {tuple(sorted((place[link.tail], place[link.head]))) for link in topology.links}
    return arrange(topology.rank_count, sorted((tail, head) for tail, head in edges))


@pytest.mark.parametrize(
    ("spec", "shape", "wraps"),
    [
        ("ring:8", "ring of 8", 0),
        ("torus:4x4", "4×4 torus", 8),
        ("mesh:3x5", "3×5 mesh", 0),
        ("tpu-v4:4x4x4", "4×4×4 torus", 48),
        ("mi300x", "full mesh", 0),
        ("hypercube:3", "hypercube of 3 dimensions", 0),
        ("hypercube:4", "hypercube of 4 dimensions", 0),
        ("dgx1v", "two linked faces", 0),
        ("mi250", "irregular mesh", 0),
    ],
)
def test_the_shape_is_found(spec: str, shape: str, wraps: int) -> None:
    found = _of(spec)
    assert found.shape == shape
    assert len(found.wraps) == wraps
    assert min(dist(*pair) for pair in combinations(found.points, 2)) > 0.6


def test_one_missing_link_is_no_torus() -> None:
    topology = load_topology("torus:4x4")
    edges = sorted({(min(x.tail, x.head), max(x.tail, x.head)) for x in topology.links})
    assert arrange(16, edges[1:]).shape != "4×4 torus"


def test_names_prove_nothing() -> None:
    """A line whose GPUs are numbered otherwise is not taken for a line."""
    assert arrange(4, [(0, 2), (1, 2), (1, 3)]).shape == "irregular mesh"


def test_unconnected_gpus_stand_in_rows() -> None:
    assert arrange(10, [(0, 1)]).points[9] == (1.0, 1.0)
