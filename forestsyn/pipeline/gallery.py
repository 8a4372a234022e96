"""The gallery: programs of well-known machines, compiled, verified and listed in one manifest."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from forestsyn.frontend import load_topology
from forestsyn.ir.collective import Collective
from forestsyn.ir.target import EXECUTOR, RCCL, Target
from forestsyn.pipeline.compile import compile_topology
from forestsyn.pipeline.files import write_file
from forestsyn.pipeline.results import CompileResult
from forestsyn.pipeline.stages import Observer
from forestsyn.pipeline.summary import compile_summary

#: Every machine is compiled for every collective, for the runtime that its GPUs have.
MACHINES: dict[str, Target] = {
    "dgx1v": EXECUTOR,
    "dgx-a100:2": EXECUTOR,
    "dgx-h100:2": EXECUTOR,
    "mi250": RCCL,
    "mi300x": RCCL,
    "4x3090": EXECUTOR,
}
COLLECTIVES = (Collective.ALLGATHER, Collective.REDUCE_SCATTER, Collective.ALLREDUCE)

MANIFEST = "manifest.json"

_KEYS = (
    "topology",
    "topology_hash",
    "collective",
    "ranks",
    "target",
    "protocol",
    "in_place",
    "out_of_place",
    "algbw_exact",
    "load_over_bound_exact",
    "trees_per_root",
    "chunks_per_root",
    "tree_count",
    "depth",
    "peers_per_rank_max",
    "chunks",
    "element_count_divisor",
    "serves",
    "channels",
    "threadblocks_max",
    "steps_max",
)


def write_gallery(directory: Path, *, observer: Observer | None = None) -> tuple[str, ...]:
    """Compile all machines and collectives into `directory`, then write the manifest; the names of the files."""
    entries = {}
    for machine in MACHINES:
        for collective in COLLECTIVES:
            name = file_name(machine, collective)
            result = compile_entry(machine, collective, observer=observer)
            write_file(directory / name, result.text)
            entries[name] = manifest_entry(machine, result)
    write_file(directory / MANIFEST, manifest_text(entries))
    return (*entries, MANIFEST)


def file_name(machine: str, collective: Collective) -> str:
    """The file of one program, e.g. ``dgx-a100x2-allreduce.xml``."""
    return f"{machine.replace(':', 'x')}-{collective}.xml"


def compile_entry(machine: str, collective: Collective, *, observer: Observer | None = None) -> CompileResult:
    """The program of one machine and collective, with the defaults of `forestsyn compile` but for the target."""
    return compile_topology(load_topology(machine), collective, target=MACHINES[machine], observer=observer)


def manifest_entry(machine: str, result: CompileResult) -> dict[str, Any]:
    """What the manifest says of one program."""
    summary = compile_summary(result)
    digest = hashlib.sha256(result.text.encode()).hexdigest()
    return {"machine": machine, "sha256": digest, **{key: summary[key] for key in _KEYS}}


def manifest_text(entries: dict[str, dict[str, Any]]) -> str:
    """The manifest's bytes as text."""
    return json.dumps({"version": 1, "files": entries}, indent=1, ensure_ascii=False) + "\n"
