"""The certificate of a compact forest: its turn maps every link in use to a link, and so on round.

A permutation g of the vertices that maps ranks to ranks, and each link that some image of the base uses to a link,
maps trees over these links to trees over these links. The images of the base under g⁰ … g^(turns−1) need no check
of their own, only their sums: an element of a cycle of length L is met turns / L times by each element of that cycle,
so

    load(link) = turns / L × Σ base loads of the links on its cycle,

and the trees at a rank count in the same way. This needs turns to be the order of g, a multiple of every L. Links
that no tree uses may have no image, and bandwidths may differ round a cycle: each link's own is compared with its
load.
"""

from __future__ import annotations

from itertools import pairwise
from math import lcm
from typing import Any

import numpy as np
import numpy.typing as npt

from forestsyn.ir.forest import Forest
from forestsyn.ir.topology import Topology
from forestsyn.ir.turns import Cycles, cycles_of
from forestsyn.verify.certificate import MAXIMUM_VIOLATIONS
from forestsyn.verify.links import find_links, link_ends

_Array = npt.NDArray[Any]


def turn_violations(topology: Topology, forest: Forest) -> list[str]:
    """What keeps the images of `forest` under its turn, of order `turns`, from being trees over the links."""
    if forest.turn is None:
        return [] if forest.turns == 1 else [f"it has {forest.turns} turns and no turn, expected 1"]
    count, turn = len(topology.vertices), forest.turn
    if turn.shape != (count,) or turn.dtype.kind != "i":
        return [f"turn is {turn.dtype}{list(turn.shape)}, expected integers of shape [{count}]"]
    if not np.array_equal(np.sort(turn), np.arange(count)):
        missing = np.setdiff1d(np.arange(count), turn)[0]
        return [f"the turn is not a permutation: it maps nothing to {topology.vertices[missing].name}"]
    violations = _displaced_ranks(topology, turn) + _displaced_links(topology, forest)
    order = lcm(*cycles_of(turn).lengths.tolist())
    if order != forest.turns:
        violations.append(f"it has {forest.turns} turns, the turn is the identity after {order}")
    return violations


def whole_sums(forest: Forest, cycles: Cycles, base: _Array) -> _Array:
    """The sums of all images, for each element of `cycles`, from those of the base; the type of `base` must hold
    them."""
    totals: _Array = np.zeros(len(cycles.lengths), dtype=base.dtype)
    np.add.at(totals, cycles.numbers, base)
    sums: _Array = (totals * (forest.turns // cycles.lengths).astype(base.dtype))[cycles.numbers]
    return sums


def rank_cycles(topology: Topology, turn: _Array) -> Cycles:
    """The cycles of ranks under a turn that is proved."""
    rank_of: _Array = np.zeros(len(topology.vertices), dtype=np.int64)
    rank_of[list(topology.ranks)] = np.arange(topology.rank_count)
    return cycles_of(rank_of[turn[list(topology.ranks)]])


def link_cycles(topology: Topology, forest: Forest) -> Cycles:
    """The cycles of the links in use under a turn that is proved; a link that is not in use is a cycle of its own."""
    images, used = _images_in_use(topology, forest)
    return cycles_of(np.where(used, images, np.arange(len(images))))


def _images_in_use(topology: Topology, forest: Forest) -> tuple[_Array, _Array]:
    """int64[links], the image of each link under the turn, −1 for none; bool[links], whether an image of a tree uses
    it. The turn is injective, so links in use that all have an image are a permutation of themselves."""
    assert forest.turn is not None
    tails, heads = link_ends(topology)
    images = find_links(topology, forest.turn[tails], forest.turn[heads])
    used = np.zeros(len(images), dtype=bool)
    hops = [ends for route in forest.routes for ends in pairwise(route)]
    pairs: _Array = np.array(hops, dtype=np.int64).reshape(-1, 2)
    found = find_links(topology, pairs[:, 0], pairs[:, 1])
    border = np.unique(found[found >= 0])
    while len(border):
        used[border] = True
        following = np.unique(images[border])
        following = following[following >= 0]
        border = following[~used[following]]
    return images, used


def _displaced_ranks(topology: Topology, turn: _Array) -> list[str]:
    is_rank = np.zeros(len(topology.vertices), dtype=bool)
    is_rank[list(topology.ranks)] = True
    names = [vertex.name for vertex in topology.vertices]
    return [
        f"the turn maps rank {names[vertex]} to {names[turn[vertex]]}, which is not a rank"
        for vertex in np.flatnonzero(is_rank & ~is_rank[turn])[:MAXIMUM_VIOLATIONS].tolist()
    ]


def _displaced_links(topology: Topology, forest: Forest) -> list[str]:
    assert forest.turn is not None
    images, used = _images_in_use(topology, forest)
    violations = []
    for number in np.flatnonzero(used & (images < 0))[:MAXIMUM_VIOLATIONS].tolist():
        link, turn = topology.links[number], forest.turn
        ends = f"{topology.vertices[link.tail].name} -> {topology.vertices[link.head].name}"
        to = f"{topology.vertices[turn[link.tail]].name} -> {topology.vertices[turn[link.head]].name}"
        violations.append(f"the turn maps the link {ends}, which is in use, to {to}, which does not exist")
    return violations
