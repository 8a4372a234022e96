"""`forestsyn machines` and `forestsyn rates`."""

from __future__ import annotations

from tests.cli.conftest import Run


def test_machines(run: Run) -> None:
    outcome = run("machines")
    assert outcome.code == 0
    names = [line.split()[0] for line in outcome.out.splitlines()[1:]]
    assert {"dgx-a100", "mi250", "dgx1v", "torus", "switch"} <= set(names)
    machines = run("machines", "--json").data["machines"]
    assert [machine["name"] for machine in machines] == names
    assert all(machine["ranks"] >= 2 for machine in machines)


def test_every_example_of_the_catalog_can_be_named(run: Run) -> None:
    for machine in run("machines", "--json").data["machines"]:
        outcome = run("check", machine["example"], "--json")
        assert outcome.code == 0, machine["name"]
        assert len(outcome.data["ranks"]) == machine["ranks"]


def test_rates(run: Run) -> None:
    outcome = run("rates")
    assert outcome.code == 0
    assert "nvlink  gen3" in outcome.out
    rates = run("rates", "--json").data["rates"]
    gen3 = next(rate for rate in rates if rate["kind"] == "nvlink" and rate["name"] == "gen3")
    assert (gen3["spec"], gen3["nccl"], gen3["measured"]) == ("25", "20", None)
