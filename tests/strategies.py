"""Every Hypothesis strategy. Topologies are valid by construction and small enough for the brute force of `oracles`.

A sum of weighted directed cycles is balanced at every vertex, switches included; the first cycle passes all ranks,
so they reach each other. Links of such a sum are one-way as often as not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product

import msgspec
from hypothesis import strategies as st

from forestsyn.ir.topology import Link, Topology, Vertex, VertexKind

Bandwidths = Mapping[tuple[int, int], Fraction]

HOSTILE = (1, 2, 3, 7, 13, 97, 10**6 + 3, 2**31 - 1, Fraction(3, 7), Fraction(1, 3), Fraction(25, 2))

hostile_bandwidths = st.sampled_from([Fraction(value) for value in HOSTILE])
tame_bandwidths = st.integers(1, 6).map(Fraction)
bandwidths = st.one_of(tame_bandwidths, hostile_bandwidths)


def make_topology(
    rank_count: int, other_count: int, links: Bandwidths, relays: int = 0, gpus_per_host: int = 4
) -> Topology:
    """Vertices 0..rank_count−1 are the ranks, the next `relays` GPUs without data, the others switches."""
    vertices = [
        Vertex(name=f"g{rank}", kind=VertexKind.GPU, host=f"h{rank // gpus_per_host}") for rank in range(rank_count)
    ]
    vertices += [Vertex(name=f"relay{number}", kind=VertexKind.GPU) for number in range(relays)]
    vertices += [Vertex(name=f"sw{number}", kind=VertexKind.SWITCH) for number in range(other_count - relays)]
    return Topology(
        name="generated",
        vertices=tuple(vertices),
        links=make_links(links),
        ranks=tuple(range(rank_count)),
    )


def make_links(links: Bandwidths) -> tuple[Link, ...]:
    """Sorted links; bandwidths of 0 are left out."""
    return tuple(Link(tail=t, head=h, bandwidth=Fraction(b)) for (t, h), b in sorted(links.items()) if b)


def reordered(topology: Topology, order: list[int]) -> Topology:
    """The same network with vertex `order[i]` at position i; rank numbers stay with their GPUs."""
    position = {old: new for new, old in enumerate(order)}
    links = {(position[link.tail], position[link.head]): link.bandwidth for link in topology.links}
    return Topology(
        name=topology.name,
        vertices=tuple(topology.vertices[old] for old in order),
        links=make_links(links),
        ranks=tuple(position[vertex] for vertex in topology.ranks),
    )


def reversed_topology(topology: Topology) -> Topology:
    """Every link turned round."""
    links = {(link.head, link.tail): link.bandwidth for link in topology.links}
    return msgspec.structs.replace(topology, links=make_links(links))


@st.composite
def topologies(
    draw: st.DrawFn,
    *,
    maximum_ranks: int = 8,
    maximum_switches: int = 3,
    bandwidth: st.SearchStrategy[Fraction] = bandwidths,
) -> Topology:
    """Balanced: a sum of directed cycles over ranks, switches and relays, in any vertex order."""
    rank_count = draw(st.integers(2, maximum_ranks))
    other_count = draw(st.integers(0, maximum_switches))
    links = _cycles(draw, rank_count, other_count, bandwidth)
    topology = make_topology(rank_count, other_count, links, relays=draw(st.integers(0, min(other_count, 1))))
    return reordered(topology, draw(st.permutations(range(rank_count + other_count))))


@st.composite
def switchless_topologies(
    draw: st.DrawFn, *, maximum_ranks: int = 6, bandwidth: st.SearchStrategy[Fraction] = bandwidths
) -> Topology:
    """Ranks only: cycles and any further one-way links, so that ranks need not be balanced."""
    rank_count = draw(st.integers(2, maximum_ranks))
    links = _cycles(draw, rank_count, 0, bandwidth)
    _add_links(draw, links, rank_count, 4, bandwidth)
    return make_topology(rank_count, 0, links)


@st.composite
def unbalanced_topologies(draw: st.DrawFn, *, maximum_ranks: int = 6) -> Topology:
    """Like `topologies`, with at least one switch and further one-way links that unbalance it."""
    rank_count, other_count = draw(st.integers(2, maximum_ranks)), draw(st.integers(1, 2))
    links = _cycles(draw, rank_count, other_count, tame_bandwidths)
    rank = draw(st.integers(0, rank_count - 1))
    ends = (rank, rank_count) if draw(st.booleans()) else (rank_count, rank)
    links[ends] = links.get(ends, Fraction(0)) + draw(tame_bandwidths)
    _add_links(draw, links, rank_count + other_count, 3, tame_bandwidths)
    return make_topology(rank_count, other_count, links)


SMALL_CLUSTERS = ((1, 3), (1, 5), (2, 2), (2, 3), (2, 4), (3, 2))
LARGE_CLUSTERS = ((2, 5), (2, 8), (3, 3), (3, 4), (4, 2), (4, 4), (5, 3), (8, 2))


@st.composite
def clusters(draw: st.DrawFn, *, sizes: Sequence[tuple[int, int]] = SMALL_CLUSTERS) -> Topology:
    """Hosts of GPUs around a switch, GPUs on one fabric switch; perhaps one GPU has lost some of its uplink.

    sizes: (hosts, GPUs of each) to choose from. The large ones are beyond the brute force of `oracles`.
    """
    hosts, gpus = draw(st.sampled_from(sizes))
    inside, outside = draw(bandwidths), draw(bandwidths)
    count = hosts * gpus
    links: dict[tuple[int, int], Fraction] = {}
    for host, gpu in product(range(hosts), range(gpus)):
        rank = host * gpus + gpu
        _add_both_ways(links, rank, count + host, inside)
        if hosts > 1:
            _add_both_ways(links, rank, count + hosts, outside)
    if hosts > 1 and draw(st.booleans()):
        rank, left = draw(st.integers(0, count - 1)), draw(st.sampled_from([Fraction(0), outside / 2]))
        _add_both_ways(links, rank, count + hosts, left)
    return make_topology(count, hosts + (hosts > 1), links, gpus_per_host=gpus)


@st.composite
def shapes(draw: st.DrawFn) -> Topology:
    """Ring, mesh, torus or full connection of ranks, all links alike in both directions."""
    rows, columns, kind = draw(
        st.sampled_from(
            [
                (1, 2, "mesh"),
                (1, 3, "torus"),
                (1, 6, "torus"),
                (2, 3, "mesh"),
                (2, 4, "torus"),
                (3, 3, "mesh"),
                (1, 5, "full"),
            ]
        )
    )
    bandwidth = draw(bandwidths)
    links: dict[tuple[int, int], Fraction] = {}
    for first, second in product(range(rows * columns), repeat=2):
        if first < second and _neighbours(first, second, rows, columns, kind):
            _add_both_ways(links, first, second, bandwidth)
    return make_topology(rows * columns, 0, links)


balanced_topologies = st.one_of(topologies(), switchless_topologies(), clusters(), shapes())
any_topologies = st.one_of(balanced_topologies, unbalanced_topologies())


@st.composite
def demands(draw: st.DrawFn, rank_count: int, *, maximum: int = 3) -> tuple[int, ...]:
    """Trees (or weight) per root: the same at all, at one root only, or uneven with zeros."""
    kind = draw(st.sampled_from(["uniform", "one root", "uneven"]))
    if kind == "uniform":
        return (draw(st.integers(1, maximum)),) * rank_count
    root, count = draw(st.integers(0, rank_count - 1)), draw(st.integers(1, maximum))
    others = st.just(0) if kind == "one root" else st.integers(0, maximum)
    return tuple(count if rank == root else draw(others) for rank in range(rank_count))


def _cycles(
    draw: st.DrawFn, rank_count: int, other_count: int, bandwidth: st.SearchStrategy[Fraction]
) -> dict[tuple[int, int], Fraction]:
    vertices = range(rank_count + other_count)
    passed = draw(st.sets(st.sampled_from(range(rank_count, rank_count + other_count)))) if other_count else set()
    cycles = [draw(st.permutations([*range(rank_count), *sorted(passed)]))]
    cycles += draw(st.lists(st.lists(st.sampled_from(vertices), min_size=2, max_size=6, unique=True), max_size=5))
    links: dict[tuple[int, int], Fraction] = {}
    for cycle in cycles:
        weight = draw(bandwidth)
        for ends in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
            links[ends] = links.get(ends, Fraction(0)) + weight
    return links


def _add_links(
    draw: st.DrawFn,
    links: dict[tuple[int, int], Fraction],
    vertex_count: int,
    maximum: int,
    bandwidth: st.SearchStrategy[Fraction],
) -> None:
    vertex = st.integers(0, vertex_count - 1)
    for ends in draw(st.lists(st.tuples(vertex, vertex).filter(lambda ends: ends[0] != ends[1]), max_size=maximum)):
        links[ends] = links.get(ends, Fraction(0)) + draw(bandwidth)


def _add_both_ways(links: dict[tuple[int, int], Fraction], first: int, second: int, bandwidth: Fraction) -> None:
    links[first, second] = links[second, first] = bandwidth


def _neighbours(first: int, second: int, rows: int, columns: int, kind: str) -> bool:
    if kind == "full":
        return True
    (row, column), (other_row, other_column) = divmod(first, columns), divmod(second, columns)
    vertical, horizontal = abs(row - other_row), abs(column - other_column)
    if kind == "torus":
        vertical, horizontal = min(vertical, rows - vertical), min(horizontal, columns - horizontal)
    return vertical + horizontal == 1
