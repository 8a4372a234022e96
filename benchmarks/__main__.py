"""`python -m benchmarks`: run the workloads one after the other and print the table."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.machine import describe_machine
from benchmarks.report import Row, failures, growth, is_good, render, table
from benchmarks.workloads import Workload, chosen_workloads


def main() -> int:
    """Exit status 0 when every workload was verified and reached its bound exactly, else 1."""
    options = _options()
    try:
        workloads = chosen_workloads(options.only, options.quick)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    rows = []
    for workload in workloads:
        print(f"{workload.name} ...", file=sys.stderr, flush=True)
        rows.append(_row(workload, options.timeout))
    results = {"command": _command(options), "machine": describe_machine(), "workloads": rows}
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if options.output:
        options.output.write_text(render(results), encoding="utf-8")
    print("\n\n".join(part for part in (table(rows), failures(rows), growth(rows)) if part))
    return 0 if all(is_good(row) for row in rows) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure the core on known topologies.")
    parser.add_argument("--quick", action="store_true", help="a part that takes less than a minute")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="this workload; may be repeated")
    parser.add_argument("--timeout", type=float, default=600, metavar="S", help="seconds for one workload (600)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures as JSON")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the report as Markdown")
    return parser.parse_args()


def _row(workload: Workload, timeout: float) -> Row:
    named: dict[str, Any] = {
        "name": workload.name,
        "topology": Path(workload.spec).stem if workload.spec.endswith(".yaml") else workload.spec,
        "family": workload.family,
        "goal_seconds": workload.goal_seconds,
        "goal_depth": workload.goal_depth,
    }
    command = [sys.executable, "-m", "benchmarks.measure", workload.name]
    try:
        finished = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return named | {"error": f"not finished in {timeout:g} s"}
    if finished.returncode:
        last = finished.stderr.strip().splitlines()[-1:] or [f"exit status {finished.returncode}"]
        return named | {"error": last[0]}
    figures: dict[str, Any] = json.loads(finished.stdout)
    return named | figures


def _command(options: argparse.Namespace) -> str:
    words = ["python -m benchmarks", *(["--quick"] if options.quick else [])]
    return " ".join([*words, *(f"--only {name}" for name in options.only)])


if __name__ == "__main__":
    sys.exit(main())
