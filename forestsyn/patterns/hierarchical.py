"""Hierarchical patterns: hosts of equal size exchange rail by rail, and spread inside each host.

Rank g of host h is (h, g). A chunk rooted at (h, g) first travels along rail g, to all (h', g), and each of these
hands it to the other ranks of its host. Reductions take the same way backwards: first inside the hosts, then along
the rail. So what crosses hosts crosses once for each host and on the NIC of its rail. Broadcast and reduce have a
part of the message for each rail, which the root scatters inside its host first.

Along a rail the chunk takes a ring, a binomial tree (host numbers that differ in one bit, for powers of two), or goes
to all hosts at once; with two hosts these are the same. Inside a host it takes shortest ways (`stars`).

References. Hierarchical allreduce: Cowan et al., MSCCLang (ASPLOS 2023), section 2.
"""

from __future__ import annotations

from collections.abc import Callable

from forestsyn.ir.collective import Collective
from forestsyn.patterns.network import Network
from forestsyn.patterns.pattern import Omission, Pattern
from forestsyn.patterns.stars import shortest_trees
from forestsyn.patterns.trees import Parents, Tree, joinable, schedule_trees

NAME = "hierarchical"


def hierarchical_patterns(
    network: Network, collective: Collective, root: int | None
) -> tuple[list[Pattern], list[Omission]]:
    """`hierarchical` for two hosts; `hierarchical ring`, `… recursive`, `… all-pairs` for more."""
    sizes = [len(host) for host in network.hosts]
    if len(sizes) < 2 or max(sizes) == 1:
        return [], []
    if len(set(sizes)) > 1:
        return [], [Omission(name=NAME, reason=f"hosts have {min(sizes)} to {max(sizes)} ranks")]
    inside = _inside(network)
    if inside is None:
        return [], [Omission(name=NAME, reason="some ranks of a host reach each other only through other hosts")]
    patterns, omissions = [], []
    for name, wires in _rails(len(sizes)).items():
        trees = _trees(network, inside, root, wires)
        if joinable(network, collective, trees):
            patterns.append(Pattern(name=name, schedule=schedule_trees(network, collective, root, trees)))
        else:
            omissions.append(Omission(name=name, reason="ranks of equal number in two hosts are not joined"))
    return patterns, omissions


#: (host, root's host) → (parent when copying, parent when reducing), as hosts; never called for the root's host.
_Rail = Callable[[int, int], tuple[int, int]]


def _rails(count: int) -> dict[str, _Rail]:
    def ring(host: int, root: int) -> tuple[int, int]:
        return (host - 1) % count, (host + 1) % count

    def recursive(host: int, root: int) -> tuple[int, int]:
        distance = host ^ root
        parent = root ^ distance & (distance - 1)
        return parent, parent

    def all_pairs(host: int, root: int) -> tuple[int, int]:
        return root, root

    if count == 2:
        return {NAME: all_pairs}
    rails: dict[str, _Rail] = {f"{NAME} ring": ring}
    if count & (count - 1) == 0:
        rails[f"{NAME} recursive"] = recursive
    rails[f"{NAME} all-pairs"] = all_pairs
    return rails


def _inside(network: Network) -> list[Tree] | None:
    """By rank, its tree over the ranks of its host."""
    found: dict[int, Tree] = {}
    for host in network.hosts:
        trees = shortest_trees(network, Collective.ALLREDUCE, host, host)
        if trees is None:
            return None
        found |= {tree.root: tree for tree in trees}
    return [found[rank] for rank in range(network.rank_count)]


def _trees(network: Network, inside: list[Tree], root: int | None, rail: _Rail) -> list[Tree]:
    hosts = network.hosts
    place = {rank: (host, number) for host, members in enumerate(hosts) for number, rank in enumerate(members)}
    if root is None:
        return [_tree(hosts, inside, place[rank], rail) for rank in range(network.rank_count)]
    trees = []
    for number in range(len(hosts[0])):
        tree = _tree(hosts, inside, (place[root][0], number), rail)
        trees.append(Tree(root=root, outward=_turned(tree.outward, root), inward=_turned(tree.inward, root)))
    return trees


def _tree(hosts: tuple[tuple[int, ...], ...], inside: list[Tree], start: tuple[int, int], rail: _Rail) -> Tree:
    first, number = start
    outward, inward = [-1] * len(inside), [-1] * len(inside)
    for host, members in enumerate(hosts):
        head = members[number]
        for rank in members:
            outward[rank], inward[rank] = inside[head].outward[rank], inside[head].inward[rank]
        if host != first:
            copying, reducing = rail(host, first)
            outward[head], inward[head] = hosts[copying][number], hosts[reducing][number]
    return Tree(root=hosts[first][number], outward=outward, inward=inward)


def _turned(parents: Parents, root: int) -> list[int]:
    """The same tree with the edges between its root and `root` turned round."""
    result = list(parents)
    before, rank = -1, root
    while rank >= 0:
        result[rank], before, rank = before, rank, result[rank]
    return result
