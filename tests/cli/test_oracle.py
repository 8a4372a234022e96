"""`bound --json` against exact bounds of real machines that were computed elsewhere.

`tests/data/topologies/bounds.tsv` says which topology each row of the oracle is, and in which unit the row counts.
"""

from __future__ import annotations

import csv
from fractions import Fraction
from pathlib import Path

import pytest

from tests.cli.conftest import Run

pytestmark = pytest.mark.shared

TOPOLOGIES = Path(__file__).resolve().parents[1] / "data" / "topologies"


def _rows(path: Path) -> dict[str, dict[str, str]]:
    with path.open(encoding="utf-8") as stream:
        return {row["name"]: row for row in csv.DictReader(stream, delimiter="\t")}


MACHINES = _rows(TOPOLOGIES / "bounds.tsv")


def _oracle(shared: Path) -> dict[str, dict[str, str]]:
    return _rows(shared / "data" / "oracles" / "allgather_bounds.tsv")


def test_no_row_is_left_out(shared: Path) -> None:
    assert set(_oracle(shared)) == set(MACHINES)


@pytest.mark.parametrize("name", MACHINES)
def test_the_bound_is_that_of_the_oracle(run: Run, shared: Path, name: str) -> None:
    row, spec, unit = _oracle(shared)[name], MACHINES[name]["topology"], Fraction(MACHINES[name]["unit_GBps"])
    data = run("bound", TOPOLOGIES / spec if spec.endswith(".yaml") else spec, "--json").data
    assert data["ranks"] == int(row["ranks"])
    assert Fraction(data["inverse_rate"]) == Fraction(row["inverse_rate (s per GB of shard)"]) / unit
    assert f"{data['algbw_GBps'] / unit:.2f}" == row["allgather_algbw_GBps"]
