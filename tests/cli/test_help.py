"""Help is quick and has examples."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.conftest import Run

VERBS = ("bound", "forest", "compile", "verify", "check", "machines", "rates")
HEAVY = ("numpy", "ortools", "networkx", "scipy", "rich", "msgspec", "yaml")


def test_the_group_lists_every_verb_and_the_exit_codes(run: Run) -> None:
    outcome = run("--help")
    assert outcome.code == 0
    for verb in VERBS:
        assert f"\n  {verb} " in outcome.out
    assert "Exit codes" in outcome.out
    assert "gallery" not in outcome.out


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_examples_and_json(run: Run, verb: str) -> None:
    outcome = run(verb, "--help")
    assert outcome.code == 0
    assert f"Examples:\n    forestsyn {verb}" in outcome.out
    assert "--json" in outcome.out


def test_help_loads_nothing_heavy() -> None:
    code = f"""
import sys
from forestsyn.cli.main import main
main(["--help"])
print([name for name in {HEAVY!r} if name in sys.modules])
"""
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert finished.stdout.splitlines()[-1] == "[]"


def test_no_arguments_show_the_help_as_an_error(run: Run) -> None:
    outcome = run()
    assert outcome.code == 2
    assert outcome.err.startswith("Usage: forestsyn")
