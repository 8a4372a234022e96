"""Shapes: counts and degrees that can be said in closed form."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest

from forestsyn.errors import InputError
from forestsyn.frontend import describe_topology, load_topology, parse_topology


@pytest.mark.parametrize(
    ("spec", "ranks", "others", "links"),
    [
        ("ring:2", 2, 0, 2),
        ("ring:5", 5, 0, 10),
        ("full:4", 4, 0, 12),
        ("switch:16", 16, 1, 32),
        ("hypercube:4", 16, 0, 64),
        ("mesh:3x4", 12, 0, 34),
        ("torus:3x4", 12, 0, 48),
        ("torus:2x4", 8, 0, 24),
        ("torus:4x4x4", 64, 0, 384),
        ("fat-tree:4", 16, 20, 96),
        ("leaf-spine:4x8", 32, 5, 72),
        ("dragonfly:3x2x2", 12, 6, 36),
        ("dragonfly:9x4x2", 72, 36, 324),
        ("rail-optimized:4x8", 32, 13, 144),
    ],
)
def test_sizes(spec: str, ranks: int, others: int, links: int) -> None:
    topology = load_topology(spec)
    assert (topology.rank_count, len(topology.vertices) - ranks, len(topology.links)) == (ranks, others, links)
    report = describe_topology(topology)
    assert not report.unbalanced_switches
    assert not report.asymmetric_links
    assert len(report.sides) == 1


def test_a_torus_is_regular() -> None:
    topology = load_topology("torus:5x3x3")
    assert set(Counter(link.tail for link in topology.links).values()) == {6}


def test_wrap_multiple() -> None:
    def count(size: int) -> int:
        text = f"forestsyn: 1\ntorus: {{dimensions: [4, {size}], wrap_multiple: 4}}\n"
        return len(parse_topology(text, source="t").links)

    assert count(4) == 64
    assert count(6) == 2 * (3 * 6 + 4 * 5)


def test_uplinks_are_oversubscribed() -> None:
    text = "forestsyn: 1\nfat-tree: {leaves: 2, gpus: 6, spines: 2, oversubscription: 3}\nlink: {bw: 10}\n"
    topology = parse_topology(text, source="t")
    names = [vertex.name for vertex in topology.vertices]
    uplinks = {link.bandwidth for link in topology.links if names[link.head].startswith("spine")}
    assert uplinks == {Fraction(10)}


@pytest.mark.parametrize(
    "spec", ["ring", "ring:1", "ring:4x4", "torus:", "torus:4x", "torus:0x4", "mesh:2x2x2x2x2x2x2x2x2"]
)
def test_wrong_sizes(spec: str) -> None:
    with pytest.raises(InputError):
        load_topology(spec)
