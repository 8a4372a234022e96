"""Results as plain data: the keys of `--json`, of the manifest of the gallery and of what people see.

A key means the same wherever it stands. `inverse_rate`, `algbw_*`, `busbw_*` and `bottleneck` describe the proven
optimum; what the trees of a forest or program reach stands under `reached`. Exact values are strings such as
``"3/65"``; floats are for display.
"""

from __future__ import annotations

import hashlib
from fractions import Fraction
from math import gcd
from typing import Any

import msgspec

from forestsyn.ir.collective import Collective
from forestsyn.ir.forest import Direction, Optimum
from forestsyn.ir.plan import Plan
from forestsyn.ir.program import Program
from forestsyn.ir.topology import Topology
from forestsyn.pipeline.names import cut_sentence, cut_vertices, ring_sentence, shares_sentence, vertex_names
from forestsyn.pipeline.results import BoundResult, CompileResult, ForestResult
from forestsyn.pipeline.window import window_sentence
from forestsyn.units import format_bytes

Summary = dict[str, Any]


def bound_summary(result: BoundResult) -> Summary:
    """What `forestsyn bound` reports."""
    topology = result.topology
    return {
        "topology": topology.name,
        "topology_hash": topology_hash(topology),
        "ranks": topology.rank_count,
        "rates": topology.rates,
        "notes": list(topology.notes),
        "collective": str(result.collective),
        "root": result.root,
        "root_name": None if result.root is None else topology.rank_name(result.root),
        **_bandwidths(result.collective, topology.rank_count, result.inverse_rate, result.algbw),
        "limit_algbw_exact": str(result.limit_algbw),
        "limit_algbw_GBps": float(result.limit_algbw),
        "unequal_roots": _shares_summary(result),
        "bottleneck": optimum_summary(topology, result.bottleneck),
        "phases": [optimum_summary(topology, optimum) for optimum in result.optima],
        "trees_per_root": _exact_trees(result),
        "ring": _ring_summary(result),
        "verified": True,
        "files": [],
        "seconds": dict(result.seconds),
    }


def forest_summary(result: ForestResult) -> Summary:
    """What `forestsyn forest` reports: the bound, and how the trees compare with it."""
    collective, ranks = result.bound.collective, result.bound.topology.rank_count
    demand = [chunks for chunks in result.choice.demand if chunks or not collective.rooted]
    return {
        **bound_summary(result.bound),
        "reached": _bandwidths(collective, ranks, result.inverse_rate, result.algbw),
        "load_over_bound": float(result.load_over_bound),
        "load_over_bound_exact": str(result.load_over_bound),
        "trees_per_root": max(demand),
        "trees_per_root_exact": _exact_trees(result.bound),
        "chunks_per_root": [min(demand), max(demand)],
        "choice": result.choice.reason,
        "tree_count": result.tree_count,
        "compact": result.compact,
        "depth": result.depth,
        "peers_per_rank_max": result.peers_per_rank_max,
        "seconds": dict(result.seconds),
    }


def compile_summary(result: CompileResult) -> Summary:
    """What `forestsyn compile` reports: the forest, and what the program or plan needs."""
    program = result.program
    own = _plan_facts(program) if isinstance(program, Plan) else _program_facts(result, program)
    return {
        **forest_summary(result.forest),
        "target": result.target.name,
        "protocol": str(program.protocol),
        "switches": _switch_facts(result),
        **own,
        "threadblocks_max": result.threadblocks_max,
        "steps_max": result.steps_max,
        "warnings": _warnings(result),
        "seconds": dict(result.seconds),
    }


def _switch_facts(result: CompileResult) -> Summary | None:
    """What the busiest link allows through switches and along trees; None where the target knows no switches.

    time_over_bound: of the switches against the bound of trees; time_over_limit: against what no form exceeds.
    """
    choice, bound = result.switches, result.forest.bound
    if choice is None:
        return None
    return {
        "used": choice.schedule is not None,
        "reason": choice.reason,
        "algbw_exact": None if choice.algbw is None else str(choice.algbw),
        "algbw_GBps": None if choice.algbw is None else float(choice.algbw),
        "overlapping": choice.overlapping,
        "trees_algbw_exact": str(choice.trees_algbw),
        "trees_algbw_GBps": float(choice.trees_algbw),
        "time_over_bound": None if choice.algbw is None else str(bound.algbw / choice.algbw),
        "time_over_limit": None if choice.algbw is None else str(bound.limit_algbw / choice.algbw),
    }


def _program_facts(result: CompileResult, program: Program) -> Summary:
    divisor = element_divisor(result.forest.bound.collective, len(program.ranks), program.chunk_count)
    return {
        "in_place": program.in_place,
        "out_of_place": program.out_of_place,
        "minimum_bytes": program.minimum_bytes,
        "maximum_bytes": program.maximum_bytes,
        "window": window_sentence(program, result.target),
        "chunks": program.chunk_count,
        "element_count_divisor": divisor,
        "serves_powers_of_two_from": divisor if divisor & (divisor - 1) == 0 else None,
        "serves": _served(divisor),
        "channels": program.channel_count,
        "scratch_chunks_max": max(rank.scratch_chunks for rank in program.ranks),
    }


def _plan_facts(plan: Plan) -> Summary:
    """A plan asks for whole chunks of `buffer_alignment` bytes, whatever the elements; channels: of a rank."""
    gpu = plan.gpus[0]
    chunks = max(gpu.input_chunks, gpu.output_chunks)
    divisor = plan.buffer_alignment * chunks
    window = f"from {format_bytes(plan.minimum_bytes)} up to {format_bytes(plan.maximum_bytes)}"
    return {
        "in_place": plan.in_place,
        "out_of_place": not plan.in_place,
        "minimum_bytes": plan.minimum_bytes,
        "maximum_bytes": plan.maximum_bytes,
        "window": window,
        "chunks": chunks,
        "byte_count_divisor": divisor,
        "serves": f"serves messages whose bytes are divisible by {divisor:,}",
        "channels": max(sum(len(channels.connected_to) for channels in own.channels) for own in plan.gpus),
        "scratch_chunks_max": max(own.scratch_chunks for own in plan.gpus),
    }


def optimum_summary(topology: Topology, optimum: Optimum) -> Summary:
    """One phase: its rate and the cut that proves it, in the names of the topology."""
    inside = optimum.cut.inside
    return {
        "direction": "leaving" if optimum.direction is Direction.OUT else "entering",
        "inverse_rate": str(optimum.inverse_rate),
        "inside": vertex_names(topology, cut_vertices(topology, inside)),
        "ranks_inside": sum(vertex < topology.rank_count for vertex in inside),
        "demand": str(optimum.cut.demand),
        "bandwidth": str(optimum.cut.bandwidth),
        "text": cut_sentence(topology, optimum),
    }


def element_divisor(collective: Collective, ranks: int, chunk_count: int) -> int:
    """The least d such that runtimes use the program exactly where the element count of the call is divisible by d.

    They ask (count × N for allgather and reduce-scatter, else count) to be divisible by the number of chunks, and
    fall back to NCCL without a word otherwise.
    """
    return chunk_count // gcd(chunk_count, ranks) if collective.shards else chunk_count


def topology_hash(topology: Topology) -> str:
    """SHA-256 over what a schedule depends on: vertices, links and rank order; not the name, notes or rate column."""
    content = {"vertices": topology.vertices, "links": topology.links, "ranks": topology.ranks}
    canonical = msgspec.json.encode(content, enc_hook=str, order="sorted")
    return hashlib.sha256(canonical).hexdigest()


def _exact_trees(result: BoundResult) -> int:
    return max(optimum.trees_per_root * max(optimum.weights) for optimum in result.optima)


def _shares_summary(result: BoundResult) -> Summary | None:
    """What the roots of an allreduce take, and how that compares with equal roots and with what no shares exceed."""
    shares = result.shares
    if shares is None:
        return None
    gain = shares.algbw / shares.equal_algbw - 1
    return {
        "used": gain > 0,
        "weights": list(shares.weights),
        "gain_exact": str(gain),
        "gain": float(gain),
        "equal_algbw_exact": str(shares.equal_algbw),
        "equal_algbw_GBps": float(shares.equal_algbw),
        "limit_algbw_exact": str(shares.limit_algbw),
        "limit_algbw_GBps": float(shares.limit_algbw),
        "optimal": shares.is_optimal,
        "text": shares_sentence(shares),
    }


def _ring_summary(result: BoundResult) -> Summary:
    cut = result.rank_cut
    return {
        "algbw_exact": str(result.ring_algbw),
        "algbw_GBps": float(result.ring_algbw),
        "cut": vertex_names(result.topology, cut_vertices(result.topology, cut.inside)),
        "cut_bandwidth": str(cut.bandwidth),
        "text": ring_sentence(result.topology, cut),
    }


def _bandwidths(collective: Collective, ranks: int, inverse_rate: Fraction, algbw: Fraction) -> Summary:
    busbw = algbw * collective.busbw_factor(ranks)
    return {
        "inverse_rate": str(inverse_rate),
        "algbw_GBps": float(algbw),
        "algbw_exact": str(algbw),
        "busbw_GBps": float(busbw),
        "busbw_exact": str(busbw),
    }


def _warnings(result: CompileResult) -> list[str]:
    warnings = [warning.message for warning in result.report.warnings]
    root = result.forest.bound.root
    if root is not None:
        warnings.append(f"runtimes do not check the root: install it only where every call has root {root}")
    return warnings


def _served(divisor: int) -> str:
    if divisor == 1:
        return "serves every element count"
    powers = (
        f"among them every power of two from {divisor:,}" if divisor & (divisor - 1) == 0 else "never a power of two"
    )
    return f"serves element counts divisible by {divisor:,} ({powers}); all others fall back to NCCL"
