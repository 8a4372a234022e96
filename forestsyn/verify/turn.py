"""The certificate of a compact forest: its turn is an automorphism of the topology.

A permutation g of the vertices that maps ranks to ranks and links to links of equal bandwidth maps a tree over the
links to a tree over the links. The images of the base under g⁰ … g^(turns−1) then need no check of their own, only
their sums: an element of a cycle of length L is met turns / L times by each element of that cycle, so

    load(link) = turns / L × Σ base loads of the links on its cycle,

and the trees at a rank count in the same way. This needs turns to be the order of g, a multiple of every L.
"""

from __future__ import annotations

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
    """What keeps the turn of `forest` from being an automorphism of `topology` of order `turns`."""
    if forest.turn is None:
        return [] if forest.turns == 1 else [f"it has {forest.turns} turns and no turn, expected 1"]
    count, turn = len(topology.vertices), forest.turn
    if turn.shape != (count,) or turn.dtype.kind != "i":
        return [f"turn is {turn.dtype}{list(turn.shape)}, expected integers of shape [{count}]"]
    if not np.array_equal(np.sort(turn), np.arange(count)):
        missing = np.setdiff1d(np.arange(count), turn)[0]
        return [f"the turn is not a permutation: it maps nothing to {topology.vertices[missing].name}"]
    violations = _displaced_ranks(topology, turn) + _displaced_links(topology, turn)
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


def link_cycles(topology: Topology, turn: _Array) -> Cycles:
    """The cycles of links under a turn that is proved."""
    tails, heads = link_ends(topology)
    return cycles_of(find_links(topology, turn[tails], turn[heads]))


def _displaced_ranks(topology: Topology, turn: _Array) -> list[str]:
    is_rank = np.zeros(len(topology.vertices), dtype=bool)
    is_rank[list(topology.ranks)] = True
    names = [vertex.name for vertex in topology.vertices]
    return [
        f"the turn maps rank {names[vertex]} to {names[turn[vertex]]}, which is not a rank"
        for vertex in np.flatnonzero(is_rank & ~is_rank[turn])[:MAXIMUM_VIOLATIONS].tolist()
    ]


def _displaced_links(topology: Topology, turn: _Array) -> list[str]:
    tails, heads = link_ends(topology)
    images = find_links(topology, turn[tails], turn[heads])
    classes: dict[object, int] = {}
    bandwidths = np.array([classes.setdefault(link.bandwidth, len(classes)) for link in topology.links])
    violations = []
    for number in np.flatnonzero((images < 0) | (bandwidths[images] != bandwidths))[:MAXIMUM_VIOLATIONS].tolist():
        link, image = topology.links[number], int(images[number])
        ends = f"{topology.vertices[link.tail].name} -> {topology.vertices[link.head].name}"
        to = f"{topology.vertices[turn[link.tail]].name} -> {topology.vertices[turn[link.head]].name}"
        fault = "which does not exist" if image < 0 else f"which has {topology.links[image].bandwidth} GB/s"
        violations.append(f"the turn maps the link {ends} of {link.bandwidth} GB/s to {to}, {fault}")
    return violations
