"""The collectives forestsyn compiles, and how message size and bandwidth relate in each.

Definitions follow nccl-tests (doc/PERFORMANCE.md): message size M counts the bytes of the whole collective
(the gathered buffer of an allgather, the input of a reduce-scatter), algbw = M / time, and
busbw = algbw × `busbw_factor`.
"""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction


class Collective(StrEnum):
    """A collective operation over ranks 0..N−1."""

    ALLGATHER = "allgather"
    REDUCE_SCATTER = "reduce-scatter"
    ALLREDUCE = "allreduce"
    BROADCAST = "broadcast"
    REDUCE = "reduce"

    @property
    def rooted(self) -> bool:
        """True when one rank is distinguished (broadcast, reduce)."""
        return self in (Collective.BROADCAST, Collective.REDUCE)

    @property
    def reduces(self) -> bool:
        """True when data moves along in-trees that combine contributions."""
        return self in (Collective.REDUCE_SCATTER, Collective.ALLREDUCE, Collective.REDUCE)

    @property
    def broadcasts(self) -> bool:
        """True when data moves along out-trees that copy it."""
        return self in (Collective.ALLGATHER, Collective.ALLREDUCE, Collective.BROADCAST)

    @property
    def shards(self) -> bool:
        """True when each rank owns an equal shard M/N, so that every root must have the same number of chunks."""
        return self in (Collective.ALLGATHER, Collective.REDUCE_SCATTER)

    def busbw_factor(self, ranks: int) -> Fraction:
        """busbw / algbw for `ranks` ranks."""
        if self is Collective.ALLREDUCE:
            return Fraction(2 * (ranks - 1), ranks)
        return Fraction(ranks - 1, ranks) if self.shards else Fraction(1)
