"""Double binary trees: two trees, each with half of the data, in which nearly every node is a leaf once.

A binary tree over n nodes uses half of its nodes' sending only, for leaves send nothing on. A second tree whose inner
nodes are the leaves of the first uses the other half, so the pair reaches nearly full bandwidth at a depth of
⌈log₂ n⌉ + 1. The first tree is in order: the parent of i clears the lowest set bit of i and sets the next one, where
that is below n; node 0 is above the top. The second is the mirror image for even n, and shifted by
one for odd n, where node 0 alone is an inner node of both.

Across hosts the nodes are hosts, as in NCCL: the trees join one GPU of each, and inside a host a chain goes on from
it. Pair r of c uses the r-th GPU of each host and thereby, on rail networks, its own NICs.

References. Sanders, Speck, Träff, Parallel Computing 35 (2009); NVIDIA/nccl, src/graph/trees.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from forestsyn.ir.collective import Collective
from forestsyn.patterns.hamiltonian import find_row
from forestsyn.patterns.network import Loads, Network
from forestsyn.patterns.pattern import NOT_JOINED, Omission, Pattern
from forestsyn.patterns.trees import Tree, joinable, schedule_trees

NAME = "double binary tree"
#: Pairs of trees at most; more channels than rails add nothing.
_PAIRS_MAXIMUM = 8


def double_binary_trees(
    network: Network, collective: Collective, root: int | None
) -> tuple[list[Pattern], list[Omission]]:
    """One pair, and as many as the smallest host has GPUs (a power of two), of allreduce, broadcast and reduce."""
    if collective.shards:
        return [], []
    hosts = network.hosts if len(network.hosts) > 1 else tuple((rank,) for rank in range(network.rank_count))
    smallest = min(len(host) for host in hosts)
    most = min(1 << (smallest.bit_length() - 1), _PAIRS_MAXIMUM)
    patterns: list[Pattern] = []
    for pairs in sorted({1, most}):
        trees = _trees(network, hosts, root, pairs)
        if trees is None or not joinable(network, collective, trees):
            return patterns, [Omission(name=NAME, reason=NOT_JOINED)]
        name = NAME if pairs == 1 else f"{NAME} x{pairs}"
        patterns.append(Pattern(name=name, schedule=schedule_trees(network, collective, root, trees)))
    return patterns, []


def double_tree(count: int, *, rooted: bool) -> tuple[list[int], list[int]]:
    """Parents of the nodes 0 … count−1 in both trees, −1 at the root. rooted: node 0 is the root of both."""
    first = [_parent(node, count) for node in range(count)]
    if not rooted:
        if count % 2 == 0:
            return first, _renamed(first, [count - 1 - node for node in range(count)])
        return first, _renamed(first, [(node + 1) % count for node in range(count)])
    if count % 2:
        return first, _renamed(first, [0, *range(count - 1, 0, -1)])
    return first, _renamed(first, [0, *range(2, count), 1])


def _parent(node: int, count: int) -> int:
    if node == 0:
        return -1
    lowest = node & -node
    above = (node ^ lowest) | lowest << 1
    return above if above < count else node ^ lowest


def _renamed(parents: Sequence[int], names: Sequence[int]) -> list[int]:
    """The tree in which node i is called names[i]."""
    result = [-1] * len(parents)
    for node, parent in enumerate(parents):
        result[names[node]] = names[parent] if parent >= 0 else -1
    return result


def _trees(network: Network, hosts: Sequence[Sequence[int]], root: int | None, pairs: int) -> list[Tree] | None:
    order = list(range(len(hosts)))
    if root is not None:
        first = next(host for host in order if root in hosts[host])
        order = order[first:] + order[:first]
    trees = []
    for number in range(pairs):
        for shape in double_tree(len(hosts), rooted=root is not None):
            above = {order[node]: order[parent] if parent >= 0 else -1 for node, parent in enumerate(shape)}
            tree = _expand(network, hosts, above, root, number)
            if tree is None:
                return None
            trees.append(tree)
    return trees


def _expand(
    network: Network, hosts: Sequence[Sequence[int]], above: dict[int, int], root: int | None, number: int
) -> Tree | None:
    """The tree over hosts as one over ranks: a head in each host, and a chain behind it."""
    parents = [-1] * network.rank_count
    heads: dict[int, int] = {}
    top = next(host for host, parent in above.items() if parent < 0)
    for host in _downwards(above, top):
        members = hosts[host]
        choices = [members[(number + turn) % len(members)] for turn in range(len(members))]
        parent = heads.get(above[host], -1)
        head = next((rank for rank in choices if parent < 0 or network.joined(parent, rank)), None)
        if head is None:
            return None
        heads[host] = head
        parents[head] = parent
        start = root if root is not None and host == top else head
        chain = _chain(network, members, start, head)
        if chain is None:
            return None
        for before, rank in pairwise(chain):
            parents[rank] = before
    end = root if root is not None else heads[top]
    return Tree(root=end, outward=parents, inward=parents)


def _downwards(above: dict[int, int], top: int) -> list[int]:
    order = [top]
    for host in order:
        order += [child for child in sorted(above) if above[child] == host]
    return order


def _chain(network: Network, members: Sequence[int], start: int, head: int) -> list[int] | None:
    """All members in a row from `start`; the head comes second where it is not the first."""
    if start == head:
        row = find_row(network, Loads(network), members, start, None)
        return row.ranks if row else None
    if not network.joined(start, head):
        return None
    rest = [rank for rank in members if rank != start]
    row = find_row(network, Loads(network), rest, head, None)
    return [start, *row.ranks] if row else None
