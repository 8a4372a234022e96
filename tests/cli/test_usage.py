"""Options: what they accept, and what a wrong one is told."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from forestsyn.cli.main import cli
from forestsyn.cli.options import parse_bytes, parse_share, parse_trees
from forestsyn.errors import InputError
from tests.cli.conftest import Run


@pytest.mark.parametrize(
    ("text", "share"), [("2%", "1/50"), ("0.02", "1/50"), ("1/50", "1/50"), ("0", "0"), (" 12.5 % ", "1/8")]
)
def test_shares(text: str, share: str) -> None:
    assert parse_share(text, "--tolerance") == Fraction(share)


@pytest.mark.parametrize("text", ["", "nan", "inf", "-1%", "100%", "1", "1/0", "1.5/2", "1e-2", "1e999999999", "%"])
def test_wrong_shares(text: str) -> None:
    with pytest.raises(InputError, match="share"):
        parse_share(text, "--tolerance")


@pytest.mark.parametrize(
    ("text", "count"),
    [("0", 0), ("65536", 65536), ("64K", 65536), ("1MiB", 1 << 20), ("2g", 2 << 30), ("1 T", 1 << 40)],
)
def test_sizes(text: str, count: int) -> None:
    assert parse_bytes(text, "--max-bytes") == count


@pytest.mark.parametrize("text", ["", "-1", "1KB", "1.5K", "K", "1e3", "9999999999T", "5E", "nan", "٣"])
def test_wrong_sizes(text: str) -> None:
    with pytest.raises(InputError, match="size"):
        parse_bytes(text, "--max-bytes")


@pytest.mark.parametrize(("text", "trees"), [("auto", "auto"), ("exact", "exact"), ("1", 1), ("13", 13)])
def test_trees(text: str, trees: str | int) -> None:
    assert parse_trees(text) == trees


@pytest.mark.parametrize("text", ["", "0", "-1", "2.5", "best", "1e3", "99999999999", "٣"])
def test_wrong_trees(text: str) -> None:
    with pytest.raises(InputError, match="trees"):
        parse_trees(text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("bound",), "Missing argument 'T'"),
        (("bound", "dgx1v", "-c", "alltoall"), "'alltoall' is not one of"),
        (("bound", "dgx1v", "-c", "reduce", "--root", "x"), "'x' is no rank of dgx1v"),
        (("bound", "dgx1v", "--root", "1"), "allgather has no root"),
        (("bound", "dgx1v", "-c", "reduce", "--root", "8"), "there is no rank 8; dgx1v has ranks 0 to 7"),
        (("bound", "dgx1v", "-c", "reduce", "--root", "-1"), "there is no rank -1"),
        (("bound", "dgx-a100:2", "-c", "reduce", "--root", "n0/gpu33"), "'n0/gpu33' is no rank of dgx-a100-2"),
        (("bound", "dgx-a100:2", "-c", "reduce", "--root", "n0/nic3"), "is no rank of dgx-a100-2, but a nic"),
        (("bound", "dgx-a100:0"), "dgx-a100:0: N is 0"),
        (("forest", "dgx1v", "--json", "-o", "-"), "both want standard output"),
        (("compile", "dgx1v", "--target", "cuda"), "'cuda' is not one of"),
        (("compile", "dgx1v", "--protocol", "simple"), "'simple' is not one of"),
        (("compile", "dgx1v", "--json", "-o", "-"), "both want standard output"),
        (("compile", "dgx1v", "--min-bytes", "2M", "--max-bytes", "1M"), "smallest size 2 MiB is above"),
        (("tune", "dgx1v", "-o", "-"), "several programs do not fit standard output"),
        (("import", "dgx1v", "--json", "-o", "-"), "both want standard output"),
        (("verify",), "Missing argument 'FILE...'"),
        (("tone", "dgx1v"), "No such command 'tone'"),
    ],
)
def test_wrong_usage(run: Run, arguments: tuple[str, ...], message: str) -> None:
    outcome = run(*arguments)
    assert outcome.code == 2
    assert message in outcome.err
    assert "hint: " in outcome.err


def test_errors_are_json_too(run: Run) -> None:
    outcome = run("bound", "dgx-z9", "--json")
    assert outcome.code == 2
    error = outcome.data["error"]
    assert error["code"] == 2
    assert error["kind"] == "InputError"
    assert "dgx-z9" in error["message"]
    assert "forestsyn machines" in error["hint"]
    assert error["message"] in outcome.err


def test_usage_errors_are_json_too(run: Run) -> None:
    error = run("bound", "--json", "--bogus").data["error"]
    assert error["code"] == 2
    assert error["hint"] == "see `forestsyn bound --help`"


def test_every_root_may_be_a_name() -> None:
    roots = [option for verb in cli.commands.values() for option in verb.params if option.name == "root"]
    assert len(roots) >= 6
    assert all("by number or name" in str(getattr(option, "help", "")) for option in roots)


def test_simulate_takes_the_name_of_a_root(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "x.xml"
    run("compile", "dgx1v", "-c", "broadcast", "--root", "n0/gpu3", "-o", path)
    arguments = ("simulate", path, "--topology", "dgx1v", "--size", "1M", "--json", "--critical-path")
    assert run(*arguments, "--root", "n0/gpu3").data == run(*arguments, "--root", 3).data
    assert "is no rank of dgx1v" in run(*arguments, "--root", "n0/gpu9").err
    assert " activities, the last " in run(*(word for word in arguments if word != "--json")).out


@pytest.mark.parametrize("verb", ["bound", "forest", "compile"])
def test_a_root_by_its_name(run: Run, verb: str) -> None:
    named = run(verb, "dgx-a100:2", "-c", "broadcast", "--root", "n1/gpu2", "--json").data
    assert (named["root"], named["root_name"]) == (10, "n1/gpu2")
    outcome = run(verb, "dgx-a100:2", "-c", "broadcast", "--root", 10)
    assert outcome.out.startswith("dgx-a100:2: broadcast with root 10 (n1/gpu2) over 16 ranks")


def test_a_wrong_name_gets_the_nearest(run: Run) -> None:
    error = run("bound", "dgx-a100:2", "-c", "reduce", "--root", "n1/gpu8", "--json").data["error"]
    assert "did you mean n1/gpu" in error["hint"]
    assert "number from 0 to 15" in error["hint"]
