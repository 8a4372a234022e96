"""Between hosts: moving edges off ports that carry too much.

Problem. `crossing` hangs every host of every tree below another one and picks the port by which the edge leaves. A
port may then have more edges than units, above all where hosts are unlike: one that lost ports roots more than its
part of an allreduce, and cannot serve all the children that the shape gives it.

Theory. Any tree of hosts will do, so the edge into a host h may leave any other host that is not below h in that tree
and has a port with room into the plane. Moving one edge after the other keeps every tree a tree.

Method. An overloaded port gives away the edges of the trees in which it serves most hosts, so all trees keep some
of their root's own edges. An edge prefers its present host, then those nearer to the root than the host that it leads
to, then the least depth; and of these the host with most room. Hosts that still wait for their own edge come last.
Where no host with room is left that will do, an edge of another tree makes way.

Guarantee. No port beyond its units, or None. Complexity: O(hosts × depth) for each edge moved.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from forestsyn.core.crossing import Edges, Exits, Integers

#: Edges that are asked to make way for one that finds no room, and hosts whose edges are asked.
WAYS = 32
WAY_HOSTS = 16


def rehung(exits: Exits, edges: Edges, planes: Integers, places: Integers, root_hosts: Integers) -> Edges | None:
    """`edges` with ports that keep to their limits, or None.

    planes: int[units, hosts], the plane (topology vertex) that the edge into a host must take, −1 for none.
    places: int[units, hosts], where a tree enters a host or starts. root_hosts: int[units].
    Where `exits` lists only one host it stands for all of them.
    """
    load = np.bincount(edges.exits[edges.exits >= 0].ravel(), minlength=len(exits.flat))
    missing = (edges.exits < 0) & (planes >= 0)
    if not missing.any() and (load <= exits.limit).all():
        return edges
    sheet = _Sheet(exits, edges, load, planes, places, root_hosts)
    moving = [(int(unit), int(host)) for unit, host in np.argwhere(missing)]
    for port, users in _users_of(edges.exits, np.flatnonzero(load > exits.limit)):
        moving.extend(sheet.given_away(port, users))
    # Trees whose root has lost all its edges first: they have the fewest hosts to choose from.
    moving.sort(key=lambda edge: (edges.parents[edge] != root_hosts[edge[0]], edge))
    sheet.wait(moving)
    return sheet.edges() if all(sheet.place(unit, host) for unit, host in moving) else None


class _Sheet:
    """Edges on the move, and the room that is left on the ports."""

    def __init__(
        self,
        exits: Exits,
        edges: Edges,
        load: Integers,
        planes: Integers,
        places: Integers,
        root_hosts: Integers,
    ) -> None:
        self._ports = exits
        self._exits = edges.exits.copy()
        self._parents = edges.parents.copy()
        self._planes = planes
        self._wished = edges.levels()
        self._places = places
        self._root_hosts = root_hosts
        # A root host is its own parent here.
        self._root_fanout = (edges.parents == root_hosts[:, None]).sum(axis=1) - 1
        self._left = exits.limit - load
        self._hosts = np.arange(edges.parents.shape[1])
        self._waiting = np.zeros(edges.parents.shape, dtype=bool)
        self._room: dict[int, Integers] = {}
        for host, by_plane in enumerate(exits.at):
            for plane, numbers in by_plane.items():
                room = self._room.setdefault(plane, np.zeros(len(exits.at), dtype=np.int64))
                room[host] = np.maximum(self._left[numbers], 0).sum()

    def edges(self) -> Edges:
        return Edges(self._exits, self._parents)

    def given_away(self, port: int, users: Integers) -> list[tuple[int, int]]:
        """The edges that an overloaded port is relieved of: the trees in which it has most give first.

        users: int[edges, 2], the units and hosts that use it.
        """
        units, hosts = users.T
        trees, first, counts = np.unique(units, return_index=True, return_counts=True)
        tree = np.repeat(np.arange(len(trees)), counts)
        # Each tree keeps other hosts than the one before, so that what is given away finds room below all of them.
        kept = max(1, (len(units) + int(self._left[port])) // len(trees))
        turned = (np.arange(len(units)) - first[tree] - kept * tree) % counts[tree]
        only = (self._parents[units, hosts] == self._root_hosts[units]) & (self._root_fanout[units] == 1)
        order = np.lexsort((units, -turned, only))[: -int(self._left[port])]
        self._left[port] = 0
        return list(zip(units[order].tolist(), hosts[order].tolist(), strict=True))

    def wait(self, moving: list[tuple[int, int]]) -> None:
        """Mark the hosts that have no edge for now; all that is below them has no certain level."""
        for edge in moving:
            self._waiting[edge] = True
            self._exits[edge] = -1

    def place(self, unit: int, host: int) -> bool:
        """Give an edge that has no port one with room; False where none was found."""
        plane = int(self._planes[unit, host])
        levels, below = self._seen_from(unit, host)
        room = self._room_at(plane)
        found = self._best(unit, host, levels, np.flatnonzero((room > 0) & ~below), room)
        if found is not None:
            self._take(unit, host, found, plane)
            return True
        return self._make_way(unit, host, levels, below, plane)

    def _best(self, unit: int, host: int, levels: Integers, hosts: Integers, room: Integers) -> int | None:
        if not len(hosts):
            return None
        present = int(self._parents[unit, host])
        if present in hosts:
            return present
        deeper = np.maximum(levels[hosts] + 1 - self._wished[unit, host], 0)
        distance = (hosts - host) % len(self._hosts)
        return int(hosts[np.lexsort((distance, -room[hosts], deeper))[0]])

    def _make_way(self, unit: int, host: int, levels: Integers, below: npt.NDArray[np.bool_], plane: int) -> bool:
        """Take over the port of an edge that can go elsewhere."""
        room = self._room_at(plane)
        useful = np.flatnonzero(~below)
        for other in useful[np.argsort(levels[useful], kind="stable")][:WAY_HOSTS].tolist():
            for other_unit, other_host in self._users(other, plane):
                _, other_below = self._seen_from(other_unit, other_host)
                goal = self._best(other_unit, other_host, levels, np.flatnonzero((room > 0) & ~other_below), room)
                if goal is not None:
                    self._release(other_unit, other_host, other, plane)
                    self._take(other_unit, other_host, goal, plane)
                    self._take(unit, host, other, plane)
                    return True
        return False

    def _users(self, host: int, plane: int) -> Iterator[tuple[int, int]]:
        """Edges that leave `host` into `plane`."""
        numbers = self._ports.at[host % len(self._ports.at)].get(plane, [])
        units, heads = np.nonzero(np.isin(self._exits, numbers) & (self._parents == host))
        return iter(list(zip(units[:WAYS].tolist(), heads[:WAYS].tolist(), strict=True)))

    def _seen_from(self, unit: int, host: int) -> tuple[Integers, npt.NDArray[np.bool_]]:
        """The level of each host in the tree of a unit, and whether it is `host` or below it.

        As many levels as hosts are added for each edge on the way that is not there yet.
        """
        parents = self._parents[unit]
        position = self._hosts
        below = position == host
        steps = 1 + len(parents) * self._waiting[unit]
        levels = np.zeros_like(position)
        for _ in parents:
            following = parents[position]
            moving = following != position
            if not moving.any():
                break
            levels += moving * steps[position]
            below |= following == host
            position = following
        return levels, below

    def _room_at(self, plane: int) -> Integers:
        room = self._room.get(plane)
        listed = np.zeros(1, dtype=np.int64) if room is None else room
        return listed[self._hosts % len(listed)]

    def _take(self, unit: int, host: int, parent: int, plane: int) -> None:
        """Let the edge leave `parent`: where the tree comes in if there is room, else where there is most."""
        listed = parent % len(self._ports.at)
        numbers = [number for number in self._ports.at[listed][plane] if self._left[number] > 0]
        place = self._places[unit, parent]
        port = max(numbers, key=lambda number: (self._ports.flat[number].place == place, self._left[number], -number))
        self._exits[unit, host] = port
        self._parents[unit, host] = parent
        self._waiting[unit, host] = False
        self._left[port] -= 1
        self._room[plane][listed] -= 1

    def _release(self, unit: int, host: int, parent: int, plane: int) -> None:
        self._left[self._exits[unit, host]] += 1
        self._room[plane][parent % len(self._ports.at)] += 1


def _users_of(exits: Integers, ports: Integers) -> Iterator[tuple[int, Integers]]:
    """The (unit, host) pairs that leave by each of `ports`, in order."""
    flat = exits.ravel()
    using = np.flatnonzero(np.isin(flat, ports))
    using = using[np.argsort(flat[using], kind="stable")]
    ends = np.searchsorted(flat[using], ports, side="right").tolist()
    for port, start, end in zip(ports.tolist(), [0, *ends], ends, strict=False):
        yield port, np.stack(np.divmod(using[start:end], exits.shape[1]), axis=1)
