"""Pipes that close, full disks and interrupts, in real processes."""

from __future__ import annotations

import json
import os
import pty
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


def test_names_that_the_terminal_cannot_show(tmp_path: Path) -> None:
    path = tmp_path / "größe→.yaml"
    path.write_text("forestsyn: 1\ngpus: 2\nlinks:\n  - {from: gpu0, to: gpu1, bw: 5}\n", encoding="utf-8")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    for extra in ([], ["--json"]):
        command = [*COMMAND, "bound", str(path), *extra]
        finished = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert finished.returncode == 0, finished.stderr
    assert json.loads(finished.stdout)["algbw_exact"] == "10"


def test_file_names_need_not_be_unicode(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/\xff.yaml"
    with open(path, "w") as stream:
        stream.write("forestsyn: 1\ngpus: 2\nlinks:\n  - {from: gpu0, to: gpu1, bw: 5}\n")
    written = os.fsencode(tmp_path) + b"/\xfe.json"
    finished = subprocess.run([*COMMAND, "forest", path, "-o", written, "--json"], capture_output=True)
    assert finished.returncode == 0, finished.stderr
    json.loads(finished.stdout)
    with open(written, encoding="utf-8") as stream:
        json.load(stream)


def test_progress_is_for_terminals(tmp_path: Path) -> None:
    """A pseudo-terminal on standard error shows the stages of long work and is left clean."""
    code = (
        "import forestsyn.cli.progress as p; p._PATIENCE = 0.0; p._PERIOD = 0.01;"
        "import sys; from forestsyn.cli.main import main; sys.exit(main(['forest', 'dgx1v', '--trees', 'exact']))"
    )
    ours, theirs = pty.openpty()
    finished = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=theirs, text=True)
    os.close(theirs)
    shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert finished.returncode == 0
    assert "load / bound" in finished.stdout
    assert "forestsyn: 0 s, " in shown
    assert shown.endswith("\r\x1b[K")


def test_pipes_get_plain_text() -> None:
    finished = subprocess.run([*COMMAND, "rates"], capture_output=True, text=True, check=True)
    assert "\x1b" not in finished.stdout
    assert finished.stdout.splitlines()[0].split() == ["kind", "name", "per", "spec", "nccl", "measured", "source"]
