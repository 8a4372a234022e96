"""Equal hosts out of unlike ones: what all hosts of a cluster have in common.

Problem. Beyond a few thousand ranks a forest is kept as a base and its turns, which takes equal hosts. One failed
port makes a cluster of equal hosts unequal.

Theory. Every rank must receive the same data, so the host with the least way in sets the time of an allgather, and
what the other hosts have beyond it is of no use. Trees that use only links whose images exist at all hosts, and no
more of them than the narrowest image holds, turn round the circle as before: the turn need not keep links that no
tree uses.

Method. Ports of hosts are matched by the rank's place and the switch, what is inside by place; each gets the least
units of its images, and what one host lacks is left out for all.

Guarantee. None: the packing that follows counts what is left, and fails where that is too little.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec
import numpy as np

from forestsyn.core.cluster import Cluster, Host, Port
from forestsyn.core.symmetry import Turn

_PortKey = tuple[int, int, int, int]
_Key = TypeVar("_Key", bound=tuple[int, ...])


def level_hosts(cluster: Cluster, demand: Sequence[int], vertex_count: int) -> tuple[Cluster, Turn] | None:
    """The same hosts with what all have in common, and the turn that moves each to the next in the cluster's order.

    None where hosts differ in ranks, in demand, or in what they hold inside.
    """
    hosts = cluster.hosts
    kinds = {(len(host.vertices), tuple(demand[rank] for rank in host.ranks)) for host in hosts}
    if len(kinds) > 1:
        return None
    arcs = _least([{(tail, head): units for tail, head, units in host.arcs} for host in hosts])
    inner = tuple((tail, head, units) for (tail, head), units in sorted(arcs.items()))
    ingress = [_keyed(host.ingress) for host in hosts]
    egress = [_keyed(host.egress) for host in hosts]
    entering = _least([{key: port.units for key, port in ports.items()} for ports in ingress])
    leaving = _least([{key: port.units for key, port in ports.items()} for ports in egress])
    levelled = tuple(
        Host(host.ranks, host.vertices, inner, _ports(incoming, entering), _ports(outgoing, leaving))
        for host, incoming, outgoing in zip(hosts, ingress, egress, strict=True)
    )
    turn = _turn(levelled, vertex_count)
    return None if turn is None else (msgspec.structs.replace(cluster, hosts=levelled), turn)


def _keyed(ports: Iterable[Port]) -> dict[_PortKey, Port]:
    """Ports by what they must have in common with their images; several between the same ends are counted."""
    keyed: dict[_PortKey, Port] = {}
    for port in ports:
        number = 0
        while (key := (port.plane, port.place, port.switch, number)) in keyed:
            number += 1
        keyed[key] = port
    return keyed


def _least(units: Sequence[dict[_Key, int]]) -> dict[_Key, int]:
    """The least units of each key that all have."""
    common = set(units[0]).intersection(*units[1:])
    return {key: min(one[key] for one in units) for key in units[0] if key in common}


def _ports(ports: dict[_PortKey, Port], units: dict[_PortKey, int]) -> tuple[Port, ...]:
    return tuple(msgspec.structs.replace(port, units=units[key]) for key, port in ports.items() if key in units)


def _turn(hosts: Sequence[Host], vertex_count: int) -> Turn | None:
    """The permutation of network vertices, or None where a vertex would need two images."""
    rows = []
    for host in hosts:
        gates = [vertex for port in (*host.ingress, *host.egress) for vertex in port.route[1:-1]]
        rows.append([*host.vertices, *gates])
    if len({len(row) for row in rows}) > 1:
        return None
    table = np.array(rows, dtype=np.int64)
    images = np.roll(table, -1, axis=0)
    turn = np.arange(vertex_count, dtype=np.int64)
    turn[table] = images
    if (turn[table] != images).any() or len(np.unique(turn)) < vertex_count:
        return None
    return turn
