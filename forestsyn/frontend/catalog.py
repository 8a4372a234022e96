"""The machines shipped with the package: native topology files in `forestsyn/machines/`, found by name."""

from __future__ import annotations

import difflib
import re
from importlib import resources

from forestsyn.errors import InputError
from forestsyn.frontend.document import Document, parse_document

_SPEC = re.compile(r"(?P<name>[^:]*)(:(?P<sizes>.*))?", re.DOTALL)
_MAXIMUM_SIZE_DIGITS = 12


def machine_names() -> tuple[str, ...]:
    """All names, sorted."""
    files = (resources.files("forestsyn") / "machines").iterdir()
    return tuple(sorted(file.name.removesuffix(".yaml") for file in files if file.name.endswith(".yaml")))


def read_machine(name: str) -> Document:
    """The file of the machine `name`, which must be one of `machine_names`."""
    file = resources.files("forestsyn") / "machines" / f"{name}.yaml"
    return parse_document(file.read_text(encoding="utf-8"), source=f"{name}.yaml")


def split_spec(spec: str) -> tuple[str, tuple[int, ...]]:
    """`dgx-a100:2` as ('dgx-a100', (2,)), `tpu-v4:4x4x4` as ('tpu-v4', (4, 4, 4)). Raises InputError."""
    match = _SPEC.fullmatch(spec)
    assert match is not None, "the expression matches every text"
    sizes = match["sizes"]
    if sizes is None:
        return match["name"], ()
    parts = sizes.split("x")
    if not all(part.isascii() and part.isdigit() and len(part) <= _MAXIMUM_SIZE_DIGITS for part in parts):
        raise InputError(
            f"'{sizes[:40]}' is no size", where=spec[:80], hint="write a count (:4) or dimensions (:4x4x4)"
        )
    return match["name"], tuple(int(part) for part in parts)


def unknown_machine(name: str, known: tuple[str, ...]) -> InputError:
    """The error for a name that is neither a machine nor a shape."""
    near = difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.5)
    nearest = f"did you mean {' or '.join(near)}? " if near else ""
    return InputError(
        f"no machine is named '{name[:80]}'",
        hint=f"{nearest}'forestsyn machines' lists all; a file needs a '/' or an ending such as .yaml in its name",
    )
