"""From vertex ids to the names that the user gave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from forestsyn.ir.forest import Direction, Optimum
from forestsyn.ir.topology import Topology

_NAMED = 6


def cut_vertices(topology: Topology, inside: Sequence[int]) -> tuple[int, ...]:
    """Topology indices of vertices given by flow-network id: ranks first, then the others in topology order."""
    ranks = set(topology.ranks)
    others = (vertex for vertex in range(len(topology.vertices)) if vertex not in ranks)
    order = (*topology.ranks, *others)
    return tuple(sorted(order[vertex] for vertex in inside))


def vertex_names(topology: Topology, vertices: Sequence[int]) -> list[str]:
    """The names of vertices given by topology index."""
    return [topology.vertices[vertex].name for vertex in vertices]


def cut_sentence(topology: Topology, optimum: Optimum) -> str:
    """What the bottleneck forces, told of the smaller side of the cut."""
    inside = cut_vertices(topology, optimum.cut.inside)
    outside = sorted(set(range(len(topology.vertices))) - set(inside))
    small = len(inside) <= len(outside)
    verb = "leave" if small == (optimum.direction is Direction.OUT) else "enter"
    rooted = sum(optimum.weights) == 1
    load = "the message" if rooted else f"{optimum.cut.demand} of {topology.rank_count} shards"
    side = side_text(topology, inside if small else outside)
    return f"{load} must {verb} {side} through {decimal_text(optimum.cut.bandwidth)} GB/s"


def side_text(topology: Topology, vertices: Sequence[int]) -> str:
    """A set of vertices in few words: whole hosts by their name, the rest one by one, shortened when many."""
    sizes = Counter(vertex.host for vertex in topology.vertices)
    found = Counter(topology.vertices[vertex].host for vertex in vertices)
    whole = [host for host, count in found.items() if host is not None and sizes[host] == count > 1]
    single = [vertex for vertex in vertices if topology.vertices[vertex].host not in whole]
    names = [f"host {host}" for host in whole] + vertex_names(topology, single)
    if len(names) <= _NAMED:
        return ", ".join(names)
    return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"


def decimal_text(value: Fraction) -> str:
    """At most two decimals, for people."""
    return f"{float(value):.2f}".rstrip("0").rstrip(".")
