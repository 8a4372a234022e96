"""MSCCL XML text → verdict. Everything that forestsyn writes passes through here before it reaches a disk."""

from __future__ import annotations

from pathlib import Path

from forestsyn.errors import InputError
from forestsyn.frontend.msccl_xml import parse_msccl_xml
from forestsyn.verify import Report, verify_program


def verify_file(path: Path, *, dialect: str | None = None) -> Report:
    """The verdict on a file, for one runtime or for all that MSCCL XML is written for.

    Raises InputError when the file cannot be read; whatever it holds gives a report.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"cannot read the file: {reason}", where=str(path)) from error
    return verify_text(data, source=str(path), dialect=dialect)


def verify_text(text: bytes | str, *, source: str, dialect: str | None = None, root: int | None = None) -> Report:
    """The verdict on the text of a file. root: of a broadcast or reduce, which the text itself does not say."""
    read = parse_msccl_xml(text, source=source)
    return verify_program(read.program, findings=read.findings, dialect=dialect, root=root, source=source)
