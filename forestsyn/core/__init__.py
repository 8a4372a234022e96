"""The core: exact optimum, exact switch removal, exact packing."""

from forestsyn.core.choice import Choice, choose_demand, choose_equal
from forestsyn.core.forest import build_forest, build_forests, mirrored
from forestsyn.core.optimum import rank_cut, solve_optimum
from forestsyn.core.timing import solve_time_units
from forestsyn.core.wish import Wish, build_wished

__all__ = [
    "Choice",
    "Wish",
    "build_forest",
    "build_forests",
    "build_wished",
    "choose_demand",
    "choose_equal",
    "mirrored",
    "rank_cut",
    "solve_optimum",
    "solve_time_units",
]
