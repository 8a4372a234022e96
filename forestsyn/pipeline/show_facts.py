"""What is told in words and figures: the headlines, the sentences, hosts and links in rows, the program."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from forestsyn.ir.topology import Topology
from forestsyn.pipeline.names import cut_sentence, decimal_text, ring_sentence
from forestsyn.pipeline.results import CompileResult, ForestResult
from forestsyn.pipeline.summary import compile_summary
from forestsyn.show.view import Figure


def host_rows(topology: Topology) -> list[dict[str, Any]]:
    """Hosts with their devices by kind; hosts that hold the same are one row. `host` is None for the fabric."""
    held: dict[str | None, dict[str, int]] = {}
    for vertex in topology.vertices:
        counts = held.setdefault(vertex.host, {})
        counts[str(vertex.kind)] = counts.get(str(vertex.kind), 0) + 1
    rows: dict[object, dict[str, Any]] = {}
    for host, counts in held.items():
        key = (host is None, tuple(sorted(counts.items())))
        row = rows.setdefault(key, {"host": host, "alike": 0, "devices": counts})
        row["alike"] += 1
    return list(rows.values())


def link_rows(topology: Topology) -> list[dict[str, Any]]:
    """Links by the kinds of their ends, whether they stay in a host, and bandwidth."""
    counts: dict[tuple[str, str, bool, Fraction], int] = {}
    for link in topology.links:
        tail, head = topology.vertices[link.tail], topology.vertices[link.head]
        key = str(tail.kind), str(head.kind), tail.host == head.host and tail.host is not None, link.bandwidth
        counts[key] = counts.get(key, 0) + 1
    return [
        {"from": tail, "to": head, "within_host": within, "bandwidth": str(bandwidth), "count": count}
        for (tail, head, within, bandwidth), count in sorted(
            counts.items(), key=lambda item: (*item[0][:3], -item[0][3])
        )
    ]


def headline_figures(forest: ForestResult, program: CompileResult | None) -> tuple[Figure, ...]:
    """The numbers at the head of the page."""
    bound = forest.bound
    factor = bound.collective.busbw_factor(bound.topology.rank_count)
    over = forest.load_over_bound
    gain = bound.algbw / bound.ring_algbw
    figures = [
        _figure(
            "Bound, algbw",
            _two(bound.algbw),
            "GB/s",
            f"no schedule is faster; busbw {_two(bound.algbw * factor)} GB/s",
        ),
        _figure(
            "Reached, algbw", _two(forest.algbw), "GB/s", f"{float(100 / over):.2f} % of the bound, by the trees"
        ),
        _figure("Load / bound", f"{float(over):.4f}", "", f"exactly {over}; 1 proves that no trees are faster"),
        _figure(
            "Rings at most, algbw",
            _two(bound.ring_algbw),
            "GB/s",
            f"the bound is {float(gain):.2f} times that" if gain > 1 else "as good as the bound",
        ),
        _figure("Depth", str(forest.depth), "transfers", "in the longest chain, which small messages pay for"),
        _figure(
            "Peers",
            str(forest.peers_per_rank_max),
            "per rank",
            f"at most, of {bound.topology.rank_count - 1:,} others",
        ),
    ]
    if program:
        blocks = f"up to {program.threadblocks_max} of {program.target.threadblocks_max} threadblocks a rank"
        figures.append(
            _figure("Channels", str(compile_summary(program)["channels"]), "", f"{program.target.name}; {blocks}")
        )
    return tuple(figures)


def told_sentences(forest: ForestResult) -> tuple[tuple[str, str], ...]:
    """The bottlenecks, rings, trees and notes, each with its name."""
    bound = forest.bound
    cuts = dict.fromkeys(cut_sentence(bound.topology, optimum) for optimum in bound.optima)
    rows = [("Bottleneck", text) for text in cuts]
    rows.append(
        (
            "Rings",
            f"{ring_sentence(bound.topology, bound.rank_cut)}: {decimal_text(bound.ring_algbw)} GB/s algbw at most",
        )
    )
    rows.append(("Trees", forest.choice.reason))
    return (*rows, *(("Note", note) for note in bound.topology.notes))


def program_rows(result: CompileResult) -> tuple[tuple[str, str], ...]:
    """The program by name and value."""
    summary = compile_summary(result)
    places = " and ".join(name.replace("_", "-") for name in ("in_place", "out_of_place") if summary[name])
    return (
        ("runtime", f"{summary['target']}, protocol {summary['protocol']}, {places}"),
        ("channels", str(summary["channels"])),
        ("threadblocks", f"up to {summary['threadblocks_max']} a rank, up to {summary['steps_max']} steps each"),
        ("chunks", f"{summary['chunks']}; {summary['serves']}"),
        ("trees", f"{summary['tree_count']:,} distinct, depth {summary['depth']}"),
        *(("warning", warning) for warning in summary["warnings"]),
    )


def _figure(name: str, value: str, unit: str, against: str) -> Figure:
    return Figure(name=name, value=value, unit=unit, against=against)


def _two(value: Fraction) -> str:
    return f"{float(value):,.2f}"
