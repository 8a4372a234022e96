"""Coverage-guided fuzzing of one reader: `python -m tests.fuzz.harness KIND SECONDS`. Exit 0: nothing was found."""

from __future__ import annotations

import resource
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["forestsyn"]):
    from forestsyn.frontend.imports.registry import readers
    from tests.fuzz.reading import SEEDS, check_bytes

_MEBIBYTES = 1024


def main() -> None:
    """Fuzz until the time is up; a crash, an input that takes 20 s or more memory than 1 GiB stops it."""
    kind, seconds = sys.argv[1], sys.argv[2]
    reader = next(reader for reader in readers() if reader.kind == kind)
    resource.setrlimit(resource.RLIMIT_AS, (4 * _MEBIBYTES * 2**20, resource.RLIM_INFINITY))
    with tempfile.TemporaryDirectory() as folder:
        for name, seed in SEEDS.items():
            Path(folder, name).write_text(seed, encoding="utf-8")
        flags = [f"-max_total_time={seconds}", f"-rss_limit_mb={_MEBIBYTES}", "-timeout=20", "-max_len=4096"]
        atheris.Setup(
            ["harness", *flags, "-print_final_stats=1", f"-artifact_prefix={folder}/", folder],
            lambda data: check_bytes(reader, data),
        )
        atheris.Fuzz()


if __name__ == "__main__":
    main()
