"""`forestsyn simulate`: how long a runtime would take for a program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from forestsyn.cli.loading import load_timed
from forestsyn.cli.options import json_option, parse_byte_range, parse_bytes, profile_option, root_option
from forestsyn.cli.output import print_facts, print_json, print_table
from forestsyn.cli.progress import progress
from forestsyn.errors import InputError, VerificationError
from forestsyn.units import format_bytes, format_count

_PATH_SHOWN = 12


@click.command("simulate")
@click.argument("program_file", metavar="PROGRAM", type=click.Path(path_type=Path))
@click.option("--topology", "topology_spec", metavar="T", required=True, help="The machine that it runs on.")
@click.option(
    "--size", "sizes", metavar="BYTES", required=True, help="Message size, several (1K,1M), or a range (1K:1G)."
)
@profile_option
@root_option
@click.option("--trace", type=click.Path(path_type=Path), metavar="FILE", help="Write a trace that Perfetto opens.")
@click.option("--critical-path", is_flag=True, help="Print the chain of steps that the last size's time consists of.")
@json_option
def simulate(
    program_file: Path,
    topology_spec: str,
    sizes: str,
    profile_spec: str | None,
    root: int | str | None,
    trace: Path | None,
    critical_path: bool,
    as_json: bool,
) -> None:
    """Predict the time of an MSCCL XML program on T.

    A discrete-event model of the runtime: threadblocks, FIFO slots, tiles, dependencies, and links that are shared
    fairly. The program is verified first. Times are predictions with the costs of a profile, never measurements.

    \b
    Examples:
      forestsyn simulate allreduce.xml --topology dgx-a100:2 --size 256M
      forestsyn simulate allreduce.xml --topology dgx-a100:2 --size 1K:16G
      forestsyn simulate allreduce.xml --topology dgx-a100:2 --size 1M --critical-path --trace trace.json
    """
    from forestsyn.backends.perfetto import emit_trace
    from forestsyn.frontend.profiles import choose_profile
    from forestsyn.pipeline.files import check_writable, write_file
    from forestsyn.pipeline.simulate import simulate_file, simulate_summary
    from forestsyn.pipeline.verify_file import read_program

    wanted = parse_sizes(sizes)
    if trace is not None:
        check_writable(trace)
    with progress():
        topology, _ = load_timed(topology_spec)
        profile = choose_profile(topology, profile_spec)
        program = read_program(program_file)
        record = critical_path or trace is not None
        result = simulate_file(program, topology, profile, wanted, root=root, record=record)
    summary = simulate_summary(result)
    stuck = next((run for run in result.runs if run.stuck), None)
    if trace is not None and stuck is None:
        write_file(trace, emit_trace(result.runs[-1], topology))
        summary["files"] = [str(trace)]
    if stuck is not None and stuck.stuck is not None:
        raise VerificationError(
            f"the program stops for good at {format_bytes(stuck.message_bytes)}",
            violations=stuck.stuck.waits,
            where=str(program_file),
        )
    if as_json:
        print_json(summary)
    else:
        _print(summary, critical_path)


def parse_sizes(text: str) -> tuple[int, ...]:
    """``1M``, ``1K,64K`` or ``1K:1G`` (powers of two between the ends), ascending. Raises InputError."""
    if ":" in text:
        low, high = parse_byte_range(text, "--size")
        sizes = {1 << power for power in range(low.bit_length() - 1, high.bit_length()) if low <= 1 << power <= high}
    else:
        sizes = {parse_bytes(part, "--size") for part in text.split(",")}
    if not sizes or min(sizes) <= 0:
        raise InputError(f"'{text}' holds no size above 0", where="--size", hint="write 1M, 1K,64K or 1K:1G")
    return tuple(sorted(sizes))


def _print(summary: dict[str, Any], path: bool) -> None:
    rows = []
    for run in summary["runs"]:
        share = run["share_of_limit"]
        busiest = run["busiest_links"][:1]
        rows.append(
            [
                format_bytes(run["bytes"]),
                f"{run['time_us']:.1f}",
                f"{run['algbw_GBps']:.2f}",
                f"{run['busbw_GBps']:.2f}",
                "" if share is None else f"{100 * share:.1f} %",
                "".join(f"{link['from']} -> {link['to']}, {100 * link['busy']:.0f} % busy" for link in busiest),
                "" if run["used_by_runtime"] else "the runtime falls back to NCCL at this size",
            ]
        )
    print_table(["size", "time us", "algbw GB/s", "busbw GB/s", "of the bound", "busiest link", ""], rows)
    limit = summary["limit_algbw_GBps"]
    facts = [
        ("costs", f"profile {summary['profile']}, {summary['rates']} rates; a prediction"),
        ("bound", "none for this collective" if limit is None else f"{limit:.2f} GB/s algbw, no schedule is faster"),
        *(
            ("rerouted", f"{format_count(len(pairs), 'pair')} of ranks can reach each other only through other GPUs")
            for pairs in _rerouted(summary)
        ),
    ]
    if path:
        chain = summary["critical_path"]
        count = format_count(len(chain), "activity", "activities")
        facts += [("critical path", f"{count}, the last {min(len(chain), _PATH_SHOWN)}:")]
        facts += [("", _sentence(activity)) for activity in chain[-_PATH_SHOWN:]]
    facts += [("file", file) for file in summary.get("files", ())]
    print_facts(
        f"{summary['program']}: {summary['collective']}, {summary['protocol']}, on {summary['topology']}", facts
    )


def _rerouted(summary: dict[str, Any]) -> list[list[list[int]]]:
    pairs = summary["runs"][-1]["rerouted_pairs"]
    return [pairs] if pairs else []


def _sentence(activity: dict[str, Any]) -> str:
    where = f"rank {activity['rank']} threadblock {activity['threadblock']} step {activity['step']}"
    return (
        f"{activity['start_us']:.1f} to {activity['end_us']:.1f} us: {where} {activity['operation']}, "
        f"after waiting for {activity['waited_for']}"
    )
