"""Minutes of coverage-guided fuzzing for each reader: `make fuzz`."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from forestsyn.frontend.imports.kinds import Reader
from forestsyn.frontend.imports.registry import readers

pytestmark = pytest.mark.fuzz


@pytest.mark.parametrize("reader", readers(), ids=lambda reader: reader.kind)
def test_nothing_is_found(reader: Reader) -> None:
    pytest.importorskip("atheris")
    seconds = int(os.environ.get("FORESTSYN_FUZZ_SECONDS", "600"))
    command = [sys.executable, "-m", "tests.fuzz.harness", reader.kind, str(seconds)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 120, check=False)
    assert finished.returncode == 0, finished.stderr[-4000:]
