"""ASTRA-sim's network yml: one basic topology (Ring, FullyConnected, Switch) for each dimension.

Dimension 0 is the innermost: NPU i0 + n0·(i1 + n1·i2). A dimension joins the NPUs that differ in that coordinate
only, so that an outer Switch is one switch for each inner position. Bandwidths are GB/s of one link, one direction;
the simulator counts the latency of a switch once for each of its two links, and so does a path here.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from forestsyn.errors import InputError
from forestsyn.frontend.document import Document, parse_document
from forestsyn.frontend.imports.compose_network import Network, Rate
from forestsyn.frontend.imports.kinds import Found, Options
from forestsyn.frontend.imports.simai_rates import checked_rate
from forestsyn.units import format_count

_KEYS = re.compile(r"^(topology|npus_count|bandwidth)\s*:", re.MULTILINE)
_SHAPES = ("Ring", "FullyConnected", "Switch")
_MAXIMUM_DIMENSIONS = 8
_MAXIMUM_NPUS = 20_000
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")


class Dimension(msgspec.Struct, frozen=True, kw_only=True):
    """One dimension: what joins the NPUs along it, how many they are, the rate of each link."""

    shape: str
    size: int
    rate: Rate


class AstraYml:
    """The reader."""

    kind = "astra-network"
    title = "ASTRA-sim network yml"
    helps: str | None = None

    def recognizes(self, name: str, head: str) -> int:
        """How sure, 0 to 100."""
        return 95 if len(set(_KEYS.findall(head))) >= 2 and "npus_count" in head else 0

    def read(self, text: str, *, source: str, options: Options) -> Found:
        """The network of all dimensions. Raises InputError with the line."""
        dimensions = read_dimensions(text, source=source)
        network = Network(source)
        total = 1
        for dimension in dimensions:
            total *= dimension.size
        if total > _MAXIMUM_NPUS:
            raise InputError(f"the file asks for {total:,} NPUs, the limit is {_MAXIMUM_NPUS:,}", where=source)
        npus = [network.add("gpu", f"gpu{number}") for number in range(total)]
        stride = 1
        for place, dimension in enumerate(dimensions):
            _join(network, npus, place, stride, dimension)
            stride *= dimension.size
        return network.found(self.kind, options)


def read_dimensions(text: str, *, source: str) -> list[Dimension]:
    """The dimensions, innermost first. Raises InputError with the line."""
    document = parse_document(text, source=source)
    if not isinstance(document.value, dict):
        raise InputError("expected the keys topology, npus_count and bandwidth", where=source)
    shapes = _list(document, "topology", source)
    sizes = _list(document, "npus_count", source)
    bandwidths = _list(document, "bandwidth", source)
    latencies = _list(document, "latency", source) if "latency" in document.value else [None] * len(shapes)
    for key, values in (("npus_count", sizes), ("bandwidth", bandwidths), ("latency", latencies)):
        if len(values) != len(shapes):
            raise InputError(
                f"'{key}' has {format_count(len(values), 'value')} for {format_count(len(shapes), 'dimension')}",
                where=document.where(key),
            )
    if not 1 <= len(shapes) <= _MAXIMUM_DIMENSIONS:
        found = format_count(len(shapes), "dimension")
        raise InputError(f"found {found}, expected 1 to {_MAXIMUM_DIMENSIONS}", where=source)
    return [
        Dimension(
            shape=_shape(document, place, shapes[place]),
            size=_size(document, place, sizes[place]),
            rate=_rate(document, place, bandwidths[place], latencies[place]),
        )
        for place in range(len(shapes))
    ]


def _list(document: Document, key: str, source: str) -> list[Any]:
    if key not in document.value:
        raise InputError(f"the key '{key}' is missing", where=source)
    value = document.value[key]
    return value if isinstance(value, list) else [value]


def _shape(document: Document, place: int, value: Any) -> str:
    for shape in _SHAPES:
        if str(value).lower() == shape.lower():
            return shape
    raise InputError(
        f"'{str(value)[:40]}' is no basic topology", where=document.where("topology", place), hint=", ".join(_SHAPES)
    )


def _size(document: Document, place: int, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 2:
        raise InputError(
            f"a dimension has {str(value)[:40]} NPUs, expected a whole number of at least 2",
            where=document.where("npus_count", place),
        )
    return value


def _rate(document: Document, place: int, bandwidth: Any, latency: Any) -> Rate:
    for key, value in (("bandwidth", bandwidth), ("latency", latency)):
        if value is not None and _NUMBER.fullmatch(str(value)) is None:
            raise InputError(
                f"the {key} is '{str(value)[:40]}', expected a number",
                where=document.where(key, place),
                hint="fill in the file; ASTRA-sim ships some with 'tbd' in place of numbers",
            )
    nanoseconds = None if latency is None else f"{latency} ns"
    where = document.where("bandwidth", place)
    rate = checked_rate(str(bandwidth), nanoseconds, where=where, unit="GB/s")
    return {**rate, "bw": bandwidth}


def _join(network: Network, npus: list[str], place: int, stride: int, dimension: Dimension) -> None:
    """Join the NPUs along one dimension."""
    size = dimension.size
    if dimension.shape == "FullyConnected" and len(npus) * (size - 1) > 2_000_000:
        raise InputError(f"dimension {place} has too many links", where=network.source)
    starts = [base for base in range(len(npus)) if base // stride % size == 0]
    for number, base in enumerate(starts):
        line = [npus[base + stride * position] for position in range(size)]
        if dimension.shape == "Switch":
            switch = network.add("switch", f"sw{place}.{number}")
            for npu in line:
                network.link(npu, switch, dimension.rate)
        elif dimension.shape == "FullyConnected":
            for position, npu in enumerate(line):
                for other in line[position + 1 :]:
                    network.link(npu, other, dimension.rate)
        else:
            # A ring of two has one link, not two.
            for position in range(size if size > 2 else 1):
                network.link(line[position], line[(position + 1) % size], dimension.rate)
