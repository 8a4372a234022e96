"""Hierarchical packing: whole clusters from one host and one circle.

Theory (tight sets, see `packing`). If a host X is tight, that is, if the capacity entering it is exactly the number
of trees rooted elsewhere, every such tree enters it once, and the packing falls apart into an outer problem, with X
contracted to one vertex, and an inner one on X alone, where each tree starts where it entered. A host with slack is
made tight by using only part of its ports. The outer problem, hosts around planes that do not block, has no cut but
the ports themselves, so its trees can be chosen freely: shallow ones, of few peers (`crossing`).

Method. 1. Find hosts, planes and ports (`cluster`). 2. Let every tree keep to the port it would like: the plane and
the place of its root (a rail). 3. Per kind of host, settle the counts and pack the inside (`inside`). 4. Lay the
trees from host to host. 5. Join both. Where all hosts are alike, one host's trees turned round the circle are the
whole forest; where a failed port makes one host unlike the others, what all have in common is tried (`levelling`).

Guarantee. None of its own: loads are within the ports and the hosts' inner capacities by construction and the
result is returned only then; None means that the cluster does not fit the scheme, and another way must be taken.

Complexity: O(units × hosts) array work and one inner packing per kind of host; no flow on the whole network.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from forestsyn.core.cluster import Cluster, find_cluster, groupings
from forestsyn.core.crossing import PEERS
from forestsyn.core.inside import Insides
from forestsyn.core.layout import Circle, Layout, Rows
from forestsyn.core.levelling import level_hosts
from forestsyn.core.symmetry import Turn, find_turn
from forestsyn.ir.network import FlowNetwork

#: Unit trees × hosts that are laid out at most; more are left to the general way.
SIZE_LIMIT = 40_000_000
#: Up to this many ranks the whole forest is written out; beyond, equal hosts are packed as a base and its turns.
WHOLE_RANKS = 2_048


def pack_cluster(
    network: FlowNetwork,
    capacities: Sequence[int],
    demand: Sequence[int],
    host_names: Sequence[str | None],
    partners: int | None = None,
) -> Rows | None:
    """demand[v] trees at every rank v, or None where the network is no cluster that this scheme can fill.

    partners: peers of a rank in other hosts, each way, at most; None for the usual number.
    """
    for names in groupings(network, capacities, host_names):
        rows = _pack_hosts(network, capacities, demand, names, partners)
        if rows is not None:
            return rows
    return None


def _pack_hosts(
    network: FlowNetwork,
    capacities: Sequence[int],
    demand: Sequence[int],
    names: Sequence[str | None],
    partners: int | None,
) -> Rows | None:
    cluster = find_cluster(network, capacities, names)
    if cluster is None:
        return None
    turn = None
    if network.rank_count > WHOLE_RANKS:
        turn = find_turn(network, names, demand)
        if turn is None and (levelled := level_hosts(cluster, demand, network.vertex_count)) is not None:
            rows = _laid_out(*levelled, demand, partners)
            if rows is not None:
                return rows
    return _laid_out(cluster, turn, demand, partners)


def _laid_out(cluster: Cluster, turn: Turn | None, demand: Sequence[int], partners: int | None) -> Rows | None:
    """The whole forest, or with a turn one host's part of it."""
    written = sum(demand) if turn is None else sum(demand) // len(cluster.hosts)
    if written * len(cluster.hosts) > SIZE_LIMIT or sum(demand) > SIZE_LIMIT:
        return None
    layout = Layout(cluster, demand) if turn is None else Circle(cluster, demand)
    if not layout.enter(Insides(partners)):
        return None
    rows = layout.rows(PEERS if partners is None else (partners,))
    if rows is None or turn is None:
        return rows
    return msgspec.structs.replace(rows, turn=turn, turns=len(cluster.hosts))
