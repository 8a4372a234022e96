"""The layers of pyproject.toml hold, and the light paths stay light."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def test_import_contracts_hold(root: Path) -> None:
    pytest.importorskip("importlinter")
    code = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    finished = subprocess.run(
        [sys.executable, "-c", code, "--no-cache"], cwd=root, capture_output=True, text=True, timeout=120
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr


@pytest.mark.parametrize("module", ["forestsyn", "forestsyn.ir.topology", "forestsyn.verify.forest"])
def test_light_modules_load_no_solver(module: str) -> None:
    code = f"import sys, {module}; print([m for m in ('scipy', 'networkx', 'ortools', 'rich') if m in sys.modules])"
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert finished.stdout.strip() == "[]"
