"""`forestsyn bound` and `forestsyn check`."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from forestsyn.cli.check import rank_facts
from tests.cli.conftest import Run


def test_two_a100_hosts(run: Run) -> None:
    outcome = run("bound", "dgx-a100:2", "--json")
    assert outcome.code == 0
    assert outcome.err == ""
    data = outcome.data
    assert data["inverse_rate"] == "3/65"
    assert data["algbw_exact"] == "1040/3"
    assert data["algbw_GBps"] == pytest.approx(346.67, abs=0.01)
    assert data["busbw_exact"] == "325"
    assert data["trees_per_root"] == 13
    assert data["ranks"] == 16
    assert data["verified"] is True
    assert data["files"] == []
    assert set(data["seconds"]) == {"topology", "optimum", "cut"}
    # Rings cross the border of a host, 8 NICs x 25 GB/s: busbw 200.
    assert Fraction(data["ring"]["algbw_exact"]) == Fraction(200 * 16, 15)
    assert data["ring"]["cut_bandwidth"] == "200"


def test_the_bottleneck_is_told_in_names(run: Run) -> None:
    bottleneck = run("bound", "dgx-a100:4", "--json").data["bottleneck"]
    assert bottleneck["direction"] == "leaving"
    assert Fraction(bottleneck["demand"]) / Fraction(bottleneck["bandwidth"]) == Fraction(3, 25)
    assert {"n1/gpu0", "n2/gpu7", "n3/gpu0"} < set(bottleneck["inside"])
    assert bottleneck["ranks_inside"] == 24
    assert bottleneck["text"] == "24 of 32 shards must enter all of n0 through 200 GB/s"


def test_two_phases_add_up(run: Run) -> None:
    data = run("bound", "dgx1v", "-c", "allreduce", "--json").data
    assert data["inverse_rate"] == "7/75"
    assert data["algbw_exact"] == "600/7"
    assert data["busbw_exact"] == "150"
    assert [phase["direction"] for phase in data["phases"]] == ["entering", "leaving"]


@pytest.mark.parametrize(("collective", "direction"), [("broadcast", "leaving"), ("reduce", "entering")])
def test_rooted_collectives(run: Run, collective: str, direction: str) -> None:
    data = run("bound", "dgx1v", "-c", collective, "--root", 3, "--json").data
    assert data["root"] == 3
    assert data["algbw_exact"] == "150"
    assert data["bottleneck"]["direction"] == direction
    assert run("bound", "dgx1v", "-c", collective, "--json").data["root"] == 0


def test_the_hash_tells_topologies_apart(run: Run) -> None:
    hashes = [run("bound", spec, "--json").data["topology_hash"] for spec in ("ring:4", "ring:4", "ring:5", "full:4")]
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 3


def test_people_get_sentences(run: Run) -> None:
    outcome = run("bound", "dgx-a100:2")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert lines[0] == "dgx-a100:2: allgather over 16 ranks, spec rates"
    assert "346.67 GB/s algbw (exactly 1040/3), 325.00 GB/s busbw" in outcome.out
    assert "3/65 s per GB of shard" in outcome.out
    assert "15 of 16 shards must enter n0/gpu0 through 325 GB/s" in outcome.out
    assert "213.33 GB/s algbw: every ring must leave all of n0, and 200 GB/s is all there is" in outcome.out


def test_disconnected_ranks_name_both_sides(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "islands.yaml"
    path.write_text(
        "forestsyn: 1\ngpus: 4\nlinks:\n  - {from: gpu0, to: gpu1, bw: 10}\n  - {from: gpu2, to: gpu3, bw: 10}\n"
    )
    for verb in ("bound", "check"):
        outcome = run(verb, path)
        assert outcome.code == 3
        for name in ("gpu0", "gpu2"):
            assert name in outcome.err
    error = run("bound", path, "--json").data["error"]
    assert error["code"] == 3
    assert error["cut"]


def test_check_reports_and_bounds(run: Run) -> None:
    outcome = run("check", "dgx-a100:2")
    assert outcome.code == 0
    assert "16 ranks" in outcome.out
    assert "3/65" in outcome.out
    assert "  0 to 7   n0/gpu0 to n0/gpu7\n  8 to 15  n1/gpu0 to n1/gpu7\n" in outcome.out
    data = run("check", "dgx-a100:2", "--json").data
    assert data["vertices"] == {"gpu": 16, "switch": 4, "nic": 16}
    assert data["ranks"][0] == {"name": "n0/gpu0", "host": "n0", "send": "325", "receive": "325"}
    assert data["bound"]["inverse_rate"] == "3/65"


def test_every_rank_has_its_number() -> None:
    assert rank_facts(["a0", "a1", "a2", "b0", "x", "c7", "c9"]) == [
        ("0 to 2", "a0 to a2"),
        ("3", "b0"),
        ("4", "x"),
        ("5", "c7"),
        ("6", "c9"),
    ]
    assert rank_facts(["g8", "g9", "g10", "g011"]) == [("0 to 2", "g8 to g10"), ("3", "g011")]
    many = rank_facts([f"n{host}/gpu{gpu}" for host in range(100) for gpu in (0, 1)])
    assert many[63:] == [("126 to 127", "n63/gpu0 to n63/gpu1"), ("...", "72 more ranks; --json lists all")]


def test_one_of_a_kind_is_singular(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text(
        "forestsyn: 1\ngpus: 3\nlinks:\n  - {from: gpu0, to: gpu1, bw: 10}\n  - {from: gpu1, to: gpu2, bw: 10}\n"
    )
    assert "3 ranks on 1 host\n" in run("check", path).out
    assert "\n1 rank can send 20.00 GB/s" in run("check", path).out
    outcome = run("compile", "full:2")
    assert "1 transfer, at most 1 peer per rank" in outcome.out
    assert "a rank and 1 step each" in outcome.out
    assert "found 1 size after ':'" in run("bound", "hgx-a100:2").err
