"""The machine of a run, in terms that others can compare with: no names of hosts or users."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

LIBRARIES = ("ortools", "numpy", "scipy", "networkx", "msgspec")


def describe_machine() -> dict[str, str]:
    """Processor, cores, memory, and the versions of everything that the times depend on."""
    return {
        "cpu": _field(Path("/proc/cpuinfo"), "model name") or platform.processor() or platform.machine(),
        "cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{library: version(library) for library in LIBRARIES},
        "forestsyn": _commit() or version("forestsyn"),
    }


def _field(path: Path, name: str) -> str | None:
    if not path.is_file():
        return None
    for line in path.read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None


def _commit() -> str | None:
    """The commit that was measured, where this is a git checkout; marked when `forestsyn/` differs from it."""
    root = Path(__file__).parent.parent
    command = ["git", "-C", str(root)]
    try:
        head = subprocess.run(
            [*command, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True
        )
        changed = subprocess.run([*command, "diff", "--quiet", "HEAD", "--", "forestsyn"], check=False)
    except (OSError, subprocess.CalledProcessError):
        return None
    return head.stdout.strip() + (" and uncommitted changes" if changed.returncode else "")
