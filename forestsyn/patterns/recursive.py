"""Recursive patterns: log₂ N rounds of pairs, with the ranks in an order in which all pairs are joined.

Recursive doubling and halving need the ranks to be numbered like the corners of a hypercube, those that differ in one
bit joined. Rank order does on most machines; on direct networks (a torus of four times four is a hypercube) an order
is searched. Other numbers of ranks use Bruck's rounds, in rank order. Broadcast and reduce use the binomial tree of
the same pairs.
"""

from __future__ import annotations

from forestsyn.ir.collective import Collective
from forestsyn.patterns.exchange import Exchange, Form, talking_pairs
from forestsyn.patterns.network import Network
from forestsyn.patterns.pattern import NOT_JOINED, Omission, Pattern
from forestsyn.patterns.trees import Tree, joinable, schedule_trees

BINOMIAL = "binomial tree"
#: Ranks up to which everyone sending everything to all is worth a program.
_ONE_SHOT_RANKS_MAXIMUM = 32
#: Partial orders that the search for a hypercube looks at.
_ORDERS_MAXIMUM = 4_000

_NAMES = {
    (Form.DOUBLING, Collective.ALLGATHER): "recursive doubling",
    (Form.DOUBLING, Collective.REDUCE_SCATTER): "recursive halving",
    (Form.DOUBLING, Collective.ALLREDUCE): "recursive halving and doubling",
    (Form.BRUCK, Collective.ALLGATHER): "bruck",
    (Form.BRUCK, Collective.REDUCE_SCATTER): "bruck",
    (Form.BRUCK, Collective.ALLREDUCE): "bruck two-phase",
    (Form.VECTORS, Collective.ALLREDUCE): "recursive doubling",
    (Form.ONE_SHOT, Collective.ALLREDUCE): "all-pairs one-shot",
    (Form.TWO_LEVEL, Collective.ALLREDUCE): "hierarchical one-shot",
}


def recursive_patterns(
    network: Network, collective: Collective, root: int | None
) -> tuple[list[Pattern], list[Omission]]:
    """Recursive doubling and halving or Bruck, and for an allreduce of whole messages also one-shot."""
    order = _hypercube_order(network)
    if root is not None:
        return _binomial(network, collective, root, order)
    ranks = tuple(range(network.rank_count))
    if network.rank_count & (network.rank_count - 1) == 0:
        forms = {Form.DOUBLING: order, Form.VECTORS: order}
    else:
        forms = {Form.BRUCK: ranks, Form.VECTORS: ranks}
    if network.rank_count <= _ONE_SHOT_RANKS_MAXIMUM:
        forms[Form.ONE_SHOT] = ranks
    sizes = {len(host) for host in network.hosts}
    size = sizes.pop() if len(sizes) == 1 and 1 < len(network.hosts) < network.rank_count else 0
    if size:
        forms[Form.TWO_LEVEL] = tuple(rank for host in network.hosts for rank in host)
    patterns, omissions = [], []
    for form, own in forms.items():
        if (form, collective) not in _NAMES:
            continue
        name = _NAMES[form, collective]
        exchange = own and Exchange(
            form=form, collective=collective, order=own, host_size=size if form is Form.TWO_LEVEL else 0
        )
        if exchange and all(network.paths(*pair) for pair in talking_pairs(exchange)):
            patterns.append(Pattern(name=name, exchange=exchange))
        else:
            omissions.append(Omission(name=name, reason=NOT_JOINED))
    return patterns, omissions


def _binomial(
    network: Network, collective: Collective, root: int, order: tuple[int, ...] | None
) -> tuple[list[Pattern], list[Omission]]:
    """Position p is joined to p without its highest bit, counted from the root; −1 at the root."""
    count = network.rank_count
    if order is not None:
        own = order.index(root)
        ranks = [order[position ^ own] for position in range(count)]
    else:
        ranks = [(root + position) % count for position in range(count)]
    parents = [-1] * count
    for position in range(1, count):
        parents[ranks[position]] = ranks[position ^ 1 << (position.bit_length() - 1)]
    trees = [Tree(root=root, outward=parents, inward=parents)]
    if not joinable(network, collective, trees):
        return [], [Omission(name=BINOMIAL, reason=NOT_JOINED)]
    return [Pattern(name=BINOMIAL, schedule=schedule_trees(network, collective, root, trees))], []


def _hypercube_order(network: Network) -> tuple[int, ...] | None:
    """An order of a power of two ranks in which positions that differ in one bit are joined."""
    count = network.rank_count
    if count & (count - 1):
        return None
    order: list[int] = []
    used = [False] * count
    left = _ORDERS_MAXIMUM

    def fits(rank: int) -> bool:
        position = len(order)
        below = [position ^ 1 << bit for bit in range(position.bit_length()) if position >> bit & 1]
        return all(network.joined(rank, order[other]) for other in below)

    def extend() -> bool:
        nonlocal left
        if len(order) == count:
            return True
        position = len(order)
        for turn in range(count):
            rank = (position + turn) % count
            if used[rank] or left <= 0:
                continue
            left -= 1
            if fits(rank):
                used[rank] = True
                order.append(rank)
                if extend():
                    return True
                order.pop()
                used[rank] = False
        return False

    return tuple(order) if extend() else None
