"""Curves of time over message size, as the charts take them."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from forestsyn.errors import InternalError


class CurveKind(StrEnum):
    """What a curve stands for; it sets colour, weight and order."""

    TUNED = "tuned"
    CANDIDATE = "candidate"
    BOUND = "bound"
    RING = "ring"


class Curve(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Predicted times of one thing.

    name: for people. sizes: message sizes in bytes as nccl-tests counts them, ascending, each above 0.
    times_us: µs, above 0, one for each size.
    """

    name: str
    sizes: tuple[int, ...]
    times_us: tuple[float, ...]
    kind: CurveKind

    def __post_init__(self) -> None:
        if not self.sizes or len(self.sizes) != len(self.times_us):
            raise InternalError(f"curve {self.name}: {len(self.sizes)} sizes and {len(self.times_us)} times")
        if list(self.sizes) != sorted(set(self.sizes)) or self.sizes[0] <= 0 or min(self.times_us) <= 0:
            raise InternalError(f"curve {self.name}: sizes must ascend, sizes and times be above 0")
