"""Results as Markdown: the table, the growth within each family, and the machine."""

from __future__ import annotations

from itertools import pairwise
from math import log
from typing import Any

Row = dict[str, Any]

_HEADINGS = (
    *("workload", "ranks", "links", "k"),
    *("network", "optimum", "time", "forest", "check", "core s", "goal s", "pipeline s"),
    *("/ N flows", "peak MiB", "depth", "goal", "peers", "trees", "load / bound"),
)
#: Below 128 ranks growth says more about fixed costs than about the algorithms; beyond 2,048 forests are compact.
GROWTH_RANGE = range(128, 2_048 + 1)


def render(results: dict[str, Any]) -> str:
    """The whole report of a results document."""
    rows = results["workloads"]
    parts = [
        "# Benchmark of the core",
        _about(results),
        table(rows),
        failures(rows),
        growth(rows),
        _machine(results["machine"]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def table(rows: list[Row]) -> str:
    """One line per workload, columns aligned."""
    lines = [_HEADINGS, *(_cells(row) for row in rows)]
    widths = [max(2, *(len(line[column]) for line in lines)) for column in range(len(_HEADINGS))]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    padded = [
        [line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))]
        for line in lines
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in [padded[0], rule, *padded[1:]])


def failures(rows: list[Row]) -> str:
    """What went wrong, for each workload that failed; empty when none did."""
    return "\n".join(f"- {row['name']} failed: {row['error']}" for row in rows if "error" in row)


def growth(rows: list[Row]) -> str:
    """How the core time grows with the number of ranks: the exponent between neighbours and over the whole range."""
    lines = []
    for family in dict.fromkeys(row["family"] for row in rows if row["family"]):
        members = [row for row in rows if row["family"] == family and "error" not in row]
        large = [row for row in members if row["ranks"] in GROWTH_RANGE]
        if len(members) < 2:
            continue
        steps = ", ".join(f"{a['ranks']} to {b['ranks']}: {_exponent(a, b):.2f}" for a, b in pairwise(members))
        whole = ""
        if len(large) > 1:
            whole = f"; **{large[0]['ranks']} to {large[-1]['ranks']}: {_exponent(large[0], large[-1]):.2f}**"
        lines.append(f"- {family}: {steps}{whole}")
    if not lines:
        return ""
    return "Growth exponents of the core time in the number of ranks:\n\n" + "\n".join(lines)


def is_good(row: Row) -> bool:
    """True when the workload ran, was verified and reached its bound."""
    return "error" not in row and row["load_over_bound"] == "1"


def _exponent(smaller: Row, larger: Row) -> float:
    return log(larger["core_seconds"] / smaller["core_seconds"]) / log(larger["ranks"] / smaller["ranks"])


def _cells(row: Row) -> tuple[str, ...]:
    if "error" in row:
        return (row["name"], *([""] * (len(_HEADINGS) - 2)), "failed")
    seconds = row["seconds"]
    return (
        row["name"],
        *(str(row[key]) for key in ("ranks", "links", "trees_per_root")),
        *(_short(seconds[stage]) for stage in ("network", "optimum", "time", "forest", "verification")),
        _short(row["core_seconds"]),
        "" if row["goal_seconds"] is None else f"{row['goal_seconds']:g}",
        _short(row["pipeline_seconds"]),
        f"{row['core_over_floor']:.{1 if row['core_over_floor'] >= 1 else 2}f}",
        f"{row['peak_bytes'] / 2**20:.0f}",
        str(row["depth"]),
        "" if row["goal_depth"] is None else str(row["goal_depth"]),
        *(str(row[key]) for key in ("peers_max", "trees", "load_over_bound")),
    )


def _short(seconds: float) -> str:
    return f"{seconds:.4f}" if seconds < 0.1 else f"{seconds:.3f}" if seconds < 1 else f"{seconds:.2f}"


def _about(results: dict[str, Any]) -> str:
    return (
        f"Printed by `{results['command']}`; times in seconds, allgather, exact optimum. What each column means "
        "stands in [README.md](../README.md), public figures for the same topologies in [PEERS.md](../PEERS.md)."
    )


def _machine(machine: dict[str, str]) -> str:
    return "Machine:\n\n" + "\n".join(f"- {key}: {value}" for key, value in machine.items())
