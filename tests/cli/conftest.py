"""Runs the command line in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from forestsyn.cli.main import main


class Outcome(NamedTuple):
    """What one command did."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> dict[str, Any]:
        """Standard output, which must be one JSON object."""
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value


Run = Callable[..., Outcome]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """`run("bound", "dgx1v")` gives exit code, standard output and standard error."""

    def run_command(*arguments: object) -> Outcome:
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return Outcome(code, captured.out, captured.err)

    return run_command
