"""Candidates of the tuner: forests and classic algorithms, lowered in the ways that suit small and large messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from forestsyn.core import Wish
from forestsyn.errors import ForestsynError, UnsupportedError
from forestsyn.ir.collective import Collective
from forestsyn.ir.profile import Profile
from forestsyn.ir.program import Program, Protocol
from forestsyn.ir.schedule import Schedule
from forestsyn.ir.target import Target
from forestsyn.ir.topology import Topology
from forestsyn.lowering import LEAST, Resources, lower_schedule
from forestsyn.patterns import Pattern, candidate_schedules, exchange_program
from forestsyn.pipeline.compile import ordered, program_name
from forestsyn.pipeline.stages import Observer
from forestsyn.pipeline.synthesize import Trees, synthesize

#: What a program may spend: little for small messages, then instances and streams that fill links.
_LADDER = (LEAST, *(Resources(instances=i, streams=s) for i in (1, 2, 3, 4) for s in (1, 2, 4, 8)))
_COPIES = (
    LEAST,
    *(Resources(instances=i) for i in (2, 4)),
    *(Resources(instances=i, streams=1) for i in (1, 2, 3, 4)),
)
#: An exact forest with more chunks than this serves too few element counts to be worth tuning.
_CHUNKS_MAX = 1024

#: Whose algorithm a candidate is: only forestsyn's, or one that NCCL runs by itself as well.
Origin = Literal["forest", "classic", "nccl"]


class Candidate(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A lowered program, not yet written. algorithm: `forest`, or the pattern's name. name: with its variant."""

    name: str
    algorithm: str
    origin: Origin
    protocol: Protocol
    resources: Resources
    program: Program


def make_candidates(
    topology: Topology,
    collective: Collective,
    root: int | None,
    *,
    target: Target,
    profile: Profile,
    out_of_place: bool = False,
    observer: Observer | None = None,
) -> tuple[Candidate, ...]:
    """Every program that is worth simulating, in a stable order; what a target cannot hold is left out."""
    name = program_name(topology, collective)
    maker = _Maker(target, profile, out_of_place, name)
    made: list[Candidate] = []
    for label, schedule in _forests(topology, collective, root, observer):
        made += maker.from_schedule(label, "forest", schedule, _LADDER)
    for pattern in candidate_schedules(topology, collective, root):
        made += maker.from_pattern(pattern)
    unique: dict[tuple[object, ...], Candidate] = {}
    for candidate in made:
        unique.setdefault((candidate.protocol, candidate.program.ranks), candidate)
    return tuple(unique.values())


def _forests(
    topology: Topology, collective: Collective, root: int | None, observer: Observer | None
) -> Iterator[tuple[str, Schedule]]:
    """Forests with few and with many trees, and shallow ones."""
    seen: set[tuple[int, int, int]] = set()
    wishes: tuple[tuple[str, Trees, Wish | None], ...] = (
        ("forest", "auto", None),
        ("forest, exact", "exact", None),
        ("forest, 1 tree", 1, None),
        ("forest, shallow", "auto", Wish(max_depth=4 if collective is Collective.ALLREDUCE else 2)),
    )
    for label, trees, wish in wishes:
        try:
            result = synthesize(topology, collective, root, trees=trees, chunked=True, wish=wish, observer=observer)
        except UnsupportedError:  # no forest meets the wish
            continue
        if sum(forest.chunk_count for forest in result.forests) > _CHUNKS_MAX * len(result.forests):
            continue
        schedule = ordered(result)
        key = (schedule.chunk_count, schedule.transfer_count, schedule.depth)
        if key not in seen:
            seen.add(key)
            yield label, schedule


class _Maker:
    """Lowers one thing in several ways."""

    def __init__(self, target: Target, profile: Profile, out_of_place: bool, name: str) -> None:
        self.target = target
        self.protocols = [protocol for protocol in Protocol if protocol in profile.protocols]
        self.out_of_place = out_of_place
        self.name = name

    def from_pattern(self, pattern: Pattern) -> Iterator[Candidate]:
        """The variants of a classic algorithm."""
        stock = pattern.name.startswith(("ring", "double binary tree"))
        origin: Origin = "nccl" if stock else "classic"
        if pattern.schedule is not None:
            yield from self.from_schedule(pattern.name, origin, pattern.schedule, _COPIES)
            return
        for protocol in self.protocols:
            try:
                program = exchange_program(
                    pattern.exchange,  # type: ignore[arg-type] # one of the two is given
                    target=self.target,
                    out_of_place=self.out_of_place,
                    protocol=protocol,
                    name=self.name,
                    minimum_bytes=0,
                    maximum_bytes=0,
                )
            except ForestsynError:
                continue
            yield self._candidate(pattern.name, origin, protocol, LEAST, program)

    def from_schedule(
        self, algorithm: str, origin: Origin, schedule: Schedule, ladder: tuple[Resources, ...]
    ) -> Iterator[Candidate]:
        """The variants of a schedule; protocols for small messages need few resources only."""
        for resources in ladder:
            protocols = self.protocols if resources in (LEAST, Resources(instances=2)) else [Protocol.SIMPLE]
            try:
                program = lower_schedule(
                    schedule,
                    target=self.target,
                    out_of_place=self.out_of_place,
                    protocol=protocols[0],
                    name=self.name,
                    minimum_bytes=0,
                    maximum_bytes=0,
                    resources=resources,
                )
            except UnsupportedError:
                continue
            for protocol in protocols:
                own = msgspec.structs.replace(program, protocol=protocol)
                yield self._candidate(algorithm, origin, protocol, resources, own)

    def _candidate(
        self, algorithm: str, origin: Origin, protocol: Protocol, resources: Resources, program: Program
    ) -> Candidate:
        words = [algorithm, str(protocol)]
        if resources.instances > 1:
            words.append(f"x{resources.instances}")
        if resources.streams:
            words.append(f"{resources.streams} streams")
        return Candidate(
            name=", ".join(words),
            algorithm=algorithm,
            origin=origin,
            protocol=protocol,
            resources=resources,
            program=program,
        )
