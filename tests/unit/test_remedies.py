"""Hints fit the limit: another target is named only where it allows more."""

from __future__ import annotations

import msgspec
import pytest

from forestsyn.ir.target import EXECUTOR, MSCCL, RCCL, TARGETS, Target
from forestsyn.lowering.remedies import remedy


@pytest.mark.parametrize("target", TARGETS.values(), ids=lambda target: target.name)
@pytest.mark.parametrize("limit", [name for name in msgspec.structs.fields(Target) if name.name.endswith("_max")])
def test_a_target_is_named_only_where_it_helps(target: Target, limit: msgspec.structs.FieldInfo) -> None:
    hint = remedy(target, limit.name)
    assert "--trees" in hint
    for other in TARGETS.values():
        if f"--target {other.name}" in hint:
            decisive = "steps_max" if limit.name == "channels_max" else limit.name
            assert getattr(other, decisive) > getattr(target, decisive)


def test_steps_are_more_elsewhere() -> None:
    assert "--target msccl where that runs: it allows 256 steps" in remedy(RCCL, "steps_max")
    assert "--target" not in remedy(MSCCL, "steps_max")


def test_offsets_are_the_same_everywhere() -> None:
    assert remedy(EXECUTOR, "offset_max").endswith("all targets have this limit")
    assert "--max-peers" in remedy(EXECUTOR, "threadblocks_max")
