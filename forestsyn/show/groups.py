"""Who belongs together in a picture: hosts, GPUs without a host that share switches, the levels of the fabric, and
which of them are alike.

Two groups are alike when their devices, in order, are of the same kinds and have links of the same bandwidths to the
same places inside and to the same kinds of devices outside. That is what a picture may say once for many.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from forestsyn.ir.topology import Topology, VertexKind

Signature = tuple[object, ...]


class Group(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """members: topology indices in order. name: of the host, empty for GPUs that belong to none."""

    name: str
    members: tuple[int, ...]
    signature: Signature


class Neighbours(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """For each vertex its neighbours with the bandwidth to and from each as text (empty for none), sorted."""

    around: tuple[tuple[tuple[int, str, str], ...], ...]

    def of(self, vertex: int) -> tuple[tuple[int, str, str], ...]:
        """(neighbour, bandwidth to it, bandwidth from it)."""
        return self.around[vertex]


def find_neighbours(topology: Topology) -> Neighbours:
    """All links, seen from both ends."""
    found: list[dict[int, list[str]]] = [{} for _ in topology.vertices]
    for link in topology.links:
        found[link.tail].setdefault(link.head, ["", ""])[0] = str(link.bandwidth)
        found[link.head].setdefault(link.tail, ["", ""])[1] = str(link.bandwidth)
    return Neighbours(
        around=tuple(tuple((other, there, back) for other, (there, back) in sorted(row.items())) for row in found)
    )


def find_groups(topology: Topology, neighbours: Neighbours) -> tuple[Group, ...]:
    """Hosts and groups of GPUs without one, in the order of their first devices."""
    owner = _owners(topology, neighbours)
    members: dict[str, list[int]] = {}
    for vertex, key in enumerate(owner):
        if key is not None:
            members.setdefault(key, []).append(vertex)
    groups = []
    for key, found in members.items():
        host = topology.vertices[found[0]].host
        groups.append(
            Group(name=host or "", members=tuple(found), signature=_signature(topology, neighbours, found, key))
        )
    return tuple(groups)


def vertex_signature(topology: Topology, neighbours: Neighbours, vertex: int) -> Signature:
    """What makes two devices alike: their kind and their links by kind of neighbour and bandwidth."""
    own = topology.vertices[vertex]
    around = sorted(
        (str(topology.vertices[other].kind), topology.vertices[other].host == own.host, there, back)
        for other, there, back in neighbours.of(vertex)
    )
    return (str(own.kind), *around)


def fabric_levels(topology: Topology, neighbours: Neighbours) -> tuple[tuple[int, ...], ...]:
    """Devices of no host that are not GPUs, by their distance from hosts and GPUs, nearest first."""
    outside = {
        vertex
        for vertex, device in enumerate(topology.vertices)
        if device.host is None and device.kind is not VertexKind.GPU
    }
    reached = set(range(len(topology.vertices))) - outside
    levels = []
    while outside:
        level = sorted(
            vertex for vertex in outside if any(other in reached for other, _, _ in neighbours.of(vertex))
        ) or sorted(outside)
        levels.append(tuple(level))
        reached.update(level)
        outside.difference_update(level)
    return tuple(levels)


def _owners(topology: Topology, neighbours: Neighbours) -> list[str | None]:
    """A key for each vertex: its host, the vertices that it is directly joined with, or the switches it hangs on."""
    loose = [
        vertex
        for vertex, device in enumerate(topology.vertices)
        if device.host is None and device.kind is VertexKind.GPU
    ]
    owner = [None if device.host is None else f"host {device.host}" for device in topology.vertices]
    is_loose = set(loose)
    for vertex in loose:
        if owner[vertex] is None:
            reached = _component(neighbours, vertex, is_loose)
            switches = [other for other, _, _ in neighbours.of(vertex)]
            key = f"joined {vertex}" if len(reached) > 1 else f"hanging on {switches}"
            for member in reached:
                owner[member] = key
    return owner


def _component(neighbours: Neighbours, start: int, allowed: set[int]) -> list[int]:
    reached, waiting = {start}, [start]
    while waiting:
        for other, _, _ in neighbours.of(waiting.pop()):
            if other in allowed and other not in reached:
                reached.add(other)
                waiting.append(other)
    return sorted(reached)


def _signature(topology: Topology, neighbours: Neighbours, members: Sequence[int], key: str) -> Signature:
    place = {vertex: number for number, vertex in enumerate(members)}
    ranks = (
        set(topology.ranks) if topology.rank_count < sum(v.kind is VertexKind.GPU for v in topology.vertices) else ()
    )
    rows: list[object] = [key.split()[0]]
    for vertex in members:
        around = sorted(
            (
                place.get(other, -1),
                "" if other in place else str(topology.vertices[other].kind),
                there,
                back,
            )
            for other, there, back in neighbours.of(vertex)
        )
        rows.append((str(topology.vertices[vertex].kind), bool(ranks) and vertex in ranks, *around))
    return tuple(rows)
