"""Schedules: which chunk moves when between which ranks, bound to no threadblock.

The message is C equal chunks. Chunk c of an allgather or reduce-scatter belongs to rank c // k (k = C/N); in an
allreduce each root owns a contiguous run of chunks in rank order; in broadcast and reduce the one root owns all.
A *piece* is a run of chunks that always travel together, because they follow the same trees.
"""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

from forestsyn.ir.collective import Collective


class Piece(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Chunks first .. first+count−1, all rooted at rank `root`."""

    first: int
    count: int
    root: int


class Schedule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, eq=False):
    """M transfers as arrays, topologically ordered; transfer t only depends on transfers before it.

    piece, source, destination: int32[M]. A transfer sends `pieces[piece]` from rank `source` to `destination`.
    reduce: bool[M]; True adds the incoming piece to what the destination holds, False replaces it.
    level: int32[M]; length of the longest chain of transfers before it (0 = can start at once).
    route: int32[M]; index into `routes`, the physical paths as topology vertex indices.
    dependency_starts: int32[M+1], dependencies: int32[...]; transfer t needs
    dependencies[dependency_starts[t] : dependency_starts[t+1]] to have arrived at its source.
    root: the distinguished rank of broadcast and reduce, else None.
    """

    collective: Collective
    rank_count: int
    chunk_count: int
    root: int | None
    pieces: tuple[Piece, ...]
    piece: npt.NDArray[np.int32]
    source: npt.NDArray[np.int32]
    destination: npt.NDArray[np.int32]
    reduce: npt.NDArray[np.bool_]
    level: npt.NDArray[np.int32]
    route: npt.NDArray[np.int32]
    routes: tuple[tuple[int, ...], ...]
    dependency_starts: npt.NDArray[np.int32]
    dependencies: npt.NDArray[np.int32]

    @property
    def transfer_count(self) -> int:
        """M, the number of transfers."""
        return len(self.piece)

    @property
    def depth(self) -> int:
        """The number of transfers in the longest chain."""
        return int(self.level.max()) + 1 if len(self.level) else 0

    def dependencies_of(self, transfer: int) -> npt.NDArray[np.int32]:
        """The transfers that must have arrived before `transfer` may start."""
        return self.dependencies[self.dependency_starts[transfer] : self.dependency_starts[transfer + 1]]
