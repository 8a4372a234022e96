"""The README and the documents tell the truth: their commands work and print what is shown."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from forestsyn.pipeline.verify_file import verify_file
from tests.cli.conftest import Run

BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
LINK = re.compile(r"\]\(((?!http)[^)#]+)\)")


def _sessions(text: str) -> list[tuple[list[str], str]]:
    """Each command of the console blocks, as arguments of forestsyn, with the output shown for it."""
    sessions = []
    for block in BLOCK.findall(text):
        for part in block.split("$ forestsyn ")[1:]:
            command, _, output = part.partition("\n")
            sessions.append((shlex.split(command), output))
    return sessions


def test_the_tour(run: Run, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sessions = _sessions((root / "README.md").read_text())
    assert {arguments[0] for arguments, _ in sessions} == {"bound", "compile", "verify"}
    for arguments, shown in sessions:
        if arguments[0] == "verify":
            lines = (tmp_path / "allreduce.xml").read_text().splitlines(keepends=True)
            lines.remove(next(line for line in lines if 'type="s"' in line))
            (tmp_path / "broken.xml").write_text("".join(lines))
        outcome = run(*arguments)
        assert _without_times(outcome.out + outcome.err) == _without_times(shown)


def _without_times(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("  time ")]


@pytest.mark.parametrize(("number", "target", "count"), [(0, "executor", 1), (1, "msccl", 2), (2, "rccl", 1)])
def test_the_commands_for_each_runtime(root: Path, tmp_path: Path, number: int, target: str, count: int) -> None:
    """Run word for word in an empty directory; what the environment then names are programs of the runtime."""
    block = re.findall(r"```bash\n(.*?)```", (root / "docs" / "runtimes.md").read_text(), re.DOTALL)[number]
    run_main = "import sys; from forestsyn.cli.main import main; sys.exit(main())"
    (tmp_path / "bin").mkdir()
    for name, line in {"forestsyn": f"exec {sys.executable} -c '{run_main}' \"$@\"", "mpirun": "exit 0"}.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "work").mkdir()
    ending = 'printf "%s\n" "${MSCCL_XML_FILES:-$(echo "$MSCCL_ALGO_DIR"/*)}"'
    finished = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block + ending],
        cwd=tmp_path / "work",
        env={**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
    )
    assert finished.returncode == 0, finished.stderr
    files = [Path(name) for name in re.split("[: ]", finished.stdout.splitlines()[-1])]
    assert len(files) == count
    for file in files:
        assert verify_file(file, target=target).accepted


def test_what_the_examples_write_is_ignored(root: Path) -> None:
    ignored = (root / ".gitignore").read_text().splitlines()
    assert {"/*.xml", "/algorithms/"} <= set(ignored)


def test_the_example_topology(run: Run, root: Path, tmp_path: Path) -> None:
    [example] = re.findall(r"```yaml\n(.*?)```", (root / "README.md").read_text(), re.DOTALL)
    (tmp_path / "x.yaml").write_text(example)
    assert len(run("check", tmp_path / "x.yaml", "--json").data["ranks"]) == 3


@pytest.mark.parametrize("document", ["README.md", "docs/architecture.md", "docs/runtimes.md"])
def test_links_lead_somewhere(root: Path, document: str) -> None:
    path = root / document
    missing = [link for link in LINK.findall(path.read_text()) if not (path.parent / link).exists()]
    assert missing == []


def test_continuous_integration_runs_the_two_commands(root: Path) -> None:
    script = (root / ".ci" / "run").read_text()
    for command in (
        'pip" install',
        'forestsyn" compile dgx-a100:2 -c allreduce',
        '-e ".[dev]"',
        'python" -m pytest -q',
    ):
        assert command in script, command
