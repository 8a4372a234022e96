"""Between hosts: the shape of the trees from host to host, and the port by which each edge leaves.

Shape. All hosts hang on the same planes, so any tree of hosts will do, and the loads only depend on how many edges
leave and enter by each port. Number the hosts round a circle; a tree rooted at host a is the same shape turned by
a. Write the distance j of a host from a in base m; its parent is j with its lowest nonzero digit removed. Trees
then have depth at most L = number of digits, and a host talks to at most L·(m − 1) others each way: L trades depth
for peers.

Exits. An edge into host h enters by a given port, in some plane. It leaves the parent host from the rank at which the
tree entered there, if that has a port to the plane (a rail: no hop inside), else from a rank of the parent host that
has one. Ports that get too many edges give some to other ports of the same host, or of another host nearer to the
root.
"""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

from forestsyn.core.cluster import Port

Integers = npt.NDArray[np.int64]

#: Peers in other hosts, each way, that a rank is given at most while more levels can avoid it: the first that fits.
PEERS = (32, 20, 12, 6)


class Shape(msgspec.Struct, frozen=True):
    """parent[j], level[j]: the distance of the parent of the host at distance j from the root host, and its depth."""

    parent: Integers
    level: Integers


def circle_shape(hosts: int, peers: int) -> Shape:
    """The shape for `hosts` hosts with the fewest levels that keep to `peers` peers each way."""
    levels, base = 1, hosts
    while levels * (base - 1) > peers and base > 2:
        levels += 1
        base = next(m for m in range(2, hosts + 1) if m**levels >= hosts)
    parent = np.zeros(hosts, dtype=np.int64)
    level = np.zeros(hosts, dtype=np.int64)
    for distance in range(1, hosts):
        power = 1
        while distance // power % base == 0:
            power *= base
        parent[distance] = distance - distance // power % base * power
        level[distance] = level[parent[distance]] + 1
    return Shape(parent, level)


class Exits:
    """The egress ports of all hosts, and how many edges leave by each."""

    def __init__(self, ports: list[list[Port]]) -> None:
        """ports: per host. Global port numbers count through the hosts in order."""
        self.flat = [port for host in ports for port in host]
        self.limit = np.array([port.units for port in self.flat], dtype=np.int64)
        self.at: list[dict[int, list[int]]] = []
        self._first: list[dict[tuple[int, int], int]] = []
        number = 0
        for host in ports:
            by_plane: dict[int, list[int]] = {}
            first: dict[tuple[int, int], int] = {}
            for port in host:
                by_plane.setdefault(port.plane, []).append(number)
                first.setdefault((port.place, port.plane), number)
                number += 1
            self.at.append(by_plane)
            self._first.append(first)

    def table(self, planes: list[int], places: int) -> Integers:
        """int[hosts, places, planes, places]: the port for a tree that entered at one place and goes to another.

        −1 where the host has no port to the plane.
        """
        table = np.full((len(self.at), places, len(planes), places), -1, dtype=np.int64)
        for host, by_plane in enumerate(self.at):
            for index, plane in enumerate(planes):
                numbers = by_plane.get(plane)
                if not numbers:
                    continue
                for place in range(places):
                    own = self._first[host].get((place, plane))
                    for goal in range(places):
                        across = self._first[host].get((goal, plane), numbers[goal % len(numbers)])
                        table[host, place, index, goal] = across if own is None else own
        return table


class Edges(msgspec.Struct, frozen=True):
    """int[units, hosts]: exits, the port by which the edge into a host leaves; parents, the host it leaves."""

    exits: Integers
    parents: Integers
