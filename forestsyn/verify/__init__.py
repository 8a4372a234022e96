"""Independent checkers of every stage; they share no code with what they check."""

from forestsyn.verify.forest import forest_load, link_loads, verify_forest
from forestsyn.verify.optimum import verify_optimum
from forestsyn.verify.plan import verify_plan
from forestsyn.verify.program import verify_program
from forestsyn.verify.program_report import Report
from forestsyn.verify.schedule import verify_schedule

__all__ = [
    "Report",
    "forest_load",
    "link_loads",
    "verify_forest",
    "verify_optimum",
    "verify_plan",
    "verify_program",
    "verify_schedule",
]
