"""What the tuner writes: programs, a manifest, rows for NCCL's example tuner plug-in, and how to install them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from forestsyn.ir.collective import Collective
from forestsyn.pipeline.files import write_file
from forestsyn.pipeline.names import vertex_names
from forestsyn.pipeline.summary import topology_hash
from forestsyn.pipeline.tune import TuneResult, Window

#: Words of the plug-in's table; it takes unknown ones for allreduce, ring and simple without a word.
_COLLECTIVES = {Collective.REDUCE_SCATTER: "reducescatter"}
_INSTALL = {
    "executor": "export MSCCL_ALGO_DIR=$PWD/programs      # nothing but programs may be in it\n"
    "export NCCL_DEBUG=INFO                   # the log then says: Using MSCCL Algo files from …\n",
    "rccl": "export MSCCL_ALGO_DIR=$PWD/programs      # nothing but programs may be in it\n"
    "export RCCL_MSCCL_FORCE_ENABLE=1         # except on the machines that RCCL knows by itself\n"
    "export NCCL_DEBUG=INFO                   # the log then says: Using MSCCL Algo files from …\n",
    "msccl": "export MSCCL_XML_FILES={files}\n"
    "export NCCL_ALGO=MSCCL,RING,TREE\n"
    "export NCCL_DEBUG=INFO                   # the log then says: Connected N MSCCL algorithms\n",
}


def write_tuning(result: TuneResult, folder: Path) -> list[str]:
    """Write everything into `folder`, made if it does not exist; the manifest last. Returns the files' paths.

    Raises InputError when a file cannot be written.
    """
    programs = folder / "programs"
    programs.mkdir(parents=True, exist_ok=True)
    written = []
    for number, window in enumerate(result.windows):
        if window.text is not None:
            path = programs / file_name(result, number)
            write_file(path, window.text)
            written.append(str(path))
    for name, text in (
        ("nccl_tuner.conf", tuner_rows(result)),
        ("INSTALL.md", install_note(result)),
        ("manifest.json", json.dumps(tune_summary(result), indent=1, ensure_ascii=False) + "\n"),
    ):
        write_file(folder / name, text)
        written.append(str(folder / name))
    return written


def file_name(result: TuneResult, number: int) -> str:
    """The file of a window; alphabetical order is the order of sizes."""
    return f"{result.bound.collective}-{number:02d}.xml"


def tune_summary(result: TuneResult) -> dict[str, Any]:
    """The result as plain data; `windows` cover all sizes without gap or overlap."""
    limits = result.bound
    return {
        "topology": limits.topology.name,
        "topology_hash": topology_hash(limits.topology),
        "rates": limits.topology.rates,
        "collective": str(limits.collective),
        "ranks": limits.topology.rank_count,
        "root": limits.root,
        "target": result.target.name,
        "profile": result.profile.name,
        "bound_algbw_GBps": float(limits.algbw),
        "bound_algbw_exact": str(limits.algbw),
        "windows": [_window_data(result, number, window) for number, window in enumerate(result.windows)],
        "sizes": list(result.sizes),
        "tuned_us": [result.fastest(size) for size in result.sizes],
        "ring_us": [_finite(result.fastest(size, algorithm="ring")) for size in result.sizes],
        "candidates": len(result.candidates),
        "simulations": result.simulations,
        "seconds": result.seconds,
    }


def tuner_rows(result: TuneResult) -> str:
    """Rows of NCCL's example tuner plug-in for the windows that are left to NCCL's own algorithms.

    colltype,minbytes,maxbytes,algorithm,protocol,channels,nNodes,nRanks; bounds inclusive, always a channel number.
    """
    limits = result.bound
    hosts = {limits.topology.rank_host(rank) for rank in range(limits.topology.rank_count)}
    word = _COLLECTIVES.get(limits.collective, str(limits.collective))
    lines = [f"# {limits.topology.name}, {word}: sizes at which NCCL's own algorithm is predicted to be fastest"]
    for window in result.windows:
        if window.text is None:
            algorithm = "ring" if window.candidate.algorithm.startswith("ring") else "tree"
            maximum = window.maximum or (1 << 63) - 1
            protocol = str(window.candidate.protocol).lower()
            channels = window.candidate.program.channel_count
            row = (
                word,
                window.minimum,
                maximum,
                algorithm,
                protocol,
                channels,
                len(hosts),
                limits.topology.rank_count,
            )
            lines.append(",".join(map(str, row)))
    return "\n".join(lines) + "\n"


def install_note(result: TuneResult) -> str:
    """How the runtime is told to use the programs, and how to see that it does."""
    limits = result.bound
    files = [file_name(result, number) for number, window in enumerate(result.windows) if window.text is not None]
    steps = _INSTALL[result.target.name].format(files=":".join(f"$PWD/programs/{file}" for file in files))
    left = [window for window in result.windows if window.text is None]
    note = f"""# {limits.collective} on {limits.topology.name}, {result.target.name}

{len(files)} programs, each for a window of message sizes; together they and NCCL's own algorithms serve every size.
From this folder:

```bash
{steps}```

Ranks must be numbered as in the topology: {", ".join(_first_names(result))}.
"""
    if left:
        note += """
At some sizes NCCL's own algorithm is predicted to be as fast as any; no program offers itself there. NCCL's example
tuner plug-in can be told to use it:

```bash
export NCCL_TUNER_PLUGIN=libnccl-tuner-example.so NCCL_TUNER_CONFIG_FILE=$PWD/nccl_tuner.conf
```
"""
    return note


def _first_names(result: TuneResult) -> list[str]:
    topology = result.bound.topology
    names = vertex_names(topology, topology.ranks[:4])
    return [f"{rank} is {name}" for rank, name in enumerate(names)] + ["…"] * (topology.rank_count > 4)


def _window_data(result: TuneResult, number: int, window: Window) -> dict[str, Any]:
    file = None if window.text is None else f"programs/{file_name(result, number)}"
    return {
        "min_bytes": window.minimum,
        "max_bytes": window.maximum,
        "candidate": window.candidate.name,
        "algorithm": window.candidate.algorithm,
        "protocol": str(window.candidate.protocol),
        "file": file,
        "sha256": None if window.text is None else hashlib.sha256(window.text.encode()).hexdigest(),
        "chunks": window.candidate.program.chunk_count,
        "channels": window.candidate.program.channel_count,
    }


def _finite(value: float) -> float | None:
    return value if value < float("inf") else None
