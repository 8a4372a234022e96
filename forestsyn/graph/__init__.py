"""Solvers behind small interfaces; the only package that imports OR-Tools, SciPy or networkx."""
