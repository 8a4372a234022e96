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
import numpy.typing as npt

from forestsyn.core.cluster import groupings
from forestsyn.core.hierarchy import pack_cluster
from forestsyn.core.layout import Rows
from forestsyn.core.logical import LogicalGraph, Route
from forestsyn.core.network import host_names, vertex_order
from forestsyn.core.optimum import directed_network
from forestsyn.core.routing import route_trees
from forestsyn.core.splitting import split_switches
from forestsyn.core.symmetry import Turn
from forestsyn.core.timing import carrying_capacities, rounded_capacities
from forestsyn.core.trees import pack_shallow_trees
from forestsyn.ir.forest import Direction, Forest
from forestsyn.ir.network import FlowNetwork
from forestsyn.ir.topology import Topology


def build_forest(
    topology: Topology,
    demand: Sequence[int],
    direction: Direction,
    time_units: Fraction | None = None,
    partners: int | None = None,
) -> Forest:
    """demand[v] unit trees at every root v, in the least time found, or in `time_units` where that suffices.

    partners: how many partners a port of a switch should have at most, None for the usual number. A hint: flows
    decide how many it needs.
    Raises InfeasibleError when a rank cannot be reached, UnsupportedError when no balanced capacities are found.
    """
    network = directed_network(topology, direction)
    hosts = host_names(topology)
    rows = None
    time = time_units if time_units is not None else Fraction(0)
    if time_units is not None:
        capacities = rounded_capacities(network, time_units * network.unit)
        rows = pack_cluster(network, capacities, demand, hosts, partners)
    if rows is None:
        time, capacities = carrying_capacities(topology, network, tuple(demand), time)
        rows = pack_cluster(network, capacities, demand, hosts, partners) if time != time_units else None
    if rows is None:
        rows = _general(network, capacities, demand, hosts, partners)
    return _forest(rows, tuple(demand), direction, time, vertex_order(topology))


def build_forests(
    topology: Topology,
    demand: Sequence[int],
    times: Sequence[tuple[Direction, Fraction]],
    partners: int | None = None,
) -> tuple[Forest, ...]:
    """One forest per phase (direction, U), in order; `partners` as for `build_forest`.

    Where every link has the same bandwidth both ways, the second phase is the first one reversed: trees, and so the
    chunks of a program, are then divided only once.
    """
    forests: list[Forest] = []
    symmetric = directed_network(topology, Direction.OUT) == directed_network(topology, Direction.IN)
    for direction, time_units in times:
        if forests and symmetric:
            forests.append(mirrored(forests[0]))
        else:
            forests.append(build_forest(topology, demand, direction, time_units, partners))
    return tuple(forests)


def mirrored(forest: Forest) -> Forest:
    """The same trees for the other direction: data moves along every edge the other way."""
    flipped = Direction.IN if forest.direction is Direction.OUT else Direction.OUT
    return msgspec.structs.replace(forest, direction=flipped, routes=tuple(route[::-1] for route in forest.routes))


def _general(
    network: FlowNetwork,
    capacities: Sequence[int],
    demand: Sequence[int],
    hosts: Sequence[str | None],
    partners: int | None = None,
) -> Rows:
    """The way that always works: remove the switches, pack, make shallow, and find the routes again."""
    graph = LogicalGraph(network, capacities)
    split_switches(graph, demand, _far_apart(network, capacities, hosts), partners)
    rows = route_trees(graph, pack_shallow_trees(network.rank_count, graph.arcs(), demand))
    routes = sorted({route for row in rows for route in row.routes if route is not None})
    index: dict[Route | None, int] = {route: position for position, route in enumerate(routes)}
    index[None] = -1
    return Rows(
        np.array([row.root for row in rows], dtype=np.int32),
        np.array([row.units for row in rows], dtype=np.int64),
        np.array([row.parents for row in rows], dtype=np.int32),
        tuple(routes),
        np.array([[index[route] for route in row.routes] for row in rows], dtype=np.int32),
    )


def _far_apart(network: FlowNetwork, capacities: Sequence[int], hosts: Sequence[str | None]) -> Sequence[str | None]:
    """What a fabric should join: the parts that strong links hold together where they contain whole hosts (trays of
    one NVLink domain, say), else the hosts."""
    for parts in groupings(network, capacities, hosts):
        pairs = {(hosts[rank], parts[rank]) for rank in range(network.rank_count)}
        holds_whole_hosts = len(pairs) == len({host for host, _ in pairs})
        if holds_whole_hosts and len({part for _, part in pairs}) < len(pairs):
            return parts
    return hosts


def _forest(
    rows: Rows, demand: tuple[int, ...], direction: Direction, time: Fraction, order: tuple[int, ...]
) -> Forest:
    """Rows in their final order, with routes in topology indices."""
    keys = [*rows.edge_routes.T[::-1], *rows.parents.T[::-1], -rows.units, rows.roots]
    sorting = np.lexsort(keys)
    return Forest(
        direction=direction,
        rank_count=len(demand),
        demand=demand,
        time_units=time,
        roots=rows.roots[sorting],
        multiplicities=rows.units[sorting],
        parents=rows.parents[sorting],
        routes=tuple(_physical(route, direction, order) for route in rows.routes),
        edge_routes=rows.edge_routes[sorting],
        turn=None if rows.turn is None else _topology_turn(rows.turn, order),
        turns=rows.turns,
    )


def _topology_turn(turn: Turn, order: tuple[int, ...]) -> npt.NDArray[np.int32]:
    """The turn in topology indices."""
    permutation = np.empty(len(order), dtype=np.int32)
    permutation[list(order)] = np.array(order, dtype=np.int32)[turn]
    return permutation


def _physical(route: Route, direction: Direction, order: tuple[int, ...]) -> tuple[int, ...]:
    """The route in topology indices, in the direction in which data moves."""
    path = tuple(order[vertex] for vertex in route)
    return path if direction is Direction.OUT else path[::-1]
