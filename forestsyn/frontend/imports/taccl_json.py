"""TACCL's topology JSON: times of one message size for a template that its command line names.

`node_invbws_list` holds µs per MB of each class of link: 23 is 1000/23 GB/s. Files for other sizes than 1 MB hold the
same times in other units, which no key names; there the speed of the first class is asked for, and the others follow
from it. A file with matrices (`links`, `invbws`) needs no template.
"""

from __future__ import annotations

import json
import re
from fractions import Fraction
from typing import Any

from forestsyn.errors import InputError
from forestsyn.frontend.document import located
from forestsyn.frontend.imports.answers import NIC_CHOICES
from forestsyn.frontend.imports.compose_network import Network, Rate
from forestsyn.frontend.imports.kinds import Found, Options, Question
from forestsyn.frontend.imports.simai_rates import checked_rate, decimal, link_answer
from forestsyn.frontend.quantity import parse_bandwidth

#: Pairs of a DGX-1V by the number of NVLinks that join them, in the numbering of TACCL and SCCL.
_TWO_LINKS = ((0, 1), (0, 4), (1, 3), (2, 3), (2, 6), (4, 5), (5, 7), (6, 7))
_ONE_LINK = ((0, 2), (0, 3), (1, 2), (1, 5), (3, 7), (4, 6), (4, 7), (5, 6))
_TEMPLATES = ("ndv2", "dgx2")
_MAXIMUM_GPUS = 4096
_NUMBER = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,12})?(?:[eE][+-]?[0-9])?(?:/[0-9]{1,12})?")


class TacclTopology:
    """The reader."""

    kind = "taccl-topology"
    title = "TACCL topology JSON"
    helps: str | None = None

    def recognizes(self, name: str, head: str) -> int:
        """How sure, 0 to 100."""
        return 95 if '"gpus_per_node"' in head and '"nics_per_node"' in head else 0

    def read(self, text: str, *, source: str, options: Options) -> Found:
        """The hosts. Raises InputError."""
        value = load_object(text, source=source)
        if "links" in value:
            return _matrix_found(value, self.kind, source, options)
        return _template_found(value, self.kind, source, options)


class TacclSketch:
    """A sketch restricts the search over a topology, and is none itself."""

    kind = "taccl-sketch"
    title = "TACCL sketch JSON"
    helps: str | None = TacclTopology.kind

    def recognizes(self, name: str, head: str) -> int:
        """How sure, 0 to 100."""
        return 90 if '"intranode_sketch"' in head or '"internode_sketch"' in head else 0

    def read(self, text: str, *, source: str, options: Options) -> Found:
        """Refuse."""
        raise InputError(
            "a TACCL sketch says how to search, not how fast links are",
            where=source,
            hint="give TACCL's topology file (topo-*.json), beside it or alone",
        )


def load_object(text: str, *, source: str) -> dict[str, Any]:
    """A JSON object; decimal numbers stay texts, so that they are exact. Raises InputError."""
    try:
        value = json.loads(text.removeprefix("\ufeff"), parse_float=str, parse_constant=str)
    except (ValueError, RecursionError) as error:
        where = f"{source}:{error.lineno}" if isinstance(error, json.JSONDecodeError) else source
        raise InputError(f"this is not JSON: {str(error)[:80]}", where=where) from None
    if not isinstance(value, dict):
        raise InputError("expected a JSON object", where=source)
    return value


def whole(value: dict[str, Any], key: str, source: str, *, minimum: int = 1, maximum: int = _MAXIMUM_GPUS) -> int:
    """The whole number at `key`. Raises InputError."""
    number = value.get(key)
    if isinstance(number, bool) or not isinstance(number, int) or not minimum <= number <= maximum:
        shown = "missing" if number is None else str(number)[:40]
        raise InputError(f"'{key}' is {shown}, expected {minimum} to {maximum:,}", where=source)
    return number


def _template_found(value: dict[str, Any], kind: str, source: str, options: Options) -> Found:
    gpus = whole(value, "gpus_per_node", source)
    nics = whole(value, "nics_per_node", source, minimum=0)
    network = Network(source)
    template = _template(value, gpus, options, network, source)
    hosts = options.hosts
    if hosts is None:
        network.ask(Question("--hosts", "how many nodes there are", ("1", "2", "4", "8")))
        hosts = 1
    if not 1 <= hosts <= 1024:
        raise InputError(f"{hosts} hosts, expected 1 to 1,024", where="--hosts")
    classes = _class_rates(value, 2 if template == "ndv2" else 1, options, network, source)
    for number in range(hosts):
        _add_host(network, network.host(f"n{number}"), (gpus, nics, hosts), template, classes)
    if hosts > 1 and nics:
        _add_fabric(network, hosts, nics, classes[-1])
    return network.found(kind, options)


def _template(value: dict[str, Any], gpus: int, options: Options, network: Network, source: str) -> str:
    """TACCL names the template on its command line; the file's name for itself is a hint of it."""
    name = str(value.get("name", "")).lower()
    template = (options.machine or "").lower() or next((known for known in _TEMPLATES if name.startswith(known)), "")
    if not template:
        network.ask(Question("--machine", "which of TACCL's templates it is for", _TEMPLATES))
        return "dgx2"
    if template not in _TEMPLATES:
        raise InputError(
            f"no template of TACCL is called '{template[:40]}'", where="--machine", hint=", ".join(_TEMPLATES)
        )
    if template == "ndv2" and gpus != 8:
        raise InputError(f"an ndv2 has 8 GPUs, the file says {gpus}", where=source)
    if options.machine is None:
        network.note(f"the template is taken to be {template}, by the name '{str(value['name'])[:40]}'")
    return template


def _class_rates(
    value: dict[str, Any], count: int, options: Options, network: Network, source: str
) -> list[tuple[Rate | None, str]]:
    """The rate of each class of link inside a node, then that of the NIC."""
    listed = value.get("node_betas_list")
    if not isinstance(listed, list) or len(listed) < count:
        raise InputError(f"'node_betas_list' needs {count} values", where=source)
    times = [_time(item, "node_betas_list", source) for item in (*listed[:count], value.get("remote_beta"))]
    if re.search(r"(?<![0-9])1MB", str(value.get("name", ""))):
        why = "us per MB, as TACCL counts it"
        alphas = [value.get("alpha", 0)] * count + [value.get("remote_alpha", 0)]
        return [
            ({**_rate(Fraction(1000) / time, source), **_latency(alpha, source)}, f"{decimal(time)} {why}")
            for time, alpha in zip(times, alphas, strict=True)
        ]
    given, _ = link_answer(options)
    if given is None:
        text = "how fast the first class of links inside a node is, for its times are of another size than 1 MB"
        network.ask(Question("--link", text, ("50GB/s", "150GB/s", *NIC_CHOICES[:1])))
        return [(None, "")] * (count + 1)
    with located("--link"):
        first = parse_bandwidth(given["bw"], "Gb/s")
    why = "in proportion to --link, by the times of the file"
    return [(_rate(first * times[0] / time, source), why) for time in times]


def _time(value: Any, key: str, source: str) -> Fraction:
    text = str(value)
    if _NUMBER.fullmatch(text) is None or Fraction(text) <= 0:
        raise InputError(f"'{key}' holds '{text[:40]}', expected a time above 0", where=source)
    return Fraction(text)


def _latency(alpha: Any, source: str) -> Rate:
    if _NUMBER.fullmatch(str(alpha)) is None:
        raise InputError(f"'alpha' is '{str(alpha)[:40]}', expected microseconds", where=source)
    return {"latency": f"{alpha} us"} if Fraction(str(alpha)) else {}


def _rate(bandwidth: Fraction, source: str) -> Rate:
    text = decimal(bandwidth)
    checked_rate(text, None, where=source, unit="GB/s")
    return {"bw": int(text) if text.isdigit() else text}


def _add_host(
    network: Network, host: str, sizes: tuple[int, int, int], template: str, classes: list[tuple[Rate | None, str]]
) -> None:
    gpus, nics, hosts = sizes
    names = [network.add("gpu", f"gpu{number}", host) for number in range(gpus)]
    if template == "ndv2":
        for pairs, (rate, why) in zip((_TWO_LINKS, _ONE_LINK), classes, strict=False):
            for one, other in pairs:
                network.link(names[one], names[other], rate, why)
    else:
        switch = network.add("switch", "nvsw", host)
        for name in names:
            network.link(name, switch, *classes[0])
    if hosts > 1:
        ports = [network.add("nic", f"nic{number}", host) for number in range(nics)]
        for number, name in enumerate(names if ports else []):
            rate, why = classes[-1]
            network.link(name, ports[number * nics // gpus], rate, f"{why}; a GPU is taken to fill its NIC")


def _add_fabric(network: Network, hosts: int, nics: int, rate: tuple[Rate | None, str]) -> None:
    switch = network.add("switch", "ib0")
    for host in range(hosts):
        for nic in range(nics):
            network.link(f"n{host}/nic{nic}", switch, *rate)
    network.note("all NICs are taken to be on one switch; the file tells the speed between nodes only")


def _matrix_found(value: dict[str, Any], kind: str, source: str, options: Options) -> Found:
    """GPUs linked by matrices: `links[dst][src]` of `link_GBps` each, or times of `invbws[dst][src]` in µs per MB."""
    gpus = whole(value, "gpus_per_node", source, maximum=512)
    links = _matrix(value, "links", gpus, source)
    unit = _time(value["link_GBps"], "link_GBps", source) if "link_GBps" in value else None
    times = _matrix(value, "invbws", gpus, source) if unit is None else None
    network = Network(source)
    names = [network.add("gpu", f"gpu{number}") for number in range(gpus)]
    for head in range(gpus):
        for tail in range(gpus):
            count = _cell(links, head, tail, "links", source)
            if not count:
                continue
            if unit is not None:
                bandwidth = unit * count
            else:
                assert times is not None, "read above"
                time = _cell(times, head, tail, "invbws", source)
                if not time:
                    raise InputError(f"'invbws' is 0 where 'links' is {count}: [{head}][{tail}]", where=source)
                bandwidth = Fraction(1000) / time
            why = None if unit is not None else "us per MB, as TACCL counts it"
            network.link(names[tail], names[head], _rate(bandwidth, source), why, one_way=True)
    return network.found(kind, options)


def _matrix(value: dict[str, Any], key: str, size: int, source: str) -> list[list[Any]]:
    matrix = value.get(key)
    square = isinstance(matrix, list) and len(matrix) == size
    if not square or not all(isinstance(row, list) and len(row) == size for row in matrix or ()):
        raise InputError(f"'{key}' is no matrix of {size} x {size}", where=source)
    assert isinstance(matrix, list), "just found"
    return matrix


def _cell(matrix: list[list[Any]], row: int, column: int, key: str, source: str) -> Fraction:
    text = str(matrix[row][column])
    if _NUMBER.fullmatch(text) is None:
        raise InputError(f"'{key}'[{row}][{column}] is '{text[:40]}', expected a number", where=source)
    return Fraction(text)
