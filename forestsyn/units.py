"""Units: bandwidth is an exact `Fraction` of GB/s (10⁹ bytes per second, one direction), latency one of µs.

Nothing here knows of files or graphs; `format_*` turn exact values into text for people, never for machines.
"""

from __future__ import annotations

from fractions import Fraction

#: Bandwidth above this is taken for a slip of the unit (a 200 Tb/s NIC was found in a real file).
MAXIMUM_BANDWIDTH = Fraction(100_000)


def format_bandwidth(value: Fraction) -> str:
    """`value` GB/s with two decimals, e.g. ``346.67 GB/s``."""
    return f"{float(value):.2f} GB/s"


def format_fraction(value: Fraction) -> str:
    """The exact value as ``3`` or ``3/65``."""
    return str(value)


def format_bytes(count: int) -> str:
    """A byte count with a binary unit, e.g. ``64 KiB``; exact where it divides, else one decimal."""
    size = Fraction(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            text = str(size) if size.denominator == 1 else f"{float(size):.1f}"
            return f"{text} {unit}"
        size /= 1024
    raise AssertionError("unreachable: the loop returns at TiB")


def format_count(count: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun, e.g. ``1 rank``, ``2 ranks``, ``1,024 ranks``; `plural` where it is not noun + s."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
