"""How many trees: unequal roots of an allreduce, from the choice to the verified program."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from forestsyn.cli.main import main
from forestsyn.core.choice import choose_demand, hand_out
from forestsyn.core.shares import solve_shares
from forestsyn.frontend import load_topology
from forestsyn.ir.collective import Collective
from forestsyn.ir.topology import Topology

WEAK_HOST = """
forestsyn: 1
use: dgx-a100:4
exceptions:
  - {remove: "n1/nic[0-3]", reason: ports down}
"""
MIXED_HOSTS = """
forestsyn: 1
templates:
  a: {use: dgx-a100}
  h: {use: dgx-h100}
hosts:
  - {template: a, prefix: a}
  - {template: h, prefix: h, count: 2}
fabric:
  switches: [ib]
  links:
    - {from: "a*/nic[0-3]", to: ib, nic: 200Gb/s}
    - {from: "h*/nic[0-2]", to: ib, nic: 400Gb/s}
"""
UNEVEN_BOX = """
forestsyn: 1
gpus: 3
switches: [pcie]
links:
  - {from: "gpu[0-1]", to: pcie, bw: 20}
  - {from: gpu2, to: pcie, bw: 10}
"""
ONE_WAY_LOSS = """
forestsyn: 1
gpus: 3
links:
  - {from: gpu0, to: gpu1, bw: 4}
  - {from: gpu1, to: gpu2, bw: 4}
  - {from: gpu2, to: gpu0, bw: 4, dir: one-way}
"""
# Only gpu0 can send to the others fast, only gpu1 can collect fast.
FILES = {"weak": WEAK_HOST, "mixed": MIXED_HOSTS, "box": UNEVEN_BOX, "one-way": ONE_WAY_LOSS}


@pytest.fixture(params=sorted(FILES))
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return _written(tmp_path, FILES[request.param])


def _written(folder: Path, text: str) -> Path:
    path = folder / "cluster.yaml"
    path.write_text(text)
    return path


def _run(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    assert main([*map(str, arguments), "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert isinstance(value, dict)
    return value


def test_chunks_are_handed_out_in_proportion() -> None:
    assert hand_out(8, (1, 1, 1, 1)) == (2, 2, 2, 2)
    assert hand_out(48, (3,) * 8 + (1,) * 24) == (3,) * 8 + (1,) * 24
    assert hand_out(5, (0, 3, 0, 1)) == (0, 3, 0, 2)
    for total in range(70):
        demand = hand_out(total, (3,) * 8 + (1,) * 24)
        assert sum(demand) == total
        for first in range(0, 32, 8):
            exact = Fraction(total * (24 if first == 0 else 8), 48)
            assert abs(sum(demand[first : first + 8]) - exact) < 1


def test_half_of_the_data_is_rooted_at_the_weak_host(tmp_path: Path) -> None:
    found = solve_shares(load_topology(str(_written(tmp_path, WEAK_HOST))))
    assert found.equal_algbw == Fraction(200, 3)
    assert found.algbw == found.limit_algbw == 100
    assert Counter(found.shares) == {Fraction(1, 16): 8, Fraction(1, 48): 24}
    assert {share for rank, share in enumerate(found.shares) if 8 <= rank < 16} == {Fraction(1, 16)}


@pytest.mark.parametrize("trees", ["auto", "exact", 1, 3])
def test_the_weak_host_end_to_end(trees: str | int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = _run(capsys, "compile", _written(tmp_path, WEAK_HOST), "-c", "allreduce", "--trees", trees)
    assert data["algbw_exact"] == data["limit_algbw_exact"] == "100"
    assert data["unequal_roots"]["equal_algbw_exact"] == "200/3"
    assert data["unequal_roots"]["gain_exact"] == "1/2"
    assert data["unequal_roots"]["optimal"] is True
    assert data["verified"] is True
    assert data["load_over_bound_exact"] == "1" or trees == 1
    assert data["chunks_per_root"][1] == data["trees_per_root"]


def test_unequal_roots_reach_their_bound_in_programs(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = _run(capsys, "compile", file, "-c", "allreduce", "--trees", "exact")
    assert data["load_over_bound_exact"] == "1"
    assert data["reached"]["algbw_exact"] == data["algbw_exact"]
    assert Fraction(data["algbw_exact"]) >= Fraction(data["unequal_roots"]["equal_algbw_exact"])
    assert Fraction(data["algbw_exact"]) <= Fraction(data["limit_algbw_exact"])
    assert data["trees_per_root"] == data["trees_per_root_exact"]
    usual = _run(capsys, "compile", file, "-c", "allreduce")
    assert 1 <= Fraction(usual["load_over_bound_exact"]) <= Fraction(21, 20)
    assert usual["element_count_divisor"] & (usual["element_count_divisor"] - 1) == 0


def test_people_see_what_unequal_roots_gain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bound", str(_written(tmp_path, WEAK_HOST)), "-c", "allreduce"]) == 0
    printed = capsys.readouterr().out
    assert "100.00 GB/s algbw (exactly 100)" in printed
    assert "1/16 at 8 ranks, 1/48 at 24 ranks: 50 % above equal roots (66.67 GB/s algbw)" in printed
    assert "24 of 48 parts must leave all of n1 through 100 GB/s" in printed
    assert main(["bound", "dgx-a100:2", "-c", "allreduce"]) == 0
    assert "equal, 1/16 of the data each, which is best" in capsys.readouterr().out


def test_other_collectives_have_no_unequal_roots(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(capsys, "bound", "dgx1v", "-c", "allgather")["unequal_roots"] is None


def test_a_root_without_a_share(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """gpu2 hangs on a thin link: the others would rather send it everything once than have it root anything else."""
    text = """
forestsyn: 1
gpus: 3
links:
  - {from: gpu0, to: gpu1, bw: 1}
  - {from: gpu1, to: gpu2, bw: 9}
"""
    data = _run(capsys, "compile", _written(tmp_path, text), "-c", "allreduce", "--trees", "exact")
    assert data["algbw_exact"] == "1"
    assert data["load_over_bound_exact"] == "1"


@pytest.mark.parametrize("spec", ["dgx-a100:2", "dgx-h100:4", "mi250:2", "torus:4x4", "dgx-a100:16"])
def test_equal_hosts_have_equal_roots(spec: str) -> None:
    found = solve_shares(load_topology(spec))
    assert set(found.weights) == {1}
    assert found.is_optimal


def _choice(topology: Topology, trees: str | int, chunked: bool) -> tuple[int, ...]:
    return choose_demand(topology, Collective.ALLREDUCE, None, trees, Fraction(1, 50), chunked).demand


def test_counts_are_in_all_where_roots_are_unequal(tmp_path: Path) -> None:
    topology = load_topology(str(_written(tmp_path, WEAK_HOST)))
    assert _choice(topology, "exact", True) == (1,) * 8 + (3,) * 8 + (1,) * 16
    assert sum(_choice(topology, 2, True)) == 64
    assert sum(_choice(topology, "auto", True)) == 32


def test_a_number_asked_for_is_an_average_where_roots_are_unequal(tmp_path: Path) -> None:
    topology = load_topology(str(_written(tmp_path, WEAK_HOST)))
    choice = choose_demand(topology, Collective.ALLREDUCE, None, 2, Fraction(1, 50), False)
    assert choice.reason.startswith(
        "2 per root on average as asked, 64 in all, handed out to the roots by their shares, not equally, "
    )
    few = choose_demand(load_topology("dgx-a100:2"), Collective.ALLREDUCE, None, 2, Fraction(1, 50), False)
    assert few.reason.startswith("k = 2 as asked, ")


def test_roots_are_equal_beyond_a_size_and_the_loss_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forestsyn.core.choice.UNEQUAL_RANKS", 31)
    topology = load_topology(str(_written(tmp_path, WEAK_HOST)))
    choice = choose_demand(topology, Collective.ALLREDUCE, None, "auto", Fraction(1, 50), False)
    assert set(choice.demand) == {1}
    assert choice.loss == Fraction(1, 2)
    assert choice.reason == (
        "equal roots, as always beyond 31 ranks; k = 1 is the smallest within 2 % of their optimum,"
        " 50 % above the optimal time"
    )
