"""Optimum and forest: what the core proves and what it packs.

The packing problem in one form for every collective. Root v must have `demand[v]` unit trees, each spanning all
ranks. Allgather and reduce-scatter ask for the same k at every root, broadcast and reduce for k at one root, and
an allreduce may hand out any C chunks to the roots (`demand` sums to C). During `time_units` U every link moves
U × bandwidth; a unit tree loads each of its links by 1, so a forest is within the links when

    load(e) ≤ U × bandwidth(e)    for every physical link e,

and the collective of C = Σ demand chunks takes the time U per GB of chunk: algbw = C / U GB/s for one phase.
"""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction

import msgspec
import numpy as np
import numpy.typing as npt

from forestsyn.ir.network import Cut
from forestsyn.ir.trees import tree_depths


class Direction(StrEnum):
    """OUT: trees carry copies from the root to every rank. IN: contributions from every rank to the root."""

    OUT = "out"
    IN = "in"


class Optimum(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The best rate of one phase, with its certificate.

    weights: root weight of each rank (1 each for allgather, 1 at the root only for broadcast).
    inverse_rate: 1/x*, s per GB of root weight; equals `cut.inverse_rate`, which proves the upper bound.
    trees_per_root: the smallest k for which k trees per unit of weight reach the optimum exactly.
    direction: OUT counts the bandwidth that leaves `cut.inside`, IN the bandwidth that enters it.
    """

    direction: Direction
    weights: tuple[int, ...]
    inverse_rate: Fraction
    trees_per_root: int
    cut: Cut

    @property
    def algbw(self) -> Fraction:
        """GB/s of the phase: total weight × x*."""
        return sum(self.weights) / self.inverse_rate


class Forest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, eq=False):
    """Trees over N ranks, as arrays. T rows, sorted by (root, descending multiplicity, parents).

    roots: int32[T]. multiplicities: int64[T], identical unit trees a row stands for.
    parents: int32[T, N], the rank next to v towards the root; −1 at the root. For direction OUT data moves
    parent → v, for IN v → parent.
    routes: every physical path in use, as topology vertex indices from its sending rank to its receiving rank.
    edge_routes: int32[T, N], the index in `routes` of the path of the edge at v; −1 at the root.
    demand: unit trees per root. time_units: U, exact.
    turn: int32[V], a permutation of topology vertices that maps ranks to ranks and links in use to links, or None.
    turns: its order. With a turn the rows are a base: the forest is their images under its powers 0 to turns − 1,
    and is never written out, so that memory grows with N and not with N².
    """

    direction: Direction
    rank_count: int
    demand: tuple[int, ...]
    time_units: Fraction
    roots: npt.NDArray[np.int32]
    multiplicities: npt.NDArray[np.int64]
    parents: npt.NDArray[np.int32]
    routes: tuple[tuple[int, ...], ...]
    edge_routes: npt.NDArray[np.int32]
    turn: npt.NDArray[np.int32] | None = None
    turns: int = 1

    @property
    def tree_count(self) -> int:
        """The number of distinct trees: T, times the turns where there are some."""
        return len(self.roots) * self.turns

    @property
    def chunk_count(self) -> int:
        """C, the number of unit trees."""
        return sum(self.demand)

    @property
    def algbw(self) -> Fraction:
        """GB/s of this phase."""
        return self.chunk_count / self.time_units

    def depths(self) -> npt.NDArray[np.int32]:
        """int32[T, N]: the number of transfers between each rank and the root of each tree."""
        return tree_depths(self.parents)

    @property
    def depth(self) -> int:
        """The longest chain of transfers in any tree."""
        return int(self.depths().max())
