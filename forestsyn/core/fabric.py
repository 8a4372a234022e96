"""Across the fabric: routes between the switches of one plane.

Problem. Tree edges leave a host at one switch and enter another host at another of the same plane, a leaf and a
leaf, say. They need routes through the plane, within the capacities of its links.

Method. Greedy: for every pair of switches, use shortest paths, the one with most room first, until all its edges have
one. Nothing is rerouted; a plane that is too narrow for this is a reason to choose trees that cross it less.

Guarantee. Loads stay within the capacities, or None is returned.
"""

from __future__ import annotations

from itertools import pairwise

from forestsyn.core.logical import Route


class Fabric:
    """Links between fabric switches, with the units they have left."""

    def __init__(self, links: dict[tuple[int, int], int]) -> None:
        self._left = dict(links)
        self._next: dict[int, list[int]] = {}
        for tail, head in sorted(links):
            self._next.setdefault(tail, []).append(head)

    def routes(self, tail: int, head: int, units: int) -> list[tuple[Route, int]] | None:
        """Paths tail … head for `units`, with the units of each; None where there is no room."""
        if tail == head:
            return [((tail,), units)]
        found: list[tuple[Route, int]] = []
        while units:
            path = self._roomiest(tail, head)
            if path is None:
                return None
            arcs = list(pairwise(path))
            part = min(units, *(self._left[arc] for arc in arcs))
            for arc in arcs:
                self._left[arc] -= part
            found.append((path, part))
            units -= part
        return found

    def _roomiest(self, tail: int, head: int) -> Route | None:
        """Of the shortest paths with room, one whose narrowest link has most of it."""
        border: dict[int, tuple[int, Route]] = {tail: (1 << 62, (tail,))}
        seen = {tail}
        while border and head not in border:
            seen.update(border)
            following: dict[int, tuple[int, Route]] = {}
            for vertex, (room, path) in border.items():
                for other in self._next.get(vertex, ()):
                    wider = min(room, self._left[vertex, other])
                    if other not in seen and wider and wider > following.get(other, (0, ()))[0]:
                        following[other] = (wider, (*path, other))
            border = following
        return border[head][1] if head in border else None
