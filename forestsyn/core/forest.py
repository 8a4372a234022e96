"""From demand to forest: capacities, switch removal, packing, and the physical route of every tree edge.

The stages in order: `timing` gives each link its whole units, `splitting` removes the switches, `packing` makes the
trees, `refine` makes them shallow, and here every logical edge gets back the physical routes behind it. A logical arc
may hide several routes; a tree whose edge would need two of them is divided.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import msgspec
import numpy as np

from forestsyn.core.logical import LogicalGraph, Route
from forestsyn.core.network import vertex_order
from forestsyn.core.optimum import directed_network
from forestsyn.core.packing import PackedTree, pack_trees
from forestsyn.core.refine import refine_depth
from forestsyn.core.splitting import split_switches
from forestsyn.core.timing import carrying_capacities
from forestsyn.ir.forest import Direction, Forest
from forestsyn.ir.topology import Topology


def build_forest(
    topology: Topology, demand: Sequence[int], direction: Direction, time_units: Fraction | None = None
) -> Forest:
    """demand[v] unit trees at every root v, in the least time found, or in `time_units` where that suffices.

    Raises InfeasibleError when a rank cannot be reached, UnsupportedError when no balanced capacities are found.
    """
    network = directed_network(topology, direction)
    time, capacities = carrying_capacities(
        topology, network, tuple(demand), time_units if time_units is not None else Fraction(0)
    )
    order = vertex_order(topology)
    graph = LogicalGraph(network, capacities)
    split_switches(graph, demand, [topology.vertices[vertex].host for vertex in order])
    arcs = graph.arcs()
    trees = pack_trees(network.rank_count, arcs, demand, range(network.rank_count))
    trees = refine_depth(network.rank_count, arcs, trees)
    return _assembled(graph, trees, tuple(demand), direction, time, order)


def build_forests(
    topology: Topology, demand: Sequence[int], times: Sequence[tuple[Direction, Fraction]]
) -> tuple[Forest, ...]:
    """One forest per phase (direction, U), in order.

    Where every link has the same bandwidth both ways, the second phase is the first one reversed: trees, and so the
    chunks of a program, are then divided only once.
    """
    forests: list[Forest] = []
    symmetric = directed_network(topology, Direction.OUT) == directed_network(topology, Direction.IN)
    for direction, time_units in times:
        if forests and symmetric:
            forests.append(mirrored(forests[0]))
        else:
            forests.append(build_forest(topology, demand, direction, time_units))
    return tuple(forests)


def mirrored(forest: Forest) -> Forest:
    """The same trees for the other direction: data moves along every edge the other way."""
    flipped = Direction.IN if forest.direction is Direction.OUT else Direction.OUT
    return msgspec.structs.replace(forest, direction=flipped, routes=tuple(route[::-1] for route in forest.routes))


Row = tuple[int, int, tuple[int, ...], tuple[Route | None, ...]]


def _assembled(
    graph: LogicalGraph,
    trees: list[PackedTree],
    demand: tuple[int, ...],
    direction: Direction,
    time: Fraction,
    order: tuple[int, ...],
) -> Forest:
    rows = sorted(_routed(graph, trees), key=lambda row: (row[0], -row[1], row[2], row[3].__repr__()))
    routes = sorted({route for row in rows for route in row[3] if route is not None})
    index: dict[Route | None, int] = {route: position for position, route in enumerate(routes)}
    index[None] = -1
    return Forest(
        direction=direction,
        rank_count=graph.rank_count,
        demand=demand,
        time_units=time,
        roots=np.array([row[0] for row in rows], dtype=np.int32),
        multiplicities=np.array([row[1] for row in rows], dtype=np.int64),
        parents=np.array([row[2] for row in rows], dtype=np.int32),
        routes=tuple(_physical(route, direction, order) for route in routes),
        edge_routes=np.array([[index[route] for route in row[3]] for row in rows], dtype=np.int32),
    )


def _routed(graph: LogicalGraph, trees: list[PackedTree]) -> list[Row]:
    """Each tree with one route per edge; trees are divided where a route runs out."""
    left: dict[tuple[int, int], list[tuple[Route, int]]] = {}
    rows: dict[tuple[int, tuple[int, ...], tuple[Route | None, ...]], int] = {}
    for tree in trees:
        units = tree.multiplicity
        while units:
            choice: list[Route | None] = [None] * graph.rank_count
            part = units
            for head, tail in enumerate(tree.parents):
                if tail >= 0:
                    bag = left.setdefault((tail, head), graph.routes(tail, head))
                    choice[head], available = bag[-1]
                    part = min(part, available)
            for head, tail in enumerate(tree.parents):
                if tail >= 0:
                    route, available = left[tail, head].pop()
                    if available > part:
                        left[tail, head].append((route, available - part))
            key = (tree.root, tree.parents, tuple(choice))
            rows[key] = rows.get(key, 0) + part
            units -= part
    return [(root, units, parents, routes) for (root, parents, routes), units in rows.items()]


def _physical(route: Route, direction: Direction, order: tuple[int, ...]) -> tuple[int, ...]:
    """The route in topology indices, in the direction in which data moves."""
    path = tuple(order[vertex] for vertex in route)
    return path if direction is Direction.OUT else path[::-1]
