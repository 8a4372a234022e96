"""The shipped programs: every file verifies, the manifest is true, and a sample is recompiled byte for byte."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from forestsyn.frontend import load_topology
from forestsyn.ir.collective import Collective
from forestsyn.pipeline.gallery import (
    COLLECTIVES,
    MACHINES,
    MANIFEST,
    compile_entry,
    file_name,
    manifest_entry,
    manifest_text,
)
from forestsyn.pipeline.summary import topology_hash
from forestsyn.pipeline.verify_file import verify_file

SCHEDULES = Path(__file__).resolve().parents[2] / "schedules"
ALL = [(machine, collective) for machine in MACHINES for collective in COLLECTIVES]
NAMES = [file_name(machine, collective) for machine, collective in ALL]
REMEDY = "run `make gallery` and look at the difference"


@pytest.fixture(scope="module")
def entries() -> dict[str, dict[str, Any]]:
    files = json.loads((SCHEDULES / MANIFEST).read_text())["files"]
    assert isinstance(files, dict)
    return files


def test_the_shelf_is_complete(entries: dict[str, dict[str, Any]]) -> None:
    assert sorted(path.name for path in SCHEDULES.glob("*.xml")) == sorted(NAMES)
    assert list(entries) == NAMES
    assert (SCHEDULES / MANIFEST).read_text() == manifest_text(entries)


@pytest.mark.parametrize("name", NAMES)
def test_every_program_verifies(entries: dict[str, dict[str, Any]], name: str) -> None:
    path = SCHEDULES / name
    assert hashlib.sha256(path.read_bytes()).hexdigest() == entries[name]["sha256"], REMEDY
    verify_file(path, target=entries[name]["target"]).raise_if_rejected()


@pytest.mark.parametrize(("machine", "collective"), ALL)
def test_every_program_is_for_the_runtime_of_its_machine(
    entries: dict[str, dict[str, Any]], machine: str, collective: Collective
) -> None:
    target = "rccl" if machine.startswith("mi") else "executor"
    name = file_name(machine, collective)
    assert entries[name]["target"] == target
    assert target in verify_file(SCHEDULES / name).accepts


@pytest.mark.parametrize("machine", MACHINES)
def test_the_machines_are_those_of_the_catalog(entries: dict[str, dict[str, Any]], machine: str) -> None:
    expected = topology_hash(load_topology(machine))
    for collective in COLLECTIVES:
        assert entries[file_name(machine, collective)]["topology_hash"] == expected, REMEDY


@pytest.mark.parametrize(
    ("machine", "collective"),
    [(machine, Collective.ALLREDUCE) for machine in ("dgx1v", "dgx-a100:2", "mi250")]
    + [("4x3090", collective) for collective in COLLECTIVES],
)
def test_a_sample_is_the_same_to_the_byte(
    entries: dict[str, dict[str, Any]], machine: str, collective: Collective
) -> None:
    name = file_name(machine, collective)
    result = compile_entry(machine, collective)
    assert result.text == (SCHEDULES / name).read_text(), REMEDY
    assert manifest_entry(machine, result) == entries[name], REMEDY
