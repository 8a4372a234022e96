"""The text of a program or plan → verdict. Everything that forestsyn writes passes here before it reaches a disk."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import BinaryIO

import msgspec

from forestsyn.errors import InputError
from forestsyn.frontend import msccl_xml, mscclpp_json
from forestsyn.frontend.msccl_xml import parse_msccl_xml
from forestsyn.frontend.mscclpp_json import parse_mscclpp_json
from forestsyn.ir.program import Program
from forestsyn.ir.target import MSCCLPP
from forestsyn.verify import Report, verify_plan, verify_program

_STANDARD_INPUT = Path("-")


def verify_file(path: Path, *, target: str | None = None) -> Report:
    """The verdict on a file, or on standard input for ``-``, for one runtime or for all that read its format.

    target: None takes a JSON object for an execution plan of MSCCL++ and all else for MSCCL XML.

    Raises InputError when the file cannot be read; whatever it holds gives a report.
    """
    source, data, is_plan = _read_file(path, target)
    if is_plan:
        found = parse_mscclpp_json(data, source=source)
        return verify_plan(found.plan, source=found.source, findings=found.findings)
    read = parse_msccl_xml(data, source=source)
    return verify_program(read.program, source=read.source, findings=read.findings, target=target)


def read_program(path: Path) -> Program:
    """The program of an MSCCL XML file, or of standard input, accepted by the verifier.

    Raises InputError when it cannot be read or is a plan, VerificationError when it is rejected.
    """
    source, data, is_plan = _read_file(path, None)
    if is_plan:
        raise InputError(
            "this is an execution plan of MSCCL++, expected MSCCL XML",
            where=source,
            hint="plans are not simulated yet; compile the collective with --target executor",
        )
    read = parse_msccl_xml(data, source=source)
    verify_program(read.program, source=read.source, findings=read.findings).raise_if_rejected()
    assert read.program is not None  # else the report rejects it
    return read.program


def _read_file(path: Path, target: str | None) -> tuple[str, bytes, bool]:
    """What to call it in messages, the text, and whether it is a plan."""
    source = "standard input" if path == _STANDARD_INPUT else str(path)
    try:
        if path == _STANDARD_INPUT:
            return source, *_read(sys.stdin.buffer, target)
        with path.open("rb") as stream:
            return source, *_read(stream, target)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"cannot read the file: {reason}", where=source) from error


def _read(stream: BinaryIO, target: str | None) -> tuple[bytes, bool]:
    """The text, and whether it is a plan; one byte more than the reader takes, since a device may never end."""
    data = stream.read(msccl_xml.BYTES_MAX + 1)
    is_plan = target == MSCCLPP.name or (target is None and data.lstrip()[:1] == b"{")
    if is_plan:
        data += stream.read(mscclpp_json.BYTES_MAX - msccl_xml.BYTES_MAX)
    return data, is_plan


def verify_own_text(text: str, *, source: str, target: str, root: int | None) -> Report:
    """The verdict on a text that forestsyn wrote for `target`, read back as that runtime would.

    root: of a broadcast or reduce, which the text does not say. Hazards that bite at some sizes or FIFO depths only
    count as violations here. Raises VerificationError when there is any violation.
    """
    if target == MSCCLPP.name:
        found = parse_mscclpp_json(text, source=source)
        report = verify_plan(found.plan, source=source, findings=found.findings, root=root, strict=True)
    else:
        read = parse_msccl_xml(text, source=source)
        program = read.program and msgspec.structs.replace(read.program, root=root)
        report = verify_program(program, source=source, findings=read.findings, target=target, strict=True)
    report.raise_if_rejected()
    return report
