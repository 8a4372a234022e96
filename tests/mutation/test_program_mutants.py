"""Every mutant of a correct program must be rejected, by every runtime, in the words of the fault."""

from __future__ import annotations

import msgspec
import pytest

from forestsyn.frontend import load_topology
from forestsyn.ir.collective import Collective
from forestsyn.ir.target import TARGETS
from forestsyn.pipeline.compile import compile_topology
from forestsyn.verify.program import verify_program
from tests.mutation.program_mutants import KINDS, NEEDS_TIGHT_WAITS, mutants
from tests.mutation.program_oracle import has_race
from tests.mutation.program_samples import SAMPLES


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_are_accepted(name: str) -> None:
    report = verify_program(SAMPLES[name])
    assert "msccl" in report.accepts
    assert "executor" in report.accepts


@pytest.mark.parametrize("name", SAMPLES)
def test_every_mutant_is_rejected(name: str) -> None:
    for kind, mutant in mutants(SAMPLES[name]):
        report = verify_program(mutant)
        assert not report.accepted, kind
        assert all(violation.message for violation in report.violations)


@pytest.mark.parametrize(
    ("machine", "collective", "target"),
    [
        ("dgx1v", Collective.ALLGATHER, "msccl"),
        ("dgx1v", Collective.ALLREDUCE, "executor"),
        ("dgx1v", Collective.BROADCAST, "rccl"),
        ("dgx-a100:2", Collective.REDUCE_SCATTER, "rccl"),
    ],
)
def test_every_mutant_of_a_compiled_program_is_rejected(machine: str, collective: Collective, target: str) -> None:
    root = 0 if collective.rooted else None
    result = compile_topology(load_topology(machine), collective, root, target=TARGETS[target])
    program = msgspec.structs.replace(result.program, root=root)
    assert verify_program(program, target=target, strict=True).accepted
    kinds = set()
    for kind, mutant in mutants(program, per_kind=8):
        kinds.add(kind)
        if verify_program(mutant, target=target, strict=True).accepted:
            assert kind in NEEDS_TIGHT_WAITS
            assert not has_race(mutant, in_place=mutant.in_place, unit=1)
    assert len(kinds) >= 20


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_mutants(kind: str) -> None:
    assert any(True for program in SAMPLES.values() for _ in KINDS[kind](program))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("step dropped", {"pairing", "dependency", "undefined-read", "nop", "wrong-result"}),
        ("past the end", {"offset"}),
        ("count higher", {"pairing", "offset"}),
        ("bad peer", {"peer"}),
        ("wrong channel", {"pairing", "channel"}),
        ("connection shared", {"connection"}),
        ("reduction to copy", {"wrong-result"}),
        ("reduction twice", {"counted-twice", "race"}),
        ("flag cleared", {"dependency"}),
        ("wait dropped", {"race"}),
        ("wait for nothing", {"dependency"}),
        ("cycle of waits", {"deadlock"}),
        ("everybody receives first", {"deadlock", "dependency"}),
        ("nop chain open", {"nop"}),
        ("nop at the end", {"nop"}),
        ("wrong root", {"wrong-result"}),
        ("wrong collective", {"wrong-result", "place", "buffer-size"}),
    ],
)
def test_the_fault_is_named(kind: str, expected: set[str]) -> None:
    for program in SAMPLES.values():
        for mutant in KINDS[kind](program):
            report = verify_program(mutant, target="msccl")
            assert expected & {violation.kind for violation in report.violations}
