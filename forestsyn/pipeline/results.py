"""What the pipeline returns: every stage's value by name, and the figures that follow from them, all exact.

Inverse rates are in s per GB of one rank's shard for allgather, reduce-scatter and allreduce (whose two phases add
up; where its roots are unequal, of the mean shard), of the whole message for broadcast and reduce. With the number W
of shards (that of the ranks, or 1),

    algbw = W / inverse_rate    and    busbw = algbw × busbw_factor.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import msgspec

from forestsyn.core import Choice
from forestsyn.core.shares import Shares
from forestsyn.ir.collective import Collective
from forestsyn.ir.forest import Forest, Optimum
from forestsyn.ir.network import Cut
from forestsyn.ir.plan import Plan
from forestsyn.ir.program import Program
from forestsyn.ir.schedule import Schedule
from forestsyn.ir.target import Target
from forestsyn.ir.topology import Topology
from forestsyn.ir.turns import peers_per_rank
from forestsyn.pipeline.switches import SwitchChoice
from forestsyn.verify import Report


class BoundResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The best that any schedule can reach; for an allreduce, any that reduces shards of any sizes and gathers them.

    optima: one per phase, in the order in which the phases run. shares: what the roots of an allreduce best take,
    else None. rank_cut: the least bandwidth that separates two ranks. root: the rank of broadcast and reduce, else
    None. seconds: time of each stage.
    """

    topology: Topology
    collective: Collective
    root: int | None
    optima: tuple[Optimum, ...]
    shares: Shares | None
    rank_cut: Cut
    seconds: Mapping[str, float]

    @property
    def weight(self) -> int:
        """W, the number of shards."""
        return 1 if self.collective.rooted else self.topology.rank_count

    @property
    def inverse_rate(self) -> Fraction:
        """s per GB of a shard, over all phases."""
        return self.weight * sum((1 / optimum.algbw for optimum in self.optima), Fraction(0))

    @property
    def algbw(self) -> Fraction:
        """GB/s, exact."""
        return self.weight / self.inverse_rate

    @property
    def bottleneck(self) -> Optimum:
        """The slower phase, whose cut is what holds the collective back."""
        return max(self.optima, key=lambda optimum: optimum.inverse_rate)

    @property
    def limit_algbw(self) -> Fraction:
        """What no schedule of any form exceeds, GB/s.

        An allreduce may overlap its phases, so its only limit here is that the whole message must cross every cut
        between two ranks. For the other collectives it is the optimum itself.
        """
        return self.rank_cut.bandwidth if self.collective is Collective.ALLREDUCE else self.algbw

    @property
    def ring_algbw(self) -> Fraction:
        """What rings could reach at most, GB/s.

        Every ring through all ranks leaves each set of vertices that separates two ranks, so all rings together
        move at most B, the bandwidth of the thinnest such cut. A ring of bandwidth B has busbw B.
        """
        return self.rank_cut.bandwidth / self.collective.busbw_factor(self.topology.rank_count)


class ForestResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, eq=False):
    """Verified trees for every phase.

    choice: how many unit trees each root has, and why. forests: one per phase, as `bound.optima`.
    loads: the time units that each forest really needs on its busiest link, as the verifier counted them.
    seconds: time of each stage, those of the bound included.
    """

    bound: BoundResult
    choice: Choice
    forests: tuple[Forest, ...]
    loads: tuple[Fraction, ...]
    seconds: Mapping[str, float]

    @property
    def inverse_rate(self) -> Fraction:
        """What the trees reach, in the unit of `BoundResult.inverse_rate`."""
        times = (load / forest.chunk_count for load, forest in zip(self.loads, self.forests, strict=True))
        return self.bound.weight * sum(times, Fraction(0))

    @property
    def algbw(self) -> Fraction:
        """What the trees reach, GB/s."""
        return self.bound.weight / self.inverse_rate

    @property
    def load_over_bound(self) -> Fraction:
        """The time of the trees over that of the bound; 1 is optimal."""
        return self.inverse_rate / self.bound.inverse_rate

    @property
    def tree_count(self) -> int:
        """Distinct trees of all phases."""
        return sum(forest.tree_count for forest in self.forests)

    @property
    def depth(self) -> int:
        """The longest chain of transfers; the phases of an allreduce follow one another."""
        return sum(forest.depth for forest in self.forests)

    @property
    def peers_per_rank_max(self) -> int:
        """The most distinct ranks that one rank exchanges data with, over all phases."""
        return int(peers_per_rank(self.forests).max())

    @property
    def compact(self) -> bool:
        """Whether some forest is kept as a base and its turn."""
        return any(forest.turn is not None for forest in self.forests)


class CompileResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, eq=False):
    """A proven program.

    schedule: along the trees. switches: what else an execution plan could use, and does if it holds a schedule.
    program: as lowered; a plan where the target is MSCCL++. text: the file's contents. report: what the verifier
    found in `text` after reading it back (remarks at most; a violation raises instead). seconds: time of
    each stage, those of the forest included.
    """

    forest: ForestResult
    target: Target
    schedule: Schedule
    switches: SwitchChoice | None
    program: Program | Plan
    text: str
    report: Report
    seconds: Mapping[str, float]

    @property
    def threadblocks_max(self) -> int:
        """The most threadblocks of one rank."""
        return max(len(rank) for rank in self._lengths)

    @property
    def steps_max(self) -> int:
        """The most steps of one threadblock."""
        return max(steps for rank in self._lengths for steps in rank)

    @property
    def _lengths(self) -> list[list[int]]:
        """The steps of each threadblock of each rank."""
        if isinstance(self.program, Plan):
            return [
                [len(block.steps) + sum(len(step.steps) for step in block.steps) for block in gpu.blocks]
                for gpu in self.program.gpus
            ]
        return [[len(block.steps) for block in rank.threadblocks] for rank in self.program.ranks]
