"""Turns: equal hosts round a circle.

Theory. An automorphism of the network maps arcs to arcs of equal capacity, so the maximum flow from all roots to
rank r equals that to the image of r, provided the demand is mapped onto itself too: of every orbit of ranks one
needs a flow.

Method. Guess one automorphism: number the hosts in the order of their ranks, and map the i-th vertex of each host
to the i-th vertex of the next, the last host to the first, and every fabric vertex to itself. The guess is proved
by checking every arc. A cluster of B equal hosts then has as many orbits as one host has ranks, whatever B is.
Where hosts differ, in a failed port, their leaf switch or their demand, those that look alike form a circle each, and
each circle has the orbits of one host.

Guarantee. A wrong guess is found out and costs a pass over the arcs, nothing else. Exactness: integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from forestsyn.ir.network import FlowNetwork

#: Below this the flows cost less than the search for a symmetry.
WORTH_A_SEARCH = 64

Turn = npt.NDArray[np.int64]


def find_turn(network: FlowNetwork, host_names: Sequence[str | None], demand: Sequence[int]) -> Turn | None:
    """The permutation of network vertices that moves every host to the next, or None where it is no symmetry.

    host_names: per network vertex. demand: per rank; it must be the same after the turn.
    """
    names = list(dict.fromkeys(host_names[: network.rank_count]))
    if None in names or len(names) < 2:
        return None
    members: dict[str, list[int]] = {str(name): [] for name in names}
    turn = np.arange(network.vertex_count, dtype=np.int64)
    for vertex, name in enumerate(host_names):
        if name is not None:
            if name not in members:
                return None
            members[name].append(vertex)
    rows = list(members.values())
    if len({len(row) for row in rows}) > 1:
        return None
    table = np.array(rows, dtype=np.int64)
    turn[table] = np.roll(table, -1, axis=0)
    moved = turn[: network.rank_count]
    if (moved >= network.rank_count).any() or (
        np.asarray(demand, dtype=object)[moved] != np.asarray(demand, dtype=object)
    ).any():
        return None
    return turn if _keeps_arcs(network, turn) else None


class Orbits:
    """The orbits of the ranks under a symmetry: each rank alone where none was found.

    representatives: the least rank of every orbit. of[v]: that of rank v.
    """

    def __init__(self, rank_count: int, turn: Turn | None) -> None:
        self.of = list(range(rank_count))
        self._powers = [0] * rank_count
        self._turn = turn
        self._cycles: dict[int, tuple[int, ...]] = {}
        if turn is not None:
            self._walk(turn[:rank_count].tolist())
        self.representatives = [rank for rank in range(rank_count) if self.of[rank] == rank]

    def images(self, part: Iterable[int]) -> set[int]:
        """All ranks in an orbit that meets `part`, which may hold other vertices too."""
        met = {self.of[vertex] for vertex in part if vertex < len(self.of)}
        return {rank for rank, first in enumerate(self.of) if first in met}

    def moved(self, part: Sequence[int], rank: int) -> list[int]:
        """The image of `part` under the symmetry that takes the representative of `rank` to `rank`."""
        if self._turn is None or not self._powers[rank]:
            return list(part)
        image = np.array(part, dtype=np.int64)
        for _ in range(self._powers[rank]):
            image = self._turn[image]
        moved: list[int] = image.tolist()
        return moved

    def _walk(self, turn: list[int]) -> None:
        for first in range(len(turn)):
            rank, power = turn[first], 1
            while self.of[first] == first and rank != first:
                self.of[rank], self._powers[rank] = first, power
                rank, power = turn[rank], power + 1


def find_orbits(network: FlowNetwork, host_names: Sequence[str | None], demand: Sequence[int]) -> Orbits:
    """Orbits under a turn of the hosts that look alike; trivial ones for few ranks or where there is none."""
    turn = None
    if network.rank_count >= WORTH_A_SEARCH and None not in host_names[: network.rank_count]:
        turn = _turn_of(network, _alike(network, host_names, demand))
    return Orbits(network.rank_count, turn)


def orbit_ranks(network: FlowNetwork, host_names: Sequence[str | None], demand: Sequence[int]) -> Sequence[int]:
    """Ranks of which every other rank is an image."""
    return find_orbits(network, host_names, demand).representatives


def _alike(network: FlowNetwork, host_names: Sequence[str | None], demand: Sequence[int]) -> list[list[list[int]]]:
    """Hosts as lists of their vertices, in groups of equal demand, links inside and links to the fabric."""
    members: dict[str, list[int]] = {}
    place = [-1] * network.vertex_count
    for vertex, name in enumerate(host_names):
        if name is not None:
            rows = members.setdefault(name, [])
            place[vertex] = len(rows)
            rows.append(vertex)
    looks: dict[str | None, list[tuple[int, ...]]] = {name: [] for name in members}
    for vertex in range(network.rank_count):
        looks[host_names[vertex]].append((place[vertex], demand[vertex]))
    for tail, head, capacity in zip(network.tails, network.heads, network.capacities, strict=True):
        for end, other, way in ((tail, head, 0), (head, tail, 1)):
            if (name := host_names[end]) is not None:
                inside = host_names[other] == name
                # A fabric vertex stays where it is; of another host only the place matters, the proof tells the rest.
                goal = other if host_names[other] is None else place[other]
                looks[name].append((way, inside, place[end], goal, capacity))
    groups: dict[tuple[object, ...], list[list[int]]] = {}
    for name, vertices in members.items():
        groups.setdefault((len(vertices), tuple(sorted(looks[name]))), []).append(vertices)
    return list(groups.values())


def _turn_of(network: FlowNetwork, groups: list[list[list[int]]]) -> Turn | None:
    """Every host to the next of its group, if that keeps all arcs."""
    turn = np.arange(network.vertex_count, dtype=np.int64)
    for hosts in groups:
        table = np.array(hosts, dtype=np.int64)
        turn[table] = np.roll(table, -1, axis=0)
    if (turn == np.arange(len(turn))).all() or (turn[: network.rank_count] >= network.rank_count).any():
        return None
    return turn if _keeps_arcs(network, turn) else None


def _keeps_arcs(network: FlowNetwork, turn: Turn) -> bool:
    tails, heads = np.array(network.tails), np.array(network.heads)
    codes = tails * network.vertex_count + heads
    images = turn[tails] * network.vertex_count + turn[heads]
    place = np.searchsorted(codes, images)
    if (place >= len(codes)).any() or (codes[place] != images).any():
        return False
    capacities = np.array(network.capacities, dtype=object)
    return bool((capacities[place] == capacities).all())
