"""Reads MSCCL++ execution plans as their loader does (mscclpp 0.9.0, execution_plan.cc).

The result is the plan as plain data that may be wrong (`verify_plan` judges it), and findings on the form of the
text. The loader ignores attributes that it does not know, so they are dropped here with a note.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from forestsyn.frontend.msccl_findings import Effect, Finding
from forestsyn.ir.plan import Plan

MSCCLPP = "mscclpp"
#: The largest file of the public generator has a few MiB; more is not a plan that a GPU could hold.
BYTES_MAX = 256 * 2**20
_UNKNOWN_MAX = 5


class ReadPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file as read. plan: None when the loader could make none of it; `findings` then say why."""

    source: str
    plan: Plan | None
    findings: tuple[Finding, ...]


def parse_mscclpp_json(data: bytes | str, *, source: str) -> ReadPlan:
    """Reads the text of one file; `source` names it in reports. Never raises for what the text holds."""
    if len(data) > BYTES_MAX:
        return _unreadable(source, "size", f"the file has {len(data)} bytes, expected at most {BYTES_MAX}")
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError) as error:
        return _unreadable(source, "json", f"it is not JSON: {error}")
    except RecursionError:
        return _unreadable(source, "json", "it is nested too deeply")
    unknown: dict[str, int] = {}
    try:
        plan = msgspec.convert(_known_attributes(value, inspect.type_info(Plan), "", unknown), Plan)
    except msgspec.ValidationError as error:
        return _unreadable(source, "form", str(error).replace("`", "'"))
    return ReadPlan(source=source, plan=plan, findings=_notes(unknown))


def _unreadable(source: str, kind: str, message: str) -> ReadPlan:
    return ReadPlan(source=source, plan=None, findings=(_finding(kind, message, Effect.LOAD),))


def _finding(kind: str, message: str, effect: Effect) -> Finding:
    return Finding(kind=kind, message=message, line=None, effect=effect, dialects=(MSCCLPP,))


def _known_attributes(value: Any, expected: inspect.Type, where: str, unknown: dict[str, int]) -> Any:
    """`value` without the attributes that the loader does not know; counts those by name in `unknown`."""
    if isinstance(expected, inspect.UnionType):
        structs = [member for member in expected.types if isinstance(member, inspect.StructType)]
        expected = structs[0] if structs else expected
    if isinstance(expected, inspect.VarTupleType) and isinstance(value, list):
        return [_known_attributes(item, expected.item_type, where, unknown) for item in value]
    if not (isinstance(expected, inspect.StructType) and isinstance(value, dict)):
        return value
    fields = _fields(expected.cls)
    kept = {}
    for name, item in value.items():
        if name in fields:
            kept[name] = _known_attributes(item, fields[name], f"{where}/{name}", unknown)
        else:
            unknown[f"{where}/{name}"] = unknown.get(f"{where}/{name}", 0) + 1
    return kept


@cache
def _fields(cls: type) -> dict[str, inspect.Type]:
    info = inspect.type_info(cls)
    assert isinstance(info, inspect.StructType), "only structs have fields"
    return {field.encode_name: field.type for field in info.fields}


def _notes(unknown: dict[str, int]) -> tuple[Finding, ...]:
    return tuple(
        _finding("unknown", f"the loader ignores '{name}' ({count} times)", Effect.NOTE)
        for name, count in list(unknown.items())[:_UNKNOWN_MAX]
    )
