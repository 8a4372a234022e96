"""Benchmarks of the core: `python -m benchmarks` prints a table of workloads (see `README.md` beside this file)."""
