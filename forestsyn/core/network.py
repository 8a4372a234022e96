"""From the topology to its flow network, and back to names.

Numbering, fixed for the whole project: vertex r < N is rank r; the other vertices of the topology follow in the
topology's own order. The unit is the greatest common divisor of the bandwidths, so capacities are coprime integers.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd, lcm

from forestsyn.ir.network import FlowNetwork
from forestsyn.ir.topology import Topology


def build_network(topology: Topology) -> FlowNetwork:
    """The flow network of `topology`, with exact integer capacities."""
    order = vertex_order(topology)
    position = {vertex: index for index, vertex in enumerate(order)}
    # Fractions are slow to divide, to hash and to compare: each of the few Fraction objects of a topology only once.
    bandwidths = {id(link.bandwidth): link.bandwidth for link in topology.links}
    unit = common_unit(list(dict.fromkeys(bandwidths.values())))
    whole = {key: int(bandwidth / unit) for key, bandwidth in bandwidths.items()}
    arcs = sorted((position[link.tail], position[link.head], whole[id(link.bandwidth)]) for link in topology.links)
    return FlowNetwork(
        rank_count=topology.rank_count,
        vertex_count=len(order),
        tails=tuple(arc[0] for arc in arcs),
        heads=tuple(arc[1] for arc in arcs),
        capacities=tuple(arc[2] for arc in arcs),
        unit=unit,
    )


def vertex_order(topology: Topology) -> tuple[int, ...]:
    """Topology indices in network order: ranks first, then every other vertex."""
    ranks = set(topology.ranks)
    return topology.ranks + tuple(v for v in range(len(topology.vertices)) if v not in ranks)


def host_names(topology: Topology) -> list[str | None]:
    """The host of each network vertex."""
    return [topology.vertices[vertex].host for vertex in vertex_order(topology)]


def common_unit(values: list[Fraction]) -> Fraction:
    """The largest u such that every value is an integer multiple of u; 1 for no values."""
    if not values:
        return Fraction(1)
    denominator = lcm(*(value.denominator for value in values))
    return Fraction(gcd(*(int(value * denominator) for value in values)), denominator)
