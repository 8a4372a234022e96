"""Small compact forests made without the core: a turn, a network that it leaves alone, and base trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import lcm

import msgspec
import numpy as np
from hypothesis import strategies as st

from forestsyn.ir.forest import Direction, Forest
from forestsyn.ir.topology import Topology
from forestsyn.ir.turns import expanded
from forestsyn.verify.forest import forest_load
from tests.samples import Tree, make_forest
from tests.strategies import make_links, make_topology, reordered


def ring_topology() -> Topology:
    """Three hosts of two ranks: each pair has a link both ways, and each rank one to the same rank of the next host.

    Ranks 0, 1 are host 0 and so on; the turn of the hosts is `RING_TURN`.
    """
    links = {}
    for host in range(3):
        links[2 * host, 2 * host + 1] = links[2 * host + 1, 2 * host] = Fraction(3)
        for gpu in range(2):
            links[2 * host + gpu, (2 * host + 2 + gpu) % 6] = Fraction(5, 2)
    return make_topology(6, 0, links, gpus_per_host=2)


RING_TURN = (2, 3, 4, 5, 0, 1)


def ring_forest() -> Forest:
    """Host 0's trees: along the ring, and across the pair in every host; both links of every pair carry 3."""
    routes = [(0, 2), (2, 4), (0, 1), (2, 3), (4, 5), (1, 3), (3, 5), (1, 0), (3, 2), (5, 4)]
    trees: list[Tree] = [
        (0, 1, {2: 0, 4: 2, 1: 0, 3: 2, 5: 4}, {2: 0, 4: 1, 1: 2, 3: 3, 5: 4}),
        (1, 1, {3: 1, 5: 3, 0: 1, 2: 3, 4: 5}, {3: 5, 5: 6, 0: 7, 2: 8, 4: 9}),
    ]
    return msgspec.structs.replace(
        make_forest(6, routes, trees), demand=(1,) * 6, turn=np.array(RING_TURN, dtype=np.int32), turns=3
    )


@st.composite
def compact_forests(draw: st.DrawFn) -> tuple[Topology, Forest]:
    """A network with a random turn, cycles of several lengths among them, and a sound forest in exactly its time."""
    ranks = draw(st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=1, max_size=3).filter(lambda c: sum(c) > 1))
    switches = draw(st.lists(st.sampled_from([1, 2, 3]), max_size=2))
    hub, rank_count = sum(ranks) + sum(switches), sum(ranks)
    turn = _turn([*ranks, *switches, 1])
    turns = lcm(*ranks, *switches)
    links: dict[tuple[int, int], Fraction] = {}
    for rank in range(rank_count):
        _add_images(links, (rank, hub), turn, turns, 3)
        _add_images(links, (hub, rank), turn, turns, 4)
    vertices = st.integers(0, hub)
    for ends in draw(st.lists(st.tuples(vertices, vertices).filter(lambda ends: ends[0] != ends[1]), max_size=8)):
        _add_images(links, ends, turn, turns, draw(st.integers(1, 3)))
    topology = make_topology(rank_count, hub + 1 - rank_count, links)
    forest = _forest(draw, topology, hub)
    forest = msgspec.structs.replace(forest, turn=np.array(turn, dtype=np.int32), turns=turns)
    forest = msgspec.structs.replace(forest, demand=_whole_demand(forest))
    topology, forest = _renumbered(topology, forest, draw(st.permutations(range(hub + 1))))
    if draw(st.booleans()):
        forest = _mirrored(forest)
        topology = _both_ways(topology)
    return topology, msgspec.structs.replace(forest, time_units=forest_load(topology, expanded(forest)))


def _turn(lengths: Sequence[int]) -> list[int]:
    turn: list[int] = []
    for length in lengths:
        first = len(turn)
        turn += [first + (step + 1) % length for step in range(length)]
    return turn


def _add_images(
    links: dict[tuple[int, int], Fraction], ends: tuple[int, int], turn: Sequence[int], turns: int, bandwidth: int
) -> None:
    """The link and its images; a link that is there already keeps its bandwidth, and so do its images."""
    for _ in range(turns):
        links.setdefault(ends, Fraction(bandwidth))
        ends = turn[ends[0]], turn[ends[1]]


def _forest(draw: st.DrawFn, topology: Topology, hub: int) -> Forest:
    """Random out-trees; an edge takes its direct link where there is one and the draw wants it, else the hub."""
    count, direct = topology.rank_count, {(link.tail, link.head) for link in topology.links}
    numbers: dict[tuple[int, ...], int] = {}
    trees: list[Tree] = []
    for _ in range(draw(st.integers(1, 3))):
        order = draw(st.permutations(range(count)))
        parent, route = {}, {}
        for place in range(1, count):
            ends = order[draw(st.integers(0, place - 1))], order[place]
            path = ends if ends in direct and draw(st.booleans()) else (ends[0], hub, ends[1])
            parent[order[place]], route[order[place]] = ends[0], numbers.setdefault(path, len(numbers))
        trees.append((order[0], draw(st.integers(1, 3)), parent, route))
    return make_forest(count, list(numbers), trees)


def _whole_demand(forest: Forest) -> tuple[int, ...]:
    """Counted root by root and power by power."""
    assert forest.turn is not None
    demand = [0] * forest.rank_count
    for root, multiplicity in zip(forest.roots.tolist(), forest.multiplicities.tolist(), strict=True):
        for _ in range(forest.turns):
            demand[root] += multiplicity
            root = int(forest.turn[root])
    return tuple(demand)


def _renumbered(topology: Topology, forest: Forest, order: list[int]) -> tuple[Topology, Forest]:
    position: Mapping[int, int] = {old: new for new, old in enumerate(order)}
    assert forest.turn is not None
    turn = np.array([position[int(forest.turn[old])] for old in order], dtype=np.int32)
    routes = tuple(tuple(position[vertex] for vertex in route) for route in forest.routes)
    return reordered(topology, order), msgspec.structs.replace(forest, turn=turn, routes=routes)


def _mirrored(forest: Forest) -> Forest:
    return msgspec.structs.replace(forest, direction=Direction.IN, routes=tuple(r[::-1] for r in forest.routes))


def _both_ways(topology: Topology) -> Topology:
    """Every link also the other way; pairs of unlike bandwidth stay as they are."""
    links = {(link.tail, link.head): link.bandwidth for link in topology.links}
    for tail, head in list(links):
        links.setdefault((head, tail), links[tail, head])
    return msgspec.structs.replace(topology, links=make_links(links))
