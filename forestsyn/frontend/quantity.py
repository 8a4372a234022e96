"""Bandwidths and latencies as people write them, to exact GB/s and µs."""

from __future__ import annotations

import re
from fractions import Fraction

from forestsyn.errors import InputError
from forestsyn.units import MAXIMUM_BANDWIDTH

#: Bytes per second of each bandwidth unit. A small b is a bit, a capital B a byte.
_PREFIXES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BANDWIDTH_UNITS: dict[str, Fraction] = {
    **{
        f"{prefix}{bits}": Fraction(scale, 8)
        for prefix, scale in _PREFIXES.items()
        for bits in ("b/s", "bit/s", "bps")
    },
    **{f"{prefix}B/s": Fraction(scale) for prefix, scale in _PREFIXES.items()},
    **{f"{prefix}iB/s": Fraction(2**shift) for prefix, shift in (("K", 10), ("M", 20), ("G", 30), ("T", 40))},
}
_LATENCY_UNITS = {"ns": Fraction(1, 1000), "us": Fraction(1), "µs": Fraction(1), "ms": Fraction(1000)}
_MAXIMUM_LATENCY = Fraction(10**6)

_NUMBER = re.compile(r"[+-]?[0-9]{1,18}(\.[0-9]{0,18})?([eE][+-]?[0-9]{1,2})?|[+-]?[0-9]{1,18}/[0-9]{1,18}")
_QUANTITY = re.compile(r"(?P<number>[^A-Za-zµ ]*([eE][+-]?[0-9]+)?)\s*(?P<unit>[A-Za-zµ].*)?")
_NOT_FINITE = re.compile(r"[+-]?\.?(nan|inf|infinity)\b.*", re.IGNORECASE)


def check_bandwidth_unit(unit: str) -> str:
    """`unit` if bandwidths can be given in it. Raises InputError without a place."""
    if unit not in _BANDWIDTH_UNITS:
        raise InputError(f"'{unit}' is no unit of bandwidth", hint="use GB/s (bytes) or Gb/s (bits)")
    return unit


def parse_bandwidth(value: int | str, unit: str) -> Fraction:
    """GB/s, exact, of a number in `unit` or a text with its own unit. Raises InputError without a place."""
    number, own_unit = _split(value, "bandwidth")
    unit = check_bandwidth_unit(own_unit or unit)
    written = f"{number} {unit}" if isinstance(value, int) or not own_unit else str(value)
    bandwidth = number * _BANDWIDTH_UNITS[unit] / 10**9
    if bandwidth <= 0:
        raise InputError(
            f"the bandwidth is {written}, expected more than 0",
            hint="to take a link out of use, leave it out or remove it under 'exceptions'",
        )
    in_bits = "b" in unit
    # No port is as fast as 100,000 Gb/s: a file gave 200000000 Mb/s for a NIC of 200000 Mb/s.
    if bandwidth > MAXIMUM_BANDWIDTH / (8 if in_bits else 1):
        raise InputError(
            f"the bandwidth {written} is {float(bandwidth):,.0f} GB/s, expected at most {int(MAXIMUM_BANDWIDTH):,} "
            + ("Gb/s" if in_bits else "GB/s"),
            hint="check the unit: Gb/s are bits, GB/s bytes, and 1 Tb/s = 1,000 Gb/s = 1,000,000 Mb/s = 125 GB/s",
        )
    return bandwidth


def parse_latency(value: int | str) -> Fraction:
    """µs, exact, of a number of µs or a text such as `500 ns`. Raises InputError without a place."""
    number, unit = _split(value, "latency")
    if unit and unit not in _LATENCY_UNITS:
        raise InputError(f"'{unit}' is no unit of latency", hint="use ns, us or ms")
    latency = number * _LATENCY_UNITS[unit or "us"]
    if not 0 <= latency <= _MAXIMUM_LATENCY:
        raise InputError(f"the latency is {value}, expected 0 to {int(_MAXIMUM_LATENCY):,} us")
    return latency


def _split(value: int | str, what: str) -> tuple[Fraction, str]:
    if isinstance(value, int):
        return Fraction(value), ""
    text = value.strip()
    if _NOT_FINITE.fullmatch(text):
        raise InputError(f"the {what} is '{value}', expected a finite number")
    match = _QUANTITY.fullmatch(text)
    number = match["number"].replace(" ", "") if match else ""
    if match is None or _NUMBER.fullmatch(number) is None or re.fullmatch(r".*/0+", number):
        example = "300, 12.5, 3/7, '400Gb/s' or '25 GB/s'" if what == "bandwidth" else "5, 0.7 or '500 ns'"
        raise InputError(f"'{value[:40]}' is no {what}", hint=f"write it as {example}")
    return Fraction(number), match["unit"] or ""
