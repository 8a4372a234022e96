"""Topology → proven program, written out and read back."""

from __future__ import annotations

import re
from fractions import Fraction

from forestsyn.backends import emit_msccl_xml, emit_mscclpp_json
from forestsyn.core import Wish
from forestsyn.errors import InputError, UnsupportedError
from forestsyn.ir.collective import Collective
from forestsyn.ir.forest import Direction
from forestsyn.ir.plan import Plan
from forestsyn.ir.program import Program, Protocol
from forestsyn.ir.schedule import Schedule
from forestsyn.ir.target import EXECUTOR, MSCCLPP, Target
from forestsyn.ir.topology import Topology
from forestsyn.ir.turns import expanded
from forestsyn.lowering import LEAST, Resources, lower_forests, lower_schedule
from forestsyn.lowering.onesided import lower_plan, lower_switch_plan
from forestsyn.pipeline.results import CompileResult, ForestResult
from forestsyn.pipeline.size import check_forest_size, check_text_size
from forestsyn.pipeline.stages import Observer, Root, Stages
from forestsyn.pipeline.switches import Nvls, SwitchChoice, choose_switches, joined_by_nics
from forestsyn.pipeline.synthesize import TOLERANCE, Trees, synthesize
from forestsyn.pipeline.verify_file import verify_own_text
from forestsyn.units import format_bytes
from forestsyn.verify import verify_schedule

_NAME_MAXIMUM = 63


def compile_topology(
    topology: Topology,
    collective: Collective,
    root: Root = None,
    *,
    trees: Trees = "auto",
    tolerance: Fraction = TOLERANCE,
    wish: Wish | None = None,
    target: Target = EXECUTOR,
    out_of_place: bool = False,
    protocol: Protocol = Protocol.SIMPLE,
    minimum_bytes: int = 0,
    maximum_bytes: int = 0,
    resources: Resources = LEAST,
    nvls: Nvls = "auto",
    slice_bytes: int = 0,
    observer: Observer | None = None,
) -> CompileResult:
    """A program for `target` whose text has been read back and verified.

    minimum_bytes, maximum_bytes: the message sizes that the file offers itself for; maximum 0 = no limit.
    resources: threadblocks that a program of MSCCL XML may spend on bandwidth; `tune` chooses them by simulation.
    nvls: whether an execution plan uses switches that add up and replicate; `auto` where their links take less time.
    slice_bytes: what a threadblock of an execution plan passes on at a time; 0: its whole share.
    Raises as `synthesize`, and UnsupportedError when the runtime cannot express the program.
    """
    _check_window(minimum_bytes, maximum_bytes)
    _check_slice(slice_bytes, target)
    _check_ranks(topology, target)
    result = synthesize(
        topology, collective, root, trees=trees, tolerance=tolerance, chunked=True, wish=wish, observer=observer
    )
    check_forest_size(result, target)
    stages = Stages(observer)
    schedule = ordered(result)
    stages.finish("schedule", schedule)
    choice: SwitchChoice | None = None
    if target == MSCCLPP or nvls == "on":
        choice = choose_switches(
            topology,
            collective,
            result.bound.root,
            schedule,
            target=target,
            protocol=protocol,
            nvls=nvls,
            overlapping=slice_bytes > 0,
        )
    program: Program | Plan
    if choice is not None:
        program = _plan(
            schedule,
            choice,
            topology,
            out_of_place=out_of_place,
            protocol=protocol,
            name=program_name(topology, collective),
            window=(minimum_bytes, maximum_bytes),
            slice_bytes=slice_bytes,
        )
    else:
        program = lower_schedule(
            schedule,
            target=target,
            out_of_place=out_of_place,
            protocol=protocol,
            name=program_name(topology, collective),
            minimum_bytes=minimum_bytes,
            maximum_bytes=maximum_bytes,
            resources=resources,
        )
    stages.finish("program", program)
    text = emit_mscclpp_json(program) if isinstance(program, Plan) else emit_msccl_xml(program, target)
    check_text_size(text, target)
    stages.finish("text", text)
    report = verify_own_text(text, source=program.name, target=target.name, root=result.bound.root)
    stages.finish("check program", report)
    return CompileResult(
        forest=result,
        target=target,
        schedule=schedule,
        switches=choice,
        program=program,
        text=text,
        report=report,
        seconds={**result.seconds, **stages.seconds},
    )


def program_name(topology: Topology, collective: Collective) -> str:
    """A name that every runtime accepts: letters, digits and dashes, at most 63 of them."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", f"{topology.name}-{collective}").strip("-")
    return words[-_NAME_MAXIMUM:].strip("-")


def port_pairs(topology: Topology, schedule: Schedule) -> frozenset[tuple[int, int]]:
    """The pairs of ranks, both ways, whose memory is not mapped, among those that `schedule` joins."""
    return joined_by_nics(topology, (schedule.routes[route] for route in sorted(set(schedule.route.tolist()))))


def _plan(
    schedule: Schedule,
    choice: SwitchChoice,
    topology: Topology,
    *,
    out_of_place: bool,
    protocol: Protocol,
    name: str,
    window: tuple[int, int],
    slice_bytes: int,
) -> Plan:
    """The plan along trees, or through switches."""
    minimum_bytes, maximum_bytes = window
    if choice.schedule is not None:
        return lower_switch_plan(
            choice.schedule,
            ports=choice.ports,
            out_of_place=out_of_place,
            protocol=protocol,
            name=name,
            minimum_bytes=minimum_bytes,
            maximum_bytes=maximum_bytes,
            slice_bytes=slice_bytes,
        )
    return lower_plan(
        schedule,
        ports=port_pairs(topology, schedule),
        out_of_place=out_of_place,
        protocol=protocol,
        name=name,
        minimum_bytes=minimum_bytes,
        maximum_bytes=maximum_bytes,
        slice_bytes=slice_bytes,
    )


def _check_slice(slice_bytes: int, target: Target) -> None:
    if slice_bytes and target != MSCCLPP:
        raise UnsupportedError(
            f"{target.name} cuts its own slices", target=target.name, limit="slice", hint="leave --slice out"
        )


def _check_window(minimum_bytes: int, maximum_bytes: int) -> None:
    if 0 < maximum_bytes < minimum_bytes:
        raise InputError(
            f"the smallest size {format_bytes(minimum_bytes)} is above the largest {format_bytes(maximum_bytes)}",
            where="--max-bytes",
            hint="0 means no limit",
        )


def _check_ranks(topology: Topology, target: Target) -> None:
    """Refused before any tree is built: the forest of a large cluster takes long, and no program could follow."""
    if topology.rank_count > target.ranks_max:
        raise UnsupportedError(
            f"{topology.name} has {topology.rank_count:,} ranks; {target.name} allows {target.ranks_max:,}",
            target=target.name,
            limit="ranks_max",
            value=topology.rank_count,
            hint="'forestsyn forest' gives the trees of clusters of any size",
        )


def ordered(result: ForestResult) -> Schedule:
    """The verified schedule along the forests of all phases."""
    forests = {forest.direction: expanded(forest) for forest in result.forests}
    schedule = lower_forests(
        result.bound.collective,
        out_forest=forests.get(Direction.OUT),
        in_forest=forests.get(Direction.IN),
        root=result.bound.root,
    )
    verify_schedule(schedule)
    return schedule
