"""The README tells the truth: its commands work, its bounds and errors are what the program prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

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
        printed = outcome.out + outcome.err
        if arguments[0] == "bound" or outcome.code == 2:
            assert printed == shown
        else:
            rows = [[line.split()[0] for line in text.splitlines()[:3]] for text in (printed, shown)]
            assert rows[0] == rows[1]


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
