"""Runs Python code in fresh interpreters under several hash seeds; equal output is the project's promise."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HASH_SEEDS = ("0", "1", "77")


def assert_same_output(script: str) -> bytes:
    """The output of `script`, run at the root of the repository; fails when it depends on the hash seed."""
    outputs = [_output(script, seed) for seed in HASH_SEEDS]
    assert outputs[0], "the script prints nothing, which proves nothing"
    assert len(set(outputs)) == 1, f"the output depends on PYTHONHASHSEED:\n{outputs[0]!r}\n{outputs[1]!r}"
    return outputs[0]


def _output(script: str, seed: str) -> bytes:
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    finished = subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True)
    assert finished.returncode == 0, finished.stderr.decode()
    return finished.stdout
