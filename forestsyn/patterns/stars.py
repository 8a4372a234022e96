"""All-pairs patterns: every rank talks to every other directly, or along shortest ways where it cannot.

Two-shot: each root collects its part from all ranks at once and hands it out to all at once. On broadcast and reduce
the message is first scattered over all ranks, each of which then hands its part to the others.

Where not all pairs of ranks are joined directly, each root uses a tree of shortest ways over other ranks, of
least depth therefore. Among equal relays a rank takes the one whose ways are the least loaded: on rail
networks GPUs reach another host's GPUs through the neighbour on the same rail.
"""

from __future__ import annotations

from collections.abc import Sequence

from forestsyn.ir.collective import Collective
from forestsyn.patterns.network import Loads, Network
from forestsyn.patterns.pattern import Omission, Pattern
from forestsyn.patterns.trees import Tree, schedule_trees

TWO_SHOT = "all-pairs two-shot"
ONE_PHASE = "all-pairs"
SHORTEST = "shortest ways"


def star_patterns(network: Network, collective: Collective, root: int | None) -> tuple[list[Pattern], list[Omission]]:
    """All-pairs where all ranks are joined directly, else trees of shortest ways."""
    roots = range(network.rank_count) if root is None else (root,)
    trees = shortest_trees(network, collective, roots, range(network.rank_count))
    if trees is None:
        return [], [Omission(name=SHORTEST, reason="some ranks reach each other only one way")]
    if not network.complete:
        pattern = Pattern(name=SHORTEST, schedule=schedule_trees(network, collective, root, trees))
        return [pattern], [Omission(name=ONE_PHASE, reason="some ranks reach each other only through ranks")]
    name = TWO_SHOT if collective is Collective.ALLREDUCE else ONE_PHASE
    patterns = [Pattern(name=name, schedule=schedule_trees(network, collective, root, trees))]
    if root is not None and network.rank_count > 2:
        relayed = [_relayed(network.rank_count, root, relay) for relay in range(network.rank_count)]
        patterns.append(Pattern(name=TWO_SHOT, schedule=schedule_trees(network, collective, root, relayed)))
    return patterns, []


def shortest_trees(
    network: Network, collective: Collective, roots: Sequence[int], members: Sequence[int]
) -> list[Tree] | None:
    """For each root a tree of least depth over `members`, where others have no parent; None if one is not reached."""
    outward, inward = Loads(network), Loads(network)
    trees = []
    for root in roots:
        away = _grow(network, outward, root, members, inwards=False) if collective.broadcasts else None
        back = _grow(network, inward, root, members, inwards=True) if collective.reduces else None
        if (collective.broadcasts and away is None) or (collective.reduces and back is None):
            return None
        trees.append(Tree(root=root, outward=away or back or (), inward=back or away or ()))
    return trees


def _grow(network: Network, loads: Loads, root: int, members: Sequence[int], *, inwards: bool) -> list[int] | None:
    """Level by level; each rank joins the rank of the last level whose path to it is the least loaded."""
    parents = [-1] * network.rank_count
    left = [rank for rank in members if rank != root]
    border = [root]
    while left:
        following = []
        for rank in left:
            choices = []
            for parent in border:
                best = loads.best(rank, parent) if inwards else loads.best(parent, rank)
                if best is not None:
                    ahead = (parent - rank) % network.rank_count
                    choices.append((best[0], len(best[1].links), ahead, parent, best[1]))
            if choices:
                *_, parents[rank], path = min(choices, key=lambda choice: choice[:4])
                loads.add(path)
                following.append(rank)
        if not following:
            return None
        joined = set(following)
        left = [rank for rank in left if rank not in joined]
        border = following
    return parents


def _relayed(rank_count: int, root: int, relay: int) -> Tree:
    """root — relay — all others."""
    parents = [relay] * rank_count
    parents[relay] = root
    parents[root] = -1
    return Tree(root=root, outward=parents, inward=parents)
