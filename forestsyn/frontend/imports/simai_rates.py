"""Rates as simulators and fabrics write them, checked at once so that a message can name the line."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from forestsyn.errors import InputError
from forestsyn.frontend.document import located
from forestsyn.frontend.imports.answers import NIC_CHOICES
from forestsyn.frontend.imports.kinds import Options, Question
from forestsyn.frontend.quantity import check_bandwidth_unit, parse_bandwidth, parse_latency


def link_answer(options: Options) -> tuple[dict[str, Any] | None, str | None]:
    """`--link` (else `--nic`) as the rate of a link entry with the remark that it was given; None when it was not."""
    text, option = (options.link, "--link") if options.link is not None else (options.nic, "--nic")
    if text is None:
        return None, None
    plain = text.strip()
    bare = plain.removesuffix("G").removesuffix("g")
    written = f"{bare}Gb/s" if bare.replace(".", "", 1).isdigit() else plain
    try:
        parse_bandwidth(written, "Gb/s")
    except InputError as error:
        raise InputError(error.message, where=option, hint="write for example 400Gb/s or 50GB/s") from None
    return {"bw": written}, f"given by {option}"


def link_question(text: str) -> Question:
    """What to ask where links have no speed."""
    return Question("--link", text, (*NIC_CHOICES, "or 50GB/s"))


def unit_answer(options: Options) -> str | None:
    """`--unit`, checked."""
    if options.unit is None:
        return None
    with located("--unit"):
        return check_bandwidth_unit(options.unit)


def checked_rate(bandwidth: str, latency: str | None, *, where: str, unit: str = "Gb/s") -> dict[str, Any]:
    """A rate with its latency as a link entry takes it; a plain number is in `unit`. Raises InputError at `where`."""
    with located(where):
        parse_bandwidth(bandwidth, unit)
        rate: dict[str, Any] = {"bw": bandwidth if bandwidth[-1:].isalpha() else f"{bandwidth}{unit}"}
        if latency is not None:
            parse_latency(latency)
            rate["latency"] = latency
    return rate


def decimal(value: Fraction) -> str:
    """`value` as people write it: a whole number, a decimal of at most 12 places, else a fraction."""
    if value.denominator == 1:
        return str(value.numerator)
    scaled = value * 10**12
    if scaled.denominator == 1 and value > 0:
        whole, part = divmod(scaled.numerator, 10**12)
        return f"{whole}.{part:012d}".rstrip("0")
    return str(value)
