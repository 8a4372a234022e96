"""Collectives through switches that add up and replicate (NVLS), and over the network between their domains.

Setting. A domain is the set of ranks that hang on one capable switch. Of MSCCL++'s operations on such a group,
`glres` reads a range of every member's buffer, added up by the switch, and stores the sum in all members of a second
group; `gstore` stores an own range in all members. The executor has no load that only reduces, but the two groups of
a `glres` are independent, so one that stores in a *narrow* group of two ranks comes close: the sum reaches the
rank that wants it, and a mate that ignores it. (Groups of one would do; whether drivers make them was not tried.)

Pattern, for H domains of n ranks each; rank (h, j) is number j of domain h. The message is cut into n·H pieces, and
piece (h, j) has rank (h, j) as its root. Reducing: in every domain g rank (g, j) adds up the pieces (·, j) of its
domain, then sends piece (h, j) to (h, j), which adds them up. Broadcasting: (h, j) sends piece (h, j) to all (g, j),
each of which stores it in its domain. With one domain no transfer is left, and an allreduce is one `glres`
into the whole domain. Broadcast and reduce take one step at the root, for one domain only: across hosts, trees over
the hosts reach the bound already.

Loads, as shares of the message S, on the link of each rank to its switch, up and down. The switch reads and writes
the own memory of the rank, too, over the same link.
- `glres` of all pieces into the domain: reading 1 up and 1/n down, storing 1/n up and 1 down.
- `glres` into narrow groups: reading 1 up and 1/n down, storing 1/n up and 2/n down. `gstore`: 1/n up and 1 down.
- between domains: (H − 1)/(H·n) out and in, in each phase.
So an allreduce on one domain takes (n + 1)/n each way where trees take 2(n − 1)/n: for n = 8 14/9 times faster. With
several domains it takes (n + 2)/n up and (n + 3)/n down. An allgather takes 1 and a reduce-scatter (n + 1)/n where
trees take (N − 1)/N, since they need not send a rank its own data: trees are the better choice there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from forestsyn.ir.collective import Collective
from forestsyn.ir.schedule import Piece
from forestsyn.ir.topology import Topology, VertexKind
from forestsyn.lowering.onesided.events import Transfer
from forestsyn.lowering.onesided.limits import CHANNELS_MAX


class Domain(msgspec.Struct, frozen=True):
    """ranks: those that hang on the switch, rising. switch: its vertex of the topology."""

    ranks: tuple[int, ...]
    switch: int

    def mates(self, rank: int) -> tuple[int, ...]:
        """The narrow group of `rank`, itself included: two ranks, the last three of an odd number."""
        place = self.ranks.index(rank)
        last = len(self.ranks) // 2 - 1
        pair = min(place // 2, last)
        return self.ranks[2 * pair : None if pair == last else 2 * pair + 2]


class Use(NamedTuple):
    """`chunks` that pass from one rank to another (source, target), or between one and the switch of its domain.

    step: when; a step begins when the one before has ended, unless data move in slices.
    """

    source: int | None
    target: int | None
    chunks: int
    step: int


class SwitchSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """What goes through the switches, and the transfers between domains.

    pieces: runs of `lanes` chunks. lanes: threadblocks that a rank needs to meet all of its domain; each handles
    one chunk of a piece. transfers: as those of a schedule along trees.
    """

    collective: Collective
    rank_count: int
    chunk_count: int
    root: int | None
    domains: tuple[Domain, ...]
    lanes: int
    pieces: tuple[Piece, ...]
    transfers: tuple[Transfer, ...]

    @property
    def narrow(self) -> bool:
        """Whether sums go to one rank at first, and not to the whole domain."""
        return self.collective.reduces and not (self.collective.broadcasts and len(self.domains) == 1)

    def domain(self, rank: int) -> Domain:
        """The domain of `rank`."""
        return next(domain for domain in self.domains if rank in domain.ranks)

    def handled(self, rank: int) -> tuple[int, ...]:
        """The pieces that `rank` adds up or stores, in the order of their chunks."""
        if self.root is not None:
            return (0,) if rank == self.root else ()
        place = self.domain(rank).ranks.index(rank)
        own = {domain.ranks[place] for domain in self.domains}
        return tuple(number for number, piece in enumerate(self.pieces) if piece.root in own)

    def uses(self) -> Iterator[Use]:
        """All that links carry."""
        last = 1 + max((transfer.level + 1 for transfer in self.transfers), default=0)
        for rank in range(self.rank_count):
            members = self.domain(rank).ranks
            chunks = sum(self.pieces[number].count for number in self.handled(rank))
            targets = self.domain(rank).mates(rank) if self.narrow else members
            if self.collective.reduces:
                yield from (Use(member, None, chunks, 0) for member in members)
                yield Use(None, rank, chunks, 0)
                yield Use(rank, None, chunks, 0)
                yield from (Use(None, target, chunks, 0) for target in targets)
            if self.collective.broadcasts and (self.narrow or not self.collective.reduces):
                yield Use(rank, None, chunks, last)
                yield from (Use(None, member, chunks, last) for member in members)
        for transfer in self.transfers:
            yield Use(transfer.source, transfer.destination, transfer.count, 1 + transfer.level)


def find_domains(topology: Topology) -> tuple[Domain, ...]:
    """The domains of `topology`, when each rank is in one and all are of equal size; else none."""
    vertex_ranks = {vertex: rank for rank, vertex in enumerate(topology.ranks)}
    links = {(link.tail, link.head) for link in topology.links}
    members: dict[int, list[int]] = {}
    for tail, head in sorted(links):
        switch = topology.vertices[head]
        able = switch.kind is VertexKind.SWITCH and switch.multicast and switch.reduce
        if able and tail in vertex_ranks and (head, tail) in links:
            members.setdefault(head, []).append(vertex_ranks[tail])
    found = sorted(
        (Domain(ranks=tuple(sorted(ranks)), switch=switch) for switch, ranks in members.items()),
        key=lambda domain: domain.ranks,
    )
    covered = sorted(rank for domain in found for rank in domain.ranks)
    sizes = {len(domain.ranks) for domain in found}
    if covered != list(range(topology.rank_count)) or len(sizes) != 1 or min(sizes) < 2:
        return ()
    return tuple(found)


def switch_schedule(collective: Collective, domains: Sequence[Domain], root: int | None) -> SwitchSchedule | None:
    """The pattern for `collective`; None where there is none: broadcast and reduce over several domains."""
    if collective.rooted and len(domains) > 1:
        return None
    ranks = sum(len(domain.ranks) for domain in domains)
    lanes = -(-(len(domains[0].ranks) - 1) // CHANNELS_MAX)
    roots = (root,) if collective.rooted else _order(collective, domains)
    pieces = tuple(
        Piece(first=number * lanes, count=lanes, root=rank) for number, rank in enumerate(roots) if rank is not None
    )
    return SwitchSchedule(
        collective=collective,
        rank_count=ranks,
        chunk_count=lanes * len(pieces),
        root=root,
        domains=tuple(domains),
        lanes=lanes,
        pieces=pieces,
        transfers=() if len(domains) == 1 else tuple(_transfers(collective, domains, pieces)),
    )


def _order(collective: Collective, domains: Sequence[Domain]) -> tuple[int, ...]:
    """The roots of the pieces, in the order of the message; for an allreduce so that each rank handles one run."""
    if collective.shards:
        return tuple(sorted(rank for domain in domains for rank in domain.ranks))
    return tuple(rank for column in zip(*(domain.ranks for domain in domains), strict=True) for rank in column)


def _transfers(collective: Collective, domains: Sequence[Domain], pieces: Sequence[Piece]) -> Iterator[Transfer]:
    columns = {rank: column for column in zip(*(domain.ranks for domain in domains), strict=True) for rank in column}
    phases = [True] * collective.reduces + [False] * collective.broadcasts
    number = 0
    for level, reduce in enumerate(phases):
        for index, piece in enumerate(pieces):
            for other in (rank for rank in columns[piece.root] if rank != piece.root):
                source, target = (other, piece.root) if reduce else (piece.root, other)
                yield Transfer(number, index, source, target, reduce, level, piece.first, piece.count, piece.root)
                number += 1
