"""Progress names the work that goes on, and how much it is."""

from __future__ import annotations

from types import SimpleNamespace

from forestsyn.cli import progress
from forestsyn.frontend import load_topology
from forestsyn.ir.collective import Collective
from forestsyn.pipeline.compile import compile_topology


def test_every_stage_says_what_follows() -> None:
    shown: dict[str, str] = {}
    observer = progress.Progress()

    def observe(stage: str, value: object) -> None:
        observer(stage, value)
        shown[stage] = observer.text

    observer("topology", None)
    assert observer.text == "finding the optimum"
    result = compile_topology(load_topology("ring:4"), Collective.ALLGATHER, observer=observe)
    *stages, last = result.seconds
    assert [shown[stage] for stage in stages if shown[stage].endswith(" done")] == []
    assert shown[last] == "check program done"
    assert shown["cut"] == "packing trees"
    assert shown["schedule"] == f"dealing out threadblocks and steps of {result.schedule.transfer_count} transfers"
    assert shown["text"].startswith("reading the text back and checking it (")


def test_large_numbers_are_grouped() -> None:
    observer = progress.Progress()
    observer("schedule", SimpleNamespace(transfer_count=1_047_552))
    assert observer.text.endswith("of 1,047,552 transfers")
    observer("text", "x" * (57 << 20))
    assert observer.text.endswith("(57 MiB)")
