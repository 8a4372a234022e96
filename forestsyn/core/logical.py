"""Logical graphs: arcs with the physical routes behind them, while switches disappear one by one.

A logical arc (u, t) is a bag of routes, each a physical path u … t with a whole number of units. At first every
link is its own route; splitting (u, w), (w, t) joins routes of the two end to end. Units are never made, so the
loads on the physical links stay within their capacities whatever is split.
"""

from __future__ import annotations

from collections.abc import Sequence

from forestsyn.errors import InternalError
from forestsyn.ir.network import FlowNetwork

Route = tuple[int, ...]


class LogicalGraph:
    """A mutable work sheet of the core; vertices are those of the flow network."""

    def __init__(self, network: FlowNetwork, capacities: Sequence[int]) -> None:
        self.rank_count = network.rank_count
        self.vertex_count = network.vertex_count
        self.outgoing: list[dict[int, int]] = [{} for _ in range(network.vertex_count)]
        self.incoming: list[dict[int, int]] = [{} for _ in range(network.vertex_count)]
        self._routes: dict[tuple[int, int], list[tuple[Route, int]]] = {}
        for tail, head, capacity in zip(network.tails, network.heads, capacities, strict=True):
            if capacity:
                self._add(tail, head, [((tail, head), capacity)])

    def capacity(self, tail: int, head: int) -> int:
        """Units of the logical arc, 0 where there is none."""
        return self.outgoing[tail].get(head, 0)

    def routes(self, tail: int, head: int) -> list[tuple[Route, int]]:
        """The routes behind a logical arc, with their units."""
        return list(self._routes.get((tail, head), ()))

    def arcs(self) -> list[tuple[int, int, int]]:
        """All logical arcs (tail, head, units), sorted."""
        return sorted(
            (tail, head, units) for tail, heads in enumerate(self.outgoing) for head, units in heads.items()
        )

    def split(self, tail: int, through: int, head: int, units: int) -> None:
        """Turn `units` of tail → through → head into a logical arc; tail == head just drops them."""
        first = self._take(tail, through, units)
        second = self._take(through, head, units)
        if tail != head:
            self._add(tail, head, _joined(first, second))

    def drop(self, tail: int, head: int, units: int) -> None:
        """Give up `units` of a logical arc."""
        self._take(tail, head, units)

    def _add(self, tail: int, head: int, routes: list[tuple[Route, int]]) -> None:
        units = sum(route[1] for route in routes)
        self.outgoing[tail][head] = self.outgoing[tail].get(head, 0) + units
        self.incoming[head][tail] = self.incoming[head].get(tail, 0) + units
        bag = dict(self._routes.get((tail, head), ()))
        for route, amount in routes:
            bag[route] = bag.get(route, 0) + amount
        self._routes[tail, head] = list(bag.items())

    def _take(self, tail: int, head: int, units: int) -> list[tuple[Route, int]]:
        present = self.capacity(tail, head)
        if units > present:
            raise InternalError(f"{units} units asked of logical arc {tail} -> {head}, which has {present}")
        taken: list[tuple[Route, int]] = []
        kept: list[tuple[Route, int]] = []
        wanted = units
        for route, amount in self._routes[tail, head]:
            use = min(wanted, amount)
            wanted -= use
            if use:
                taken.append((route, use))
            if amount > use:
                kept.append((route, amount - use))
        if kept:
            self._routes[tail, head] = kept
            self.outgoing[tail][head] = present - units
            self.incoming[head][tail] = present - units
        else:
            del self._routes[tail, head], self.outgoing[tail][head], self.incoming[head][tail]
        return taken


def _joined(first: list[tuple[Route, int]], second: list[tuple[Route, int]]) -> list[tuple[Route, int]]:
    """Pair up two bags of equal size; every pair of routes becomes one route."""
    joined: list[tuple[Route, int]] = []
    left, right = list(first), list(second)
    i = j = 0
    while i < len(left):
        units = min(left[i][1], right[j][1])
        joined.append((_without_loops(left[i][0] + right[j][0][1:]), units))
        left[i] = (left[i][0], left[i][1] - units)
        right[j] = (right[j][0], right[j][1] - units)
        i += left[i][1] == 0
        j += right[j][1] == 0
    return joined


def _without_loops(route: Route) -> Route:
    """Cut out what lies between two visits of one vertex."""
    path: list[int] = []
    for vertex in route:
        if vertex in path:
            del path[path.index(vertex) :]
        path.append(vertex)
    return tuple(path)
