"""forestsyn: a compiler for collective communication.

The stages are pure functions between frozen values; see `docs/architecture.md`.
"""

__version__ = "0.1.0"
