"""Simulation: how long a runtime would take for a program. The only layer that computes with floats."""
