"""Lowering: forest → schedule (which chunk moves when) → program (bound to threadblocks, channels and buffers)."""

from forestsyn.lowering.forests import lower_forests
from forestsyn.lowering.programs import lower_schedule
from forestsyn.lowering.resources import LEAST, Resources

__all__ = ["LEAST", "Resources", "lower_forests", "lower_schedule"]
