"""Between hosts: the shape of the trees from host to host, and the port by which each edge leaves.

Shape. All hosts hang on the same planes, so any tree of hosts will do, and the loads only depend on how many edges
leave and enter by each port. Number the hosts round a circle; a tree rooted at host a is the same shape turned by
a. Write the distance j of a host from a in base m; its parent is j with its lowest nonzero digit removed. Trees
then have depth at most L = number of digits, and a host talks to at most L·(m − 1) others each way: L trades depth
for peers.

Exits. An edge into host h enters by a given port, in some plane. It leaves the parent host from the rank at which the
tree entered there, if that has a port to the plane (a rail: no hop inside), else from a rank of the parent host that
has one. Ports that get too many edges give some away (`rehanging`).

Centres. The shape loads all hosts alike if it is turned to all hosts alike. Where some hosts root more trees than
others, a surplus tree goes from its root host to another host, its centre, and on by the shape turned to that one;
the root host keeps the children that it has there. That costs a level and leaves little to move.
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


def spread_centers(root_hosts: Integers, limits: Integers, shape: Shape) -> Integers:
    """The centre of each unit, int[units], such that the hosts' loads come near their `limits`.

    limits: int[hosts], the units that each can send. Hosts whose units cannot all be centred there hand some to hosts
    with few, those next to each other in turn.
    """
    hosts = len(limits)
    counts = np.bincount(root_hosts, minlength=hosts)
    trees, fanout = len(root_hosts), max(1, int((shape.parent == 0).sum()) - 1)
    # What a host sends with a fair number of centres, trees / hosts: its part of all edges, and one for each tree it
    # hands on. All of it times `hosts`.
    sent = trees * (hosts - 1) + np.maximum(counts * hosts - trees, 0)
    quota = np.maximum(trees * fanout + np.minimum(limits * hosts - sent, 0), 0) // (hosts * fanout)
    centers = root_hosts.copy()
    surplus = np.concatenate([np.flatnonzero(root_hosts == host)[quota[host] :] for host in range(hosts)])
    # Hosts at their quota get what is left over in equal parts, so that all units find a centre.
    open_places = np.maximum(quota - counts, 0)
    rounds = -(-max(0, len(surplus) - int(open_places.sum())) // max(1, int((quota > 0).sum())))
    open_places += rounds * (quota > 0)
    takers = np.repeat(np.arange(hosts), open_places)
    turn = np.concatenate([np.arange(places) for places in open_places]) if len(takers) else takers
    takers = takers[np.lexsort((takers, turn))]
    centers[surplus[: len(takers)]] = takers[: len(surplus)]
    return centers


def hung_from(centers: Integers, root_hosts: Integers, shape: Shape) -> Integers:
    """int[units, hosts]: the parent host of each host; that of the root host is itself."""
    hosts = len(shape.parent)
    distance = (np.arange(hosts)[None, :] - centers[:, None]) % hosts
    parents: Integers = (centers[:, None] + shape.parent[distance]) % hosts
    units = np.arange(len(centers))
    parents[units, centers] = root_hosts
    parents[units, root_hosts] = root_hosts
    return parents


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

    def levels(self) -> Integers:
        """int[units, hosts]: the edges between each host and the root host, which is its own parent."""
        position = np.broadcast_to(np.arange(self.parents.shape[1]), self.parents.shape)
        levels = np.zeros_like(self.parents)
        for _ in range(self.parents.shape[1]):
            following = np.take_along_axis(self.parents, position, axis=1)
            moving = following != position
            if not moving.any():
                break
            levels += moving
            position = following
        return levels
