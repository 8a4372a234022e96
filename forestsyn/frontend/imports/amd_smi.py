"""`rocm-smi --showtopo` and `amd-smi topology` (text and JSON), `amd-smi xgmi`: the readers."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from forestsyn.errors import InputError
from forestsyn.frontend.imports.amd_box import Pairs, amd_found, whole_numbers
from forestsyn.frontend.imports.amd_tables import MAXIMUM_GPUS, Tables, read_tables
from forestsyn.frontend.imports.box import machine_found
from forestsyn.frontend.imports.kinds import Found, Options
from forestsyn.frontend.imports.text import host_lines
from forestsyn.units import format_count

_METRIC_ROW = re.compile(
    r"\s*GPU([0-9]{1,5})\s+(\S+)\s+[0-9.]+ Gb/s\s+([0-9]{1,6}) Gb/s\s+(XGMI)\s*.*", re.IGNORECASE
)
_JSON_START = re.compile(r"^[ \t]*[\[{]", re.MULTILINE)


class RocmSmi:
    """`rocm-smi --showtopo` (and its parts: --showtopotype, --showtopoweight, ...)."""

    kind = "rocm-smi-topo"
    title = "rocm-smi --showtopo"
    helps: str | None = None

    def recognizes(self, name: str, head: str) -> int:
        """How sure, 0 to 100."""
        if "between two GPUs" in head:
            return 95
        return 60 if "ROCm System Management Interface" in head else 0

    def read(self, text: str, *, source: str, options: Options) -> Found:
        """The box that the tables describe. Raises InputError."""
        tables = read_tables(host_lines(text, source=source), source=source)
        return _from_tables(tables, self.kind, source, options, "rocm-smi --showtopo")


class AmdSmi:
    """`amd-smi topology` as tables or `--json`, and `amd-smi xgmi`."""

    kind = "amd-smi-topology"
    title = "amd-smi topology"
    helps: str | None = None

    def recognizes(self, name: str, head: str) -> int:
        """How sure, 0 to 100."""
        if re.search(r"\bLINK (TYPE|METRIC) TABLE\b|\b(ACCESS|WEIGHT|HOPS|NUMA BW) TABLE:", head):
            return 95
        if re.search(r'"(link_type|link_status|link_accessibility)"\s*:', head) and '"gpu' in head:
            return 90
        return 70 if "amd-smi topology" in head else 0

    def read(self, text: str, *, source: str, options: Options) -> Found:
        """The box that the tables or the JSON describe. Raises InputError."""
        lines = host_lines(text, source=source)
        if "TABLE" not in text and (start := _JSON_START.search("\n".join(lines))) is not None:
            pairs = _from_json("\n".join(lines)[start.start() :], source)
            return _found(pairs, self.kind, source, options)
        metric = [match for line in lines if (match := _METRIC_ROW.fullmatch(line)) is not None]
        if metric:
            return _found(_from_metric(lines, metric, source), self.kind, source, options)
        return _from_tables(read_tables(lines, source=source), self.kind, source, options, "amd-smi topology")


def _found(pairs: Pairs, kind: str, source: str, options: Options) -> Found:
    machine = machine_found(options, kind=kind, source=source, gpus=pairs.gpus)
    return machine if machine is not None else amd_found(pairs, kind=kind, source=source, options=options)


def _from_tables(tables: Tables, kind: str, source: str, options: Options, command: str) -> Found:
    machine = machine_found(options, kind=kind, source=source, gpus=tables.gpus)
    if machine is not None:
        return machine
    if tables.gpus > 1 and "type" not in tables.cells:
        listed = ", ".join(tables.cells) or "none"
        raise InputError(
            f"there is no table of link types here (tables found: {listed})",
            where=source,
            hint=f"run '{command}' without options that choose tables, and give its whole output",
        )
    pairs = Pairs(
        gpus=tables.gpus,
        types=tables.cells.get("type", {}),
        weights=whole_numbers(tables.cells.get("weight", {}), "weight", source),
        hops=whole_numbers(tables.cells.get("hops", {}), "number of hops", source),
        bandwidths=tables.cells.get("bandwidth", {}),
        numa=tables.numa,
    )
    return amd_found(pairs, kind=kind, source=source, options=options)


def _from_metric(lines: list[str], rows: list[re.Match[str]], source: str) -> Pairs:
    """`amd-smi xgmi`: a rate for each GPU, then traffic to each peer, N/A where there is no link."""
    types: dict[tuple[int, int], str] = {}
    bandwidths: dict[tuple[int, int], str] = {}
    current: re.Match[str] | None = None
    for line in lines:
        match = _METRIC_ROW.fullmatch(line)
        if match is not None:
            current = match
        elif current is not None and line.strip().lower().startswith("read"):
            cells = re.findall(r"N/A|[0-9]+(?:\.[0-9]+)? [KMGT]?B", line)
            if len(cells) != len(rows):
                found = format_count(len(cells), "peer")
                raise InputError(f"GPU{current[1]} has {found}, expected {len(rows)}", where=source)
            megabytes = int(current[3]) * 125
            for peer, cell in enumerate(cells):
                if cell != "N/A":
                    types[int(current[1]), peer] = "XGMI"
                    bandwidths[int(current[1]), peer] = f"{megabytes}-{megabytes}"
    for one in range(len(rows)):
        for other in range(len(rows)):
            types.setdefault((one, other), "PCIE")
    return Pairs(gpus=len(rows), types=types, bandwidths=bandwidths)


def _from_json(text: str, source: str) -> Pairs:
    if re.search(r"^[ \t]*\.\.\.,?[ \t]*$", text, re.MULTILINE):
        raise InputError(
            "the listing is abbreviated with '...'", where=source, hint="give the whole output of amd-smi topology"
        )
    try:
        value = msgspec.json.decode(re.sub(r",(\s*[\]}])", r"\1", text))
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        problem = str(error)[:120] if isinstance(error, msgspec.DecodeError) else "it is too deep, or no proper text"
        raise InputError(f"this is not JSON: {problem}", where=source) from None
    items = _items(value)
    if not items or len(items) > MAXIMUM_GPUS:
        raise InputError(f"the listing has {len(items)} GPUs", where=source, hint="give that of amd-smi topology")
    number = {item.get("gpu"): place for place, item in enumerate(items) if isinstance(item.get("gpu"), int)}
    if len(number) != len(items):
        raise InputError("some entry has no number of its own under 'gpu'", where=source)
    return _pairs(items, number, source)


def _items(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        lists = [entry for entry in value.values() if isinstance(entry, list)]
        value = lists[0] if lists else []
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _pairs(items: list[dict[str, Any]], number: dict[Any, int], source: str) -> Pairs:
    cells: dict[str, dict[tuple[int, int], str]] = {}
    keys = (
        ("type", "link_type", "link_type"),
        ("weight", "weight", "weight"),
        ("hops", "hops", "num_hops"),
        ("bandwidth", "numa_bandwidth", "bandwidth"),
    )
    for row, item in enumerate(items):
        links = item.get("links")
        for table, by_map, by_list in keys:
            named: dict[Any, Any] = {}
            if isinstance(links, list):
                named = {
                    link.get("gpu"): link.get(by_list)
                    for link in links
                    if isinstance(link, dict) and isinstance(link.get("gpu"), int)
                }
            elif isinstance(item.get(by_map), dict):
                named = {_peer(key): given for key, given in item[by_map].items()}
            for peer, given in named.items():
                if peer in number and isinstance(given, str | int):
                    cells.setdefault(table, {})[row, number[peer]] = str(given)
    if len(items) > 1 and "type" not in cells:
        raise InputError("no 'link_type' is given", where=source, hint="run amd-smi topology --json without options")
    return Pairs(
        gpus=len(items),
        types=cells.get("type", {}),
        weights=whole_numbers(cells.get("weight", {}), "weight", source),
        hops=whole_numbers(cells.get("hops", {}), "number of hops", source),
        bandwidths=cells.get("bandwidth", {}),
    )


def _peer(key: str) -> int | None:
    match = re.fullmatch(r"gpu_?([0-9]{1,5})", key, re.IGNORECASE)
    return int(match[1]) if match is not None else None
