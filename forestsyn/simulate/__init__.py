"""Simulation: how long a runtime would take for a program. The only layer that computes with floats."""

from forestsyn.simulate.run import Prepared, prepare, simulate, simulate_program

__all__ = ["Prepared", "prepare", "simulate", "simulate_program"]
