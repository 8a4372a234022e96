"""Turns: equal hosts round a circle.

Theory. An automorphism of the network maps arcs to arcs of equal capacity, so the maximum flow from all roots to
rank r equals that to the image of r, provided the demand is mapped onto itself too: of every orbit of ranks one
needs a flow.

Method. Guess one automorphism: number the hosts in the order of their ranks, and map the i-th vertex of each host
to the i-th vertex of the next, the last host to the first, and every fabric vertex to itself. The guess is proved
by checking every arc. A cluster of B equal hosts then has as many orbits as one host has ranks, whatever B is.

Guarantee. A wrong guess is found out and costs a pass over the arcs, nothing else. Exactness: integers.
"""

from __future__ import annotations

from collections.abc import Sequence

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


def orbit_ranks(network: FlowNetwork, host_names: Sequence[str | None], demand: Sequence[int]) -> Sequence[int]:
    """Ranks of which every other rank is an image: those of one host where hosts are equal, else all."""
    everyone = range(network.rank_count)
    if network.rank_count < WORTH_A_SEARCH or find_turn(network, host_names, demand) is None:
        return everyone
    return [rank for rank in everyone if host_names[rank] == host_names[0]]


def _keeps_arcs(network: FlowNetwork, turn: Turn) -> bool:
    tails, heads = np.array(network.tails), np.array(network.heads)
    codes = tails * network.vertex_count + heads
    images = turn[tails] * network.vertex_count + turn[heads]
    place = np.searchsorted(codes, images)
    if (place >= len(codes)).any() or (codes[place] != images).any():
        return False
    capacities = np.array(network.capacities, dtype=object)
    return bool((capacities[place] == capacities).all())
