"""Simulated times of candidates, kept by content: a program that was timed once is not simulated again.

The key of a time is a digest of the program, the topology, the profile and the version of forestsyn, with the message
size. Times live in an SQLite file, so that runs at the same time may share it; a file that cannot be used costs time
only.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from forestsyn import __version__
from forestsyn.ir.profile import Profile
from forestsyn.ir.program import Program
from forestsyn.ir.topology import Topology
from forestsyn.pipeline.summary import topology_hash


def cache_file() -> Path:
    """Where times are kept: $FORESTSYN_CACHE, or forestsyn in the user's cache directory."""
    own = os.environ.get("FORESTSYN_CACHE")
    if own:
        return Path(own) / "times.sqlite"
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "forestsyn" / "times.sqlite"


def content_keys(programs: Sequence[Program], topology: Topology, profile: Profile) -> list[str]:
    """One digest for each program, of everything that its time depends on besides the size."""
    common = f"{__version__}|{topology_hash(topology)}|".encode() + msgspec.json.encode(profile, order="sorted")
    return [
        hashlib.sha256(
            common + msgspec.json.encode((program.ranks, program.chunk_count, program.protocol))
        ).hexdigest()
        for program in programs
    ]


class TimeStore:
    """Times by (key, size). path: None keeps nothing."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def load(self, keys: Sequence[str]) -> dict[tuple[str, int], float]:
        """All kept times of `keys`; empty when the file cannot be read."""
        found: dict[tuple[str, int], float] = {}
        if self._path is None or not self._path.is_file():
            return found
        try:
            with closing(sqlite3.connect(self._path, timeout=5)) as connection:
                for key in dict.fromkeys(keys):
                    rows = connection.execute("SELECT size, time_us FROM times WHERE key = ?", (key,))
                    found.update({(key, size): time for size, time in rows})
        except sqlite3.Error:
            return {}
        return found

    def save(self, times: dict[tuple[str, int], float]) -> None:
        """Keep new times; says nothing when that fails."""
        if self._path is None or not times:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._path, timeout=5)) as connection, connection:
                connection.execute(
                    "CREATE TABLE IF NOT EXISTS times (key TEXT, size INTEGER, time_us REAL, PRIMARY KEY (key, size))"
                )
                rows = [(key, size, time) for (key, size), time in times.items()]
                connection.executemany("INSERT OR REPLACE INTO times VALUES (?, ?, ?)", rows)
        except (OSError, sqlite3.Error):
            return
