"""Lowering: forest → schedule (which chunk moves when) → program (bound to threadblocks, channels and buffers)."""

from forestsyn.lowering.forests import lower_forests
from forestsyn.lowering.programs import lower_schedule

__all__ = ["lower_forests", "lower_schedule"]
