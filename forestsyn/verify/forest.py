"""The certificate of the lower bound: trees that span all ranks and overload no physical link.

Every row is checked to be one tree (all parent chains end at the root, by pointer doubling in about log₂ depth
rounds), every edge to run along links that exist and through vertices that are not ranks, and every link's load
against time_units × bandwidth, in integers. A base with a turn is checked without being written out (`verify.turn`).
How the trees were found plays no part.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from forestsyn.ir.forest import Direction, Forest
from forestsyn.ir.topology import Topology
from forestsyn.verify.certificate import MAXIMUM_VIOLATIONS, reject_if_any
from forestsyn.verify.links import find_links
from forestsyn.verify.turn import link_cycles, rank_cycles, turn_violations, whole_sums

_INT64_LIMIT = 2**63
_Array = npt.NDArray[Any]


def verify_forest(topology: Topology, forest: Forest) -> None:
    """Check `forest` against the physical links of `topology`; raises VerificationError listing what it found."""
    checks = (_malformed, _out_of_range, turn_violations, _wrong_trees, _wrong_demand, _wrong_routes, _overloads)
    for check in checks:
        reject_if_any("the forest", check(topology, forest))


def forest_load(topology: Topology, forest: Forest) -> Fraction:
    """The time units the trees really need: the largest load / bandwidth of any link, exact.

    `forest` must have passed `verify_forest`, except for its time units.
    """
    busiest: dict[Fraction, int] = {}
    for load, link in zip(link_loads(topology, forest), topology.links, strict=True):
        busiest[link.bandwidth] = max(load, busiest.get(link.bandwidth, 0))
    return max(load / bandwidth for bandwidth, load in busiest.items())


def link_loads(topology: Topology, forest: Forest) -> list[int]:
    """How many unit trees every link carries, in order, exact. `forest` as for `forest_load`.

    Counted in int64 where no sum can reach its limit, else in unbounded integers.
    """
    _, _, owners, links = _hops(topology, forest.routes)
    longest_route = max((len(route) for route in forest.routes), default=0)
    bound = sum(forest.multiplicities.tolist()) * topology.rank_count * longest_route * forest.turns
    dtype: Any = np.int64 if bound < _INT64_LIMIT else object
    trees, children = np.nonzero(forest.parents >= 0)
    route_loads: _Array = np.zeros(len(forest.routes), dtype=dtype)
    np.add.at(route_loads, forest.edge_routes[trees, children], forest.multiplicities.astype(dtype)[trees])
    sums: _Array = np.zeros(len(topology.links), dtype=dtype)
    np.add.at(sums, links, route_loads[owners])
    if forest.turn is not None:
        sums = whole_sums(forest, link_cycles(topology, forest), sums)
    loads: list[int] = sums.tolist()
    return loads


def _malformed(topology: Topology, forest: Forest) -> list[str]:
    ranks, trees = topology.rank_count, len(forest.roots)
    violations = []
    if forest.rank_count != ranks:
        violations.append(f"it is for {forest.rank_count} ranks, the topology has {ranks}")
    if len(forest.demand) != ranks:
        violations.append(f"its demand is for {len(forest.demand)} ranks, the topology has {ranks}")
    if any(count < 0 for count in forest.demand) or not any(forest.demand):
        violations.append("its demand must be at least 0 at every root and more at one")
    if forest.time_units <= 0:
        violations.append(f"its time units are {forest.time_units}, expected more than 0")
    expected = {
        "roots": (trees,),
        "multiplicities": (trees,),
        "parents": (trees, ranks),
        "edge_routes": (trees, ranks),
    }
    for name, shape in expected.items():
        array: _Array = getattr(forest, name)
        if array.shape != shape or array.dtype.kind != "i":
            violations.append(f"{name} is {array.dtype}{list(array.shape)}, expected integers of shape {list(shape)}")
    return violations


def _out_of_range(topology: Topology, forest: Forest) -> list[str]:
    ranks, routes, vertices = topology.rank_count, len(forest.routes), len(topology.vertices)
    violations = [
        f"tree {tree} has root {forest.roots[tree]}, expected a rank 0..{ranks - 1}"
        for tree in _first((forest.roots < 0) | (forest.roots >= ranks))
    ]
    violations += [
        f"tree {tree} has multiplicity {forest.multiplicities[tree]}, expected at least 1"
        for tree in _first(forest.multiplicities < 1)
    ]
    for name, array, limit in (("parent", forest.parents, ranks), ("route", forest.edge_routes, routes)):
        violations += [
            f"tree {tree} gives rank {rank} the {name} {array[tree, rank]}, of {limit}"
            for tree, rank in _first_pairs((array < -1) | (array >= limit))
        ]
    for number, route in enumerate(forest.routes):
        if len(route) < 2 or not all(0 <= vertex < vertices for vertex in route):
            violations.append(f"route {number} is {route}, expected at least 2 vertices of 0..{vertices - 1}")
    return violations


def _wrong_trees(topology: Topology, forest: Forest) -> list[str]:
    ranks = np.arange(topology.rank_count)
    is_root = ranks == forest.roots[:, None]
    violations = []
    for name, array in (("parent", forest.parents), ("route", forest.edge_routes)):
        violations += [
            f"tree {tree} gives its root, rank {rank}, a {name}; expected -1"
            if is_root[tree, rank]
            else f"tree {tree} gives rank {rank} no {name}, and it is not the root"
            for tree, rank in _first_pairs((array < 0) != is_root)
        ]
    if violations:
        return violations
    ancestor: _Array = np.where(is_root, ranks, forest.parents)
    for _ in range(topology.rank_count.bit_length()):
        further = np.take_along_axis(ancestor, ancestor, axis=1)
        if np.array_equal(further, ancestor):
            break
        ancestor = further
    return [
        f"tree {tree} does not connect rank {rank} with its root, rank {forest.roots[tree]}: its parents form a cycle"
        for tree, rank in _first_pairs(ancestor != forest.roots[:, None])
    ]


def _wrong_demand(topology: Topology, forest: Forest) -> list[str]:
    totals: _Array = np.zeros(topology.rank_count, dtype=object)
    np.add.at(totals, forest.roots, forest.multiplicities.astype(object))
    if forest.turn is not None:
        totals = whole_sums(forest, rank_cycles(topology, forest.turn), totals)
    return [
        f"root {rank} ({topology.rank_name(rank)}) has {total} trees, its demand is {demand}"
        for rank, (total, demand) in enumerate(zip(totals.tolist(), forest.demand, strict=True))
        if total != demand
    ]


def _wrong_routes(topology: Topology, forest: Forest) -> list[str]:
    """Routes that leave the links or pass a rank, and edges whose route joins other ranks than theirs."""
    names = [vertex.name for vertex in topology.vertices]
    ranks = set(topology.ranks)
    tails, heads, owners, links = _hops(topology, forest.routes)
    violations = [
        f"route {owners[hop]} uses the link {names[tails[hop]]} -> {names[heads[hop]]}, which does not exist"
        for hop in _first(links < 0)
    ]
    for number, route in enumerate(forest.routes):
        passed = [names[vertex] for vertex in route[1:-1] if vertex in ranks]
        if passed:
            violations.append(f"route {number} passes through {passed[0]}, a rank, which does not forward")
    return violations + _misplaced_edges(topology, forest)


def _misplaced_edges(topology: Topology, forest: Forest) -> list[str]:
    trees, children = np.nonzero(forest.parents >= 0)
    numbers, parents = forest.edge_routes[trees, children], forest.parents[trees, children]
    outward = forest.direction is Direction.OUT
    senders, receivers = (parents, children) if outward else (children, parents)
    vertex_of: _Array = np.array(topology.ranks)
    first: _Array = np.array([route[0] for route in forest.routes], dtype=np.int64)
    last: _Array = np.array([route[-1] for route in forest.routes], dtype=np.int64)
    wrong = (first[numbers] != vertex_of[senders]) | (last[numbers] != vertex_of[receivers])
    violations = []
    for edge in _first(wrong):
        start, end = (topology.vertices[ends[numbers[edge]]].name for ends in (first, last))
        violations.append(
            f"tree {trees[edge]} sends rank {senders[edge]} -> rank {receivers[edge]} on route {numbers[edge]}, "
            f"which leads {start} -> {end}"
        )
    return violations


def _overloads(topology: Topology, forest: Forest) -> list[str]:
    violations = []
    for load, link in zip(link_loads(topology, forest), topology.links, strict=True):
        limit = forest.time_units * link.bandwidth
        if load > limit:
            ends = f"{topology.vertices[link.tail].name} -> {topology.vertices[link.head].name}"
            violations.append(f"link {ends} carries {load} trees, its limit is {limit}")
    return violations


def _hops(topology: Topology, routes: tuple[tuple[int, ...], ...]) -> tuple[_Array, _Array, _Array, _Array]:
    """Every hop of every route: its tail, its head, the number of its route and of its link (-1 if none)."""
    lengths = np.fromiter(map(len, routes), dtype=np.int64, count=len(routes))
    vertices = np.fromiter(chain.from_iterable(routes), dtype=np.int64, count=int(lengths.sum()))
    owners = np.repeat(np.arange(len(routes)), lengths)
    inside = owners[:-1] == owners[1:]
    tails, heads, owners = vertices[:-1][inside], vertices[1:][inside], owners[:-1][inside]
    return tails, heads, owners, find_links(topology, tails, heads)


def _first(mask: _Array) -> list[int]:
    indices: list[int] = np.flatnonzero(mask)[:MAXIMUM_VIOLATIONS].tolist()
    return indices


def _first_pairs(mask: _Array) -> list[list[int]]:
    pairs: list[list[int]] = np.argwhere(mask)[:MAXIMUM_VIOLATIONS].tolist()
    return pairs
