"""Pipes that close, full disks and interrupts, in real processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-c", "import sys; from forestsyn.cli.main import main; sys.exit(main())"]


def test_a_reader_that_leaves_is_no_error() -> None:
    process = subprocess.Popen([*COMMAND, "rates", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait() == 1
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [["rates"], ["rates", "--json"], ["--help"]])
def test_a_full_disk_behind_standard_output(arguments: list[str]) -> None:
    with open("/dev/full", "w") as full:
        finished = subprocess.run([*COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, text=True)
    assert finished.returncode == 2
    assert finished.stderr == "forestsyn: error: cannot write standard output: No space left on device\n"


def test_pipes_get_plain_text() -> None:
    finished = subprocess.run([*COMMAND, "rates"], capture_output=True, text=True, check=True)
    assert "\x1b" not in finished.stdout
    assert finished.stdout.splitlines()[0].split() == ["kind", "name", "per", "spec", "nccl", "measured", "source"]
