"""Simulation: how long a runtime would take for a program. The only layer that computes with floats."""

from forestsyn.simulate.recorder import critical_path
from forestsyn.simulate.run import Prepared, prepare, simulate, simulate_program

__all__ = ["Prepared", "critical_path", "prepare", "simulate", "simulate_program"]
