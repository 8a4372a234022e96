"""`forestsyn verify`: an independent check of any MSCCL XML file or MSCCL++ plan."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forestsyn.cli.options import json_option
from forestsyn.cli.output import print_json
from forestsyn.cli.progress import progress
from forestsyn.errors import InputError, VerificationError
from forestsyn.units import format_count

if TYPE_CHECKING:
    from forestsyn.verify import Report


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--target",
    type=click.Choice(["msccl", "executor", "rccl", "mscclpp"]),
    help="Judge for this runtime alone; else a file passes if one runtime accepts it.",
)
@json_option
def verify(files: tuple[Path, ...], target: str | None, as_json: bool) -> int:
    """Check MSCCL XML files and MSCCL++ execution plans (JSON), whoever wrote them.

    Checked are form, limits and offsets, the pairing of both ends, deadlock, races, and the result on every rank.
    A file named - is standard input.
    One line per file says which runtimes accept it; what was found follows, with rank, threadblock, step and chunk.
    The exit code is 5 if a file is rejected, else 2 if one cannot be read, else 0.

    \b
    Examples:
      forestsyn verify allreduce.xml
      forestsyn verify schedules/*.xml --target executor
      forestsyn verify plan.json
      forestsyn compile dgx1v -o - | forestsyn verify -
      forestsyn verify --json suspicious.xml | jq .files[0].violations
    """
    from forestsyn.pipeline.verify_file import verify_file

    verdicts: list[dict[str, Any]] = []
    with progress() as observer:
        for path in files:
            observer.text = f"checking {path}"
            try:
                verdict = _verdict(verify_file(path, target=target))
            except InputError as error:
                verdict = {"source": str(path), "accepted": False, "unreadable": error.message}
            verdicts.append(verdict)
            if not as_json:
                _print_verdict(verdict)
    if as_json:
        print_json({"accepted": all(verdict["accepted"] for verdict in verdicts), "files": verdicts})
    if all(verdict["accepted"] for verdict in verdicts):
        return 0
    rejected = any("unreadable" not in verdict and not verdict["accepted"] for verdict in verdicts)
    return VerificationError.exit_code if rejected else InputError.exit_code


def _verdict(report: Report) -> dict[str, Any]:
    import msgspec

    return {"accepted": report.accepted, **msgspec.to_builtins(report)}


def _print_verdict(verdict: dict[str, Any]) -> None:
    source = verdict["source"]
    if "unreadable" in verdict:
        print(f"{source}: UNREADABLE: {verdict['unreadable']}", file=sys.stderr)
        return
    others = [name for name in verdict["runtimes"] if name not in verdict["accepts"]]
    if verdict["accepted"]:
        print(f"{source}: ok for {', '.join(verdict['accepts'])}{_but(others)}")
    else:
        print(f"{source}: REJECTED for {', '.join(others)}")
    for line in _violation_lines(verdict):
        print(f"  {line}")
    for warning in verdict["warnings"]:
        print(f"  warning, {warning['kind']} ({', '.join(warning['runtimes'])}): {warning['message']}")
    for note in verdict["notes"]:
        print(f"  note: {note}")


def _violation_lines(verdict: dict[str, Any]) -> list[str]:
    """What concerns every runtime that was asked about in full; what concerns some only once for each kind."""
    lines = [
        f"{violation['kind']}: {violation['message']}"
        for violation in verdict["violations"]
        if violation["runtimes"] == verdict["runtimes"]
    ]
    partial: dict[tuple[str, str], list[str]] = {}
    for violation in verdict["violations"]:
        if violation["runtimes"] != verdict["runtimes"]:
            key = (", ".join(violation["runtimes"]), violation["kind"])
            partial.setdefault(key, []).append(violation["message"])
    for (runtimes, kind), messages in partial.items():
        lines.append(f"not for {runtimes}, {kind}: {messages[0]}{_elsewhere(len(messages) - 1)}")
    return lines


def _elsewhere(count: int) -> str:
    """The report lists so many per kind at most; a note counts the rest."""
    return f"; the same fault in {format_count(count, 'more place')}, which --json lists" if count else ""


def _but(others: list[str]) -> str:
    return f", not for {', '.join(others)}" if others else ""
