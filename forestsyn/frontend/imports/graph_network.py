"""A plain graph as a network: which attribute is the bandwidth, in which unit, and which nodes are GPUs.

A graph that forestsyn wrote says all of that itself (`graph_export`). Any other is asked about: `--capacity-attr`,
`--unit`, `--gpu-attr`, and `--link` for edges without the attribute.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from forestsyn.errors import InputError
from forestsyn.frontend.imports.compose_network import Network, Rate
from forestsyn.frontend.imports.kinds import Found, Options, Question
from forestsyn.frontend.imports.simai_rates import checked_rate, link_answer, link_question, unit_answer
from forestsyn.graph.graph_files import Attributes, PlainGraph
from forestsyn.ir.topology import VertexKind

#: The mark of graphs that forestsyn wrote; an attribute of the graph.
MARK = "forestsyn_graph"
_USUAL = ("capacity", "bandwidth", "bw", "LinkSpeedRaw", "LinkSpeed", "speed", "weight")
#: Topology Zoo's own unit, in bits per second.
_OWN_UNIT = {"LinkSpeedRaw": "b/s"}
_NUMBER = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,18})?(?:[eE][+-]?[0-9]{1,2})?(?:/[0-9]{1,18})?")
_WITH_UNIT = re.compile(r"[0-9][0-9.eE+/-]*\s*[A-Za-z]+(?:/s)?")
_UNITS = ("GB/s", "Gb/s", "Mb/s", "b/s")
_MOST_VALUES = 6


def graph_found(graph: PlainGraph, *, kind: str, source: str, options: Options) -> Found:
    """The network of `graph`. Raises InputError; asks for what the attributes do not say."""
    network = Network(source)
    marked = str(graph.attributes.get(MARK, "")) == "1"
    names = _add_marked(network, graph) if marked else _add_nodes(network, graph, options)
    rates = _MarkedRates() if marked else _Rates(network, graph, options)
    for place, (tail, head, attributes) in enumerate(graph.edges):
        rate, why = rates.of(attributes, f"{source}, edge {place}")
        network.link(names[tail], names[head], rate, why, one_way=graph.directed)
    found = network.found(kind, options)
    if marked:
        _restore(found.document, graph, names)
    return found


def _add_marked(network: Network, graph: PlainGraph) -> dict[str, str]:
    names: dict[str, str] = {}
    hosts: dict[str, str] = {}
    kinds = tuple(VertexKind)
    for node, attributes in graph.nodes:
        kind, host = str(attributes.get("kind", "")), str(attributes.get("host", ""))
        if kind not in kinds:
            raise InputError(
                f"the kind of '{node[:60]}' is '{kind[:40]}', expected {', '.join(kinds)}", where=network.source
            )
        if host and host not in hosts:
            hosts[host] = network.host(host)
        full = str(attributes.get("label", node))
        device = full.removeprefix(f"{host}/") if host else full
        names[node] = network.add(kind, device, hosts.get(host))
    return names


def _restore(document: dict[str, Any], graph: PlainGraph, names: dict[str, str]) -> None:
    """Name, rates and the order of ranks, as they were."""
    for key in ("name", "rates"):
        if isinstance(graph.attributes.get(key), str):
            document[key] = graph.attributes[key]
    ranked = sorted((int(a["rank"]), names[n]) for n, a in graph.nodes if str(a.get("rank", "")).isdigit())
    order = [name for _, name in ranked]
    gpus = [names[node] for node, attributes in graph.nodes if attributes.get("kind") == VertexKind.GPU]
    if order and order != gpus:
        plain = "hosts" not in document
        document["ranks"] = [name.replace("/", ".") if plain else name for name in order]
        document["relay"] = len(order) < len(gpus)


class _MarkedRates:
    """Bandwidths in GB/s and latencies in µs, exact."""

    def of(self, attributes: Attributes, where: str) -> tuple[Rate | None, str | None]:
        """The rate of an edge. Raises InputError."""
        bandwidth = str(attributes.get("bandwidth", ""))
        if _NUMBER.fullmatch(bandwidth) is None:
            raise InputError(f"the bandwidth is '{bandwidth[:40]}', expected a number", where=where)
        latency = attributes.get("latency")
        rate = checked_rate(bandwidth, None if latency is None else f"{latency}us", where=where, unit="GB/s")
        return {**rate, "bw": bandwidth}, None


def _add_nodes(network: Network, graph: PlainGraph, options: Options) -> dict[str, str]:
    chosen = _gpu_nodes(network, graph, options)
    names: dict[str, str] = {}
    for node, attributes in graph.nodes:
        label = attributes.get("label", attributes.get("name"))
        text = str(label) if isinstance(label, str | int) and str(label).strip() else node
        text = f"v{text}" if text[:1].isdigit() and text.isdigit() else text
        names[node] = network.add("gpu" if node in chosen else "switch", text)
    return names


def _gpu_nodes(network: Network, graph: PlainGraph, options: Options) -> set[str]:
    """Nodes that are GPUs by `--gpu-attr NAME`, `NAME=VALUE` or `all`; all of them while it is asked."""
    everything = {node for node, _ in graph.nodes}
    if options.gpu_attribute is None:
        choices = ("all", *_value_choices(graph))
        network.ask(Question("--gpu-attr", "which nodes are GPUs (all, NAME or NAME=VALUE)", choices))
        return everything
    name, equals, value = options.gpu_attribute.partition("=")
    if options.gpu_attribute == "all":
        network.note("every node counts as one GPU, as --gpu-attr all says")
        return everything
    if not any(name in attributes for _, attributes in graph.nodes):
        raise InputError(
            f"no node has the attribute '{name[:40]}'", where="--gpu-attr", hint=f"known: {_names_text(graph)}"
        )
    false = ("", "0", "False", "false", "None", "no")
    return {
        node
        for node, attributes in graph.nodes
        if name in attributes and (str(attributes[name]) == value if equals else str(attributes[name]) not in false)
    }


def _value_choices(graph: PlainGraph) -> list[str]:
    counts: dict[str, Counter[str]] = {}
    for _, attributes in graph.nodes:
        for name, value in attributes.items():
            if isinstance(value, str | int):
                counts.setdefault(name, Counter())[str(value)[:40]] += 1
    few = {name: values for name, values in counts.items() if len(values) <= _MOST_VALUES}
    return [f"{name}={value}" for name, values in few.items() for value in values][:12]


def _names_text(graph: PlainGraph) -> str:
    return ", ".join(list(dict.fromkeys(name for _, attributes in graph.nodes for name in attributes))[:12]) or "none"


class _Rates:
    """The bandwidth of edges by an attribute."""

    def __init__(self, network: Network, graph: PlainGraph, options: Options) -> None:
        self.network, self.options = network, options
        self.attribute = self._choose(graph)
        self.unit = _OWN_UNIT.get(self.attribute or "") or unit_answer(options)
        self.link, self.why = link_answer(options)

    def _choose(self, graph: PlainGraph) -> str | None:
        """The attribute: given, or asked for when some could be it, or none."""
        given = self.options.capacity_attribute
        found = list(dict.fromkeys(name for *_, attributes in graph.edges for name in attributes))
        numeric = [
            name
            for name in sorted(found, key=lambda name: _USUAL.index(name) if name in _USUAL else len(_USUAL))
            if all(_is_rate(attributes[name]) for *_, attributes in graph.edges if name in attributes)
        ]
        if given is not None:
            if given == "none":
                return None
            if given not in found:
                raise InputError(
                    f"no edge has the attribute '{given[:40]}'",
                    where="--capacity-attr",
                    hint=f"known: {', '.join(found[:12]) or 'none; give --link'}",
                )
            return given
        if numeric:
            text = "which attribute is the bandwidth of an edge"
            self.network.ask(Question("--capacity-attr", text, (*numeric[:12], "none, with --link")))
        return None

    def of(self, attributes: Attributes, where: str) -> tuple[Rate | None, str | None]:
        """The rate of an edge, or None while something is asked. Raises InputError."""
        value = attributes.get(self.attribute) if self.attribute is not None else None
        if value is None or str(value).strip() == "":
            return self._without()
        text = str(value).strip()
        if not _is_rate(value):
            raise InputError(f"'{self.attribute}' is '{text[:40]}', expected a bandwidth", where=where)
        if _NUMBER.fullmatch(text) is None:
            return checked_rate(text, None, where=where), None
        if self.unit is None:
            self.network.ask(Question("--unit", f"the unit of '{self.attribute}'", _UNITS))
            return None, None
        why = f"'{self.attribute}' in {self.unit}" + ("" if self.attribute in _OWN_UNIT else ", as --unit says")
        return checked_rate(text, None, where=where, unit=self.unit), why

    def _without(self) -> tuple[Rate | None, str | None]:
        if self.link is None and "--capacity-attr" not in self.network.questions:
            what = f"edges without '{self.attribute}'" if self.attribute is not None else "its edges"
            self.network.ask(link_question(f"how fast {what} are"))
        return self.link, self.why


def _is_rate(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    text = str(value).strip()
    return _NUMBER.fullmatch(text) is not None or _WITH_UNIT.fullmatch(text) is not None
