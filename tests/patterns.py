"""What the tests of patterns share: every check that a pattern has to pass."""

from __future__ import annotations

from itertools import pairwise, product

from forestsyn.backends import emit_msccl_xml
from forestsyn.errors import UnsupportedError
from forestsyn.ir.program import Program, Protocol
from forestsyn.ir.schedule import Schedule
from forestsyn.ir.target import EXECUTOR, MSCCL, RCCL, Target
from forestsyn.ir.topology import Topology
from forestsyn.lowering import lower_schedule
from forestsyn.patterns import Pattern, exchange_program
from forestsyn.pipeline.verify_file import verify_own_text
from forestsyn.verify import verify_schedule

#: The targets whose programs are MSCCL XML.
RUNTIMES = (MSCCL, EXECUTOR, RCCL)


def check_pattern(pattern: Pattern, topology: Topology, targets: tuple[Target, ...] = RUNTIMES) -> None:
    """The schedule is right and follows the links; on every target the text is accepted in both layouts."""
    assert (pattern.schedule is None) != (pattern.exchange is None)
    root = None
    if pattern.schedule is not None:
        verify_schedule(pattern.schedule)
        check_routes(pattern.schedule, topology)
        root = pattern.schedule.root
    for target, out_of_place in product(targets, (False, True)):
        program = lower_pattern(pattern, target, out_of_place=out_of_place)
        verify_own_text(emit_msccl_xml(program, target), source=pattern.name, target=target.name, root=root)


def lower_pattern(pattern: Pattern, target: Target, *, out_of_place: bool = False) -> Program:
    """The program of a pattern, whatever it holds."""
    arguments = {
        "target": target,
        "out_of_place": out_of_place,
        "protocol": Protocol.SIMPLE,
        "name": "pattern",
        "minimum_bytes": 0,
        "maximum_bytes": 0,
    }
    if pattern.schedule is not None:
        return lower_schedule(pattern.schedule, **arguments)
    assert pattern.exchange is not None
    return exchange_program(pattern.exchange, **arguments)


def fits(pattern: Pattern, target: Target) -> bool:
    """False when the target refuses the pattern."""
    try:
        lower_pattern(pattern, target)
    except UnsupportedError:
        return False
    return True


def check_routes(schedule: Schedule, topology: Topology) -> None:
    """Every transfer takes a path of links from its source to its destination, past no rank."""
    links = {(link.tail, link.head) for link in topology.links}
    for number, source, destination in zip(
        schedule.route.tolist(), schedule.source.tolist(), schedule.destination.tolist(), strict=True
    ):
        route = schedule.routes[number]
        assert (route[0], route[-1]) == (topology.ranks[source], topology.ranks[destination])
    for route in schedule.routes:
        assert links.issuperset(pairwise(route))
        assert not set(route[1:-1]) & set(topology.ranks)
