"""Each wrong topology file beside the message that it must give.

`UPDATE_GOLDEN=1 pytest tests/errors` writes the messages anew; read the difference before keeping it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from forestsyn.errors import InputError
from forestsyn.frontend import load_topology

FOLDER = Path(__file__).parent / "topology"
CASES = sorted(path for path in FOLDER.iterdir() if path.suffix != ".err")


def _message(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        load_topology(str(path))
    return str(caught.value).replace(f"{FOLDER}{os.sep}", "") + "\n"


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_message(path: Path) -> None:
    message = _message(path)
    golden = path.with_suffix(".err")
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(message, encoding="utf-8")
    assert golden.exists(), f"no {golden.name}; the message is: {message}"
    assert message == golden.read_text(encoding="utf-8")


def test_each_message_has_its_file() -> None:
    assert {path.stem for path in FOLDER.glob("*.err")} == {path.stem for path in CASES}
