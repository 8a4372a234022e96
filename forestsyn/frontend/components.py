"""Which ranks reach each other: strongly connected components, by two depth-first searches (Kosaraju, Sharir 1981).

The first search numbers the vertices by when they finish; the second, against the links and from the last
number down, meets one component at a time. Linear, without recursion.
"""

from __future__ import annotations

from forestsyn.ir.topology import Topology


def mutually_reachable(topology: Topology) -> tuple[tuple[int, ...], ...]:
    """The ranks in groups that reach each other both ways, each sorted, in the order of their first rank."""
    count = len(topology.vertices)
    forwards: list[list[int]] = [[] for _ in range(count)]
    backwards: list[list[int]] = [[] for _ in range(count)]
    for link in topology.links:
        forwards[link.tail].append(link.head)
        backwards[link.head].append(link.tail)
    component = _components(forwards, backwards)
    groups: dict[int, list[int]] = {}
    for rank, vertex in enumerate(topology.ranks):
        groups.setdefault(component[vertex], []).append(rank)
    return tuple(tuple(group) for group in groups.values())


def _components(forwards: list[list[int]], backwards: list[list[int]]) -> list[int]:
    """The component of each vertex, named by one of its vertices."""
    count = len(forwards)
    component = [-1] * count
    for root in reversed(_finishing_order(forwards)):
        if component[root] >= 0:
            continue
        component[root] = root
        waiting = [root]
        while waiting:
            for neighbour in backwards[waiting.pop()]:
                if component[neighbour] < 0:
                    component[neighbour] = root
                    waiting.append(neighbour)
    return component


def _finishing_order(forwards: list[list[int]]) -> list[int]:
    seen = [False] * len(forwards)
    order: list[int] = []
    for root in range(len(forwards)):
        if seen[root]:
            continue
        seen[root] = True
        path = [(root, iter(forwards[root]))]
        while path:
            vertex, remaining = path[-1]
            unseen = next((neighbour for neighbour in remaining if not seen[neighbour]), None)
            if unseen is None:
                order.append(vertex)
                path.pop()
            else:
                seen[unseen] = True
                path.append((unseen, iter(forwards[unseen])))
    return order
