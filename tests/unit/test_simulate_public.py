"""Real public programs get stuck in the simulator at exactly the sizes at which the verifier's runs do."""

from __future__ import annotations

from pathlib import Path

import pytest

from forestsyn.frontend import load_topology
from forestsyn.frontend.msccl_xml import parse_msccl_xml
from forestsyn.frontend.profiles import load_profile
from forestsyn.ir.program import Protocol
from forestsyn.simulate import prepare, simulate
from forestsyn.verify.program import verify_program
from forestsyn.verify.program_machine import build_machine
from forestsyn.verify.program_run import run_machine
from forestsyn.verify.runtime_limits import FIFO_DEPTH
from tests.conftest import SHARED

PROGRAMS = SHARED / "data" / "programs"
_FILES = sorted(PROGRAMS.rglob("*.xml")) if PROGRAMS.is_dir() else []

pytestmark = pytest.mark.shared


@pytest.mark.parametrize("file", _FILES, ids=lambda file: str(file.relative_to(PROGRAMS))[-70:])
def test_stuck_where_the_verifier_is(file: Path) -> None:
    read = parse_msccl_xml(file.read_bytes(), source=file.name)
    if read.program is None:
        assert not verify_program(None, findings=read.findings, source=file.name).accepted
        return
    program, profile = read.program, load_profile("nvidia-a100")
    prepared = prepare(program, load_topology(f"full:{len(program.ranks)}"), profile)
    machine = build_machine(program)
    message = profile.protocols[program.protocol].message_bytes
    for chunk in (64, message // 71 + 1, message // 8, message // 2 + 1, message, 3 * message + 5):
        simulation = simulate(prepared, chunk * program.chunk_count, budget=0)
        unit = min(max(message // chunk, 1), 71)
        run = run_machine(machine, depth=FIFO_DEPTH[program.protocol], unit=unit)
        assert (simulation.stuck is None) == run.finished, chunk
        assert (simulation.time_us < float("inf")) == run.finished


def test_the_reports_say_the_same() -> None:
    """Where the verifier names a chunk size from which a file hangs, the simulator hangs right above it."""
    file = PROGRAMS / "msccl-tools" / "allgather_recursive_doubling_8_1.xml"
    program = parse_msccl_xml(file.read_bytes(), source=file.name).program
    assert program is not None
    assert program.protocol is Protocol.SIMPLE
    (warning,) = verify_program(program, source=file.name, target="msccl").warnings
    assert warning.chunk_bytes is not None
    prepared = prepare(program, load_topology("full:8"), load_profile("nvidia-a100"))
    for chunk, stuck in ((warning.chunk_bytes, False), (warning.chunk_bytes + 1, True)):
        assert (simulate(prepared, chunk * program.chunk_count).stuck is not None) == stuck
