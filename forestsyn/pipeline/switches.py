"""Trees, or switches that add up and replicate: which of the two an execution plan uses, by the load of the links.

Both are judged alike, by exact loads. Where data move in slices, steps overlap, and the time is that of the busiest
link. Where they move whole, each step begins when the one before has ended (a level of the trees, a sum over a
domain), and the times of the busiest link in each step add up. Both are limits, not predictions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Literal

import msgspec

from forestsyn.errors import UnsupportedError
from forestsyn.ir.collective import Collective
from forestsyn.ir.program import Protocol
from forestsyn.ir.schedule import Schedule
from forestsyn.ir.target import MSCCLPP, Target
from forestsyn.ir.topology import Topology, VertexKind
from forestsyn.lowering.onesided import SwitchSchedule, find_domains, switch_schedule
from forestsyn.patterns.network import Network

Nvls = Literal["auto", "on", "off"]
_Move = tuple[int, tuple[int, ...], int]  # step, path, chunks


class SwitchChoice(msgspec.Struct, frozen=True, kw_only=True):
    """schedule: through the switches, with `ports`, the pairs of ranks whose memory is not mapped; None for trees.

    algbw: GB/s by the busiest link through the switches, None where that cannot be. trees_algbw: the same for the
    trees. overlapping: whether steps overlap in both. reason: why the one or the other was taken.
    """

    schedule: SwitchSchedule | None
    ports: frozenset[tuple[int, int]]
    algbw: Fraction | None
    trees_algbw: Fraction
    overlapping: bool
    reason: str


def choose_switches(
    topology: Topology,
    collective: Collective,
    root: int | None,
    trees: Schedule,
    *,
    target: Target,
    protocol: Protocol,
    nvls: Nvls,
    overlapping: bool,
) -> SwitchChoice:
    """What the plan of `collective` uses: `auto` takes switches where their busiest links take less time.

    Raises UnsupportedError where switches are asked for and cannot be used.
    """
    trees_algbw = link_algbw(topology, tree_moves(trees), trees.chunk_count, overlapping=overlapping)
    obstacle = "they were not asked for" if nvls == "off" else _obstacle(target, protocol)
    schedule: SwitchSchedule | None = None
    if not obstacle:
        domains = find_domains(topology)
        schedule = switch_schedule(collective, domains, root) if domains else None
        if not domains:
            obstacle = "no switches that add up and replicate join the ranks in groups of equal size"
        elif schedule is None:
            obstacle = f"a {collective} over several hosts reaches its bound with trees"
    if schedule is None:
        if nvls == "on":
            raise UnsupportedError(
                f"{topology.name} cannot use switches for {collective}: {obstacle}",
                target=target.name,
                limit="nvls",
                hint="leave --nvls at auto, which takes trees where switches cannot be used or do not win",
            )
        return SwitchChoice(
            schedule=None,
            ports=frozenset(),
            algbw=None,
            trees_algbw=trees_algbw,
            overlapping=overlapping,
            reason=obstacle,
        )
    network = Network(topology)
    moves = switch_moves(topology, schedule, network)
    algbw = link_algbw(topology, moves, schedule.chunk_count, overlapping=overlapping)
    wins = algbw > trees_algbw
    if nvls == "on":
        reason = "they were asked for"
    else:
        reason = f"their busiest links take {'less' if wins else 'no less'} time"
    return SwitchChoice(
        schedule=schedule if wins or nvls == "on" else None,
        ports=joined_by_nics(
            topology,
            (network.paths(move.source, move.destination)[0].vertices for move in schedule.transfers),
        ),
        algbw=algbw,
        trees_algbw=trees_algbw,
        overlapping=overlapping,
        reason=reason,
    )


def switch_moves(topology: Topology, schedule: SwitchSchedule, network: Network) -> Iterator[_Move]:
    """All that the links carry for `schedule`."""
    switch = {rank: domain.switch for domain in schedule.domains for rank in domain.ranks}
    for source, target, chunks, step in schedule.uses():
        if source is None:
            assert target is not None, "switches do not talk to each other"
            yield step, (switch[target], topology.ranks[target]), chunks
        elif target is None:
            yield step, (topology.ranks[source], switch[source]), chunks
        else:
            yield step, network.paths(source, target)[0].vertices, chunks


def tree_moves(schedule: Schedule) -> Iterator[_Move]:
    """All that the links carry for `schedule`."""
    columns = zip(schedule.level.tolist(), schedule.route.tolist(), schedule.piece.tolist(), strict=True)
    for level, route, piece in columns:
        yield level, schedule.routes[route], schedule.pieces[piece].count


def link_algbw(topology: Topology, moves: Iterable[_Move], chunks: int, *, overlapping: bool) -> Fraction:
    """GB/s that the busiest link allows a message of `chunks`; where steps do not overlap, that of each step."""
    bandwidths = {(link.tail, link.head): link.bandwidth for link in topology.links}
    loads: dict[int, dict[tuple[int, int], int]] = {}
    for step, path, amount in moves:
        own = loads.setdefault(0 if overlapping else step, {})
        for ends in pairwise(path):
            own[ends] = own.get(ends, 0) + amount
    times = (max(load / bandwidths[ends] for ends, load in own.items()) for own in loads.values())
    return chunks / sum(times, Fraction(0))


def joined_by_nics(topology: Topology, routes: Iterable[tuple[int, ...]]) -> frozenset[tuple[int, int]]:
    """The pairs of ranks, both ways, at the ends of `routes` whose memory is not mapped.

    That is where they are on two hosts, and a NIC is on the way. Ranks of two hosts that a switch joins without a NIC
    (a rack of NVLink) map each other's memory.
    """
    rank_of = {vertex: rank for rank, vertex in enumerate(topology.ranks)}
    pairs: set[tuple[int, int]] = set()
    for route in routes:
        source, destination = rank_of[route[0]], rank_of[route[-1]]
        apart = topology.rank_host(source) != topology.rank_host(destination)
        if apart and any(topology.vertices[vertex].kind is VertexKind.NIC for vertex in route):
            pairs |= {(source, destination), (destination, source)}
    return frozenset(pairs)


def _obstacle(target: Target, protocol: Protocol) -> str:
    """Why programs of this kind use no switches; empty where they may."""
    if target != MSCCLPP:
        return f"{target.name} has no word for them"
    if protocol is not Protocol.SIMPLE:
        return f"they add up plain data only, not the packets of {protocol}"
    return ""
