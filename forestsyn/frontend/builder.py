"""The growing topology: vertices and merged links, within stated limits.

Parallel links are merged: bandwidths add up, and the latency of the slowest counts.
"""

from __future__ import annotations

from fractions import Fraction

from forestsyn.errors import InputError
from forestsyn.frontend.schema import SwitchDefaults
from forestsyn.ir.topology import Link, Topology, Vertex, VertexKind

MAXIMUM_VERTICES = 100_000
#: Directed links, before parallel ones are merged.
MAXIMUM_LINKS = 2_000_000


class Speed:
    """Bandwidth in GB/s and latency in µs (None: not stated) of one link."""

    __slots__ = ("bandwidth", "latency")

    def __init__(self, bandwidth: Fraction, latency: Fraction | None) -> None:
        self.bandwidth = bandwidth
        self.latency = latency

    def beside(self, other: Speed) -> Speed:
        """The two as parallel links."""
        latencies = [latency for latency in (self.latency, other.latency) if latency is not None]
        return Speed(self.bandwidth + other.bandwidth, max(latencies, default=None))


class TopologyBuilder:
    """Vertices in order, links by (tail, head); `rates`, `notes` and the chosen ranks complete a Topology."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rates = "spec"
        self.switch_defaults = SwitchDefaults()
        self.vertices: list[Vertex] = []
        self.links: dict[tuple[int, int], Speed] = {}
        self.notes: list[str] = []
        self._positions: dict[str, int] = {}
        self._link_count = 0

    @property
    def names(self) -> list[str]:
        """Vertex names, by position."""
        return list(self._positions)

    def reserve(self, vertices: int, links: int = 0) -> None:
        """Refuse to grow by so much. Raises InputError without a place."""
        vertices += len(self.vertices)
        links += self._link_count
        if vertices > MAXIMUM_VERTICES:
            raise InputError(f"{vertices:,} devices are asked for, the limit is {MAXIMUM_VERTICES:,}")
        if links > MAXIMUM_LINKS:
            raise InputError(f"{links:,} directed links are asked for, the limit is {MAXIMUM_LINKS:,}")

    def add_vertex(self, vertex: Vertex) -> int:
        """Append `vertex`; its position. Raises InputError without a place when the name is taken."""
        if vertex.name in self._positions:
            raise InputError(f"two devices are both named '{vertex.name}'", hint="rename one of them")
        self._positions[vertex.name] = len(self.vertices)
        self.vertices.append(vertex)
        return len(self.vertices) - 1

    def add_link(self, tail: int, head: int, speed: Speed) -> None:
        """Add a directed link, merged with one that is there. Raises InputError without a place."""
        if tail == head:
            raise InputError(f"a link joins '{self.vertices[tail].name}' to itself")
        self._link_count += 1
        present = self.links.get((tail, head))
        self.links[tail, head] = speed if present is None else present.beside(speed)

    def finish(self, ranks: list[int], removed: set[int]) -> Topology:
        """The topology without the vertices `removed`, and without those that then lead nowhere."""
        kept, dropped = self._useful(set(ranks), removed)
        if dropped:
            self.notes.append(_dropped_note([self.vertices[position].name for position in dropped]))
        positions = {old: new for new, old in enumerate(kept)}
        return Topology(
            name=self.name,
            vertices=tuple(self.vertices[position] for position in kept),
            links=self._kept_links(positions),
            ranks=tuple(positions[rank] for rank in ranks),
            rates=self.rates,
            notes=tuple(self.notes),
        )

    def _kept_links(self, positions: dict[int, int]) -> tuple[Link, ...]:
        kept = [
            Link(tail=positions[tail], head=positions[head], bandwidth=speed.bandwidth, latency=speed.latency)
            for (tail, head), speed in self.links.items()
            if tail in positions and head in positions
        ]
        kept.sort(key=lambda link: (link.tail, link.head))
        return tuple(kept)

    def _useful(self, ranks: set[int], removed: set[int]) -> tuple[list[int], list[int]]:
        """Positions to keep, and those to drop because nothing can pass through them.

        Nothing passes through a vertex that has fewer than two neighbours, no way in or no way out; nor through a
        NIC whose links all stay inside its host, for a NIC is no switch. Dropping one may strand the next.
        """
        outgoing: list[set[int]] = [set() for _ in self.vertices]
        incoming: list[set[int]] = [set() for _ in self.vertices]
        for tail, head in self.links:
            if tail not in removed and head not in removed:
                outgoing[tail].add(head)
                incoming[head].add(tail)
        dropped: set[int] = set()
        waiting = [position for position in range(len(self.vertices)) if position not in removed]
        while waiting:
            position = waiting.pop()
            if position in ranks or position in dropped or self._forwards(position, outgoing, incoming):
                continue
            dropped.add(position)
            neighbours = sorted(outgoing[position] | incoming[position])
            for neighbour in neighbours:
                outgoing[neighbour].discard(position)
                incoming[neighbour].discard(position)
            waiting.extend(neighbours)
        kept = [p for p in range(len(self.vertices)) if p not in removed and p not in dropped]
        return kept, sorted(dropped)

    def _forwards(self, position: int, outgoing: list[set[int]], incoming: list[set[int]]) -> bool:
        neighbours = outgoing[position] | incoming[position]
        if len(neighbours) < 2 or not outgoing[position] or not incoming[position]:
            return False
        vertex = self.vertices[position]
        if vertex.kind is not VertexKind.NIC:
            return True
        return any(self.vertices[neighbour].host != vertex.host for neighbour in neighbours)


def _dropped_note(names: list[str]) -> str:
    shown = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
    return (
        f"left out, for they lead nowhere: {shown} ({len(names)} in all)"
        if len(names) > 1
        else (f"left out, for it leads nowhere: {shown}")
    )
