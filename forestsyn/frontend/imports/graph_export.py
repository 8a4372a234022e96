"""A topology in other formats, so that other tools can take it and `import` can read it back unchanged.

Generic graphs carry everything: kinds, hosts, exact bandwidths (GB/s), latencies (µs), the order of ranks. ns-3's
text and TACCL's matrix carry what those formats can, and refuse a topology that would lose links.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from forestsyn.errors import UnsupportedError
from forestsyn.frontend.imports.compose_network import Network
from forestsyn.frontend.imports.graph_network import MARK
from forestsyn.frontend.imports.kinds import Found, Options
from forestsyn.frontend.imports.simai_rates import decimal
from forestsyn.frontend.imports.writing import document_text
from forestsyn.graph.graph_files import PlainGraph, emit_dot, emit_gml, emit_graphml
from forestsyn.ir.topology import Topology, VertexKind


def export_kinds() -> tuple[str, ...]:
    """What `emit_topology` can write."""
    return tuple(_emitters())


def emit_topology(topology: Topology, kind: str) -> str:
    """The text of `topology` in the format `kind`. Raises UnsupportedError when the format cannot hold it."""
    return _emitters()[kind](topology)


def _emitters() -> dict[str, Callable[[Topology], str]]:
    return {
        "yaml": _emit_yaml,
        "graph-json": _emit_node_link,
        "graph-gml": lambda topology: emit_gml(_plain_graph(topology, identity=str)),
        "graph-graphml": lambda topology: emit_graphml(_plain_graph(topology, identity=str)),
        "graph-dot": lambda topology: emit_dot(_plain_graph(topology, identity=str)),
        "ns3-topology": _emit_ns3,
        "taccl-topology": _emit_taccl,
    }


def _emit_yaml(topology: Topology) -> str:
    """Every vertex and link written out, templates found where hosts are equal."""
    network = Network(topology.name)
    for vertex in topology.vertices:
        device = vertex.name.removeprefix(f"{vertex.host}/") if vertex.host else vertex.name
        network.add(vertex.kind.value, device, vertex.host)
    pairs = {(link.tail, link.head): link for link in topology.links}
    for (tail, head), link in pairs.items():
        back = pairs.get((head, tail))
        same = back is not None and (back.bandwidth, back.latency) == (link.bandwidth, link.latency)
        if same and head < tail:
            continue
        rate: dict[str, Any] = {"bw": _number(link.bandwidth)}
        if link.latency is not None:
            rate["latency"] = decimal(link.latency)
        names = topology.vertices[tail].name, topology.vertices[head].name
        network.link(*names, rate, one_way=not same)
    found = network.found("yaml", Options(rates=topology.rates))
    document = {**found.document, "name": topology.name}
    gpus = [place for place, vertex in enumerate(topology.vertices) if vertex.kind is VertexKind.GPU]
    if list(topology.ranks) != gpus:
        document["ranks"] = [topology.rank_name(rank) for rank in range(topology.rank_count)]
        document["relay"] = topology.rank_count < len(gpus)
    return document_text(Found(kind="a topology", document=document, notes=topology.notes))


def _number(value: Fraction) -> int | str:
    return value.numerator if value.denominator == 1 else decimal(value)


def _plain_graph(topology: Topology, *, identity: Callable[[str], str]) -> PlainGraph:
    rank_of = {vertex: rank for rank, vertex in enumerate(topology.ranks)}
    nodes = []
    for place, vertex in enumerate(topology.vertices):
        attributes: dict[str, Any] = {"kind": vertex.kind.value}
        if vertex.host is not None:
            attributes["host"] = vertex.host
        if place in rank_of:
            attributes["rank"] = rank_of[place]
        nodes.append((identity(vertex.name), attributes))
    edges = []
    for link in topology.links:
        # Text keeps fractions exact in every one of these formats.
        values: dict[str, Any] = {"bandwidth": decimal(link.bandwidth)}
        if link.latency is not None:
            values["latency"] = decimal(link.latency)
        edges.append((topology.vertices[link.tail].name, topology.vertices[link.head].name, values))
    attributes = {MARK: "1", "name": topology.name, "rates": topology.rates, "unit": "GB/s"}
    return PlainGraph(directed=True, attributes=attributes, nodes=tuple(nodes), edges=tuple(edges))


def _emit_node_link(topology: Topology) -> str:
    graph = _plain_graph(topology, identity=str)
    value = {
        "directed": True,
        "multigraph": False,
        "graph": graph.attributes,
        "nodes": [{"id": node, **attributes} for node, attributes in graph.nodes],
        "links": [{"source": tail, "target": head, **attributes} for tail, head, attributes in graph.edges],
    }
    return json.dumps(value, indent=1) + "\n"


def _emit_ns3(topology: Topology) -> str:
    """Full-duplex links, GPUs before switches; names and hosts are lost."""
    order = [*topology.ranks, *(p for p in range(len(topology.vertices)) if p not in set(topology.ranks))]
    place = {vertex: number for number, vertex in enumerate(order)}
    bandwidths = {(link.tail, link.head): link.bandwidth for link in topology.links}
    lines = []
    for link in topology.links:
        if bandwidths.get((link.head, link.tail)) != link.bandwidth:
            raise UnsupportedError(
                f"{_link_name(topology, link.tail, link.head)} has two speeds, and ns-3's links have one",
                target="ns3-topology",
                hint="write graph-json, which keeps each direction",
            )
        megabits = link.bandwidth * 8000
        if megabits.denominator != 1:
            raise UnsupportedError(
                f"{_link_name(topology, link.tail, link.head)} has no whole number of Mb/s", target="ns3-topology"
            )
        if link.tail < link.head:
            delay = decimal((link.latency or Fraction(0)) * 1000)
            lines.append(f"{place[link.tail]} {place[link.head]} {megabits}Mbps {delay}ns 0")
    count = topology.rank_count
    switches = " ".join(str(number) for number in range(count, len(order)))
    return "\n".join((f"{len(order)} {len(order) - count} {len(lines)}", switches, *lines)) + "\n"


def _emit_taccl(topology: Topology) -> str:
    """TACCL's own matrices for GPUs linked directly: `links[dst][src]` counts links of one rate."""
    count = topology.rank_count
    if count != len(topology.vertices):
        other = next(v.name for p, v in enumerate(topology.vertices) if p not in set(topology.ranks))
        raise UnsupportedError(
            f"TACCL's matrix holds GPUs only, and {other} is none",
            target="taccl-topology",
            hint="write graph-json, which keeps switches",
        )
    place = {vertex: rank for rank, vertex in enumerate(topology.ranks)}
    unit = _common_unit([link.bandwidth for link in topology.links])
    links = [[0] * count for _ in range(count)]
    inverse: list[list[float]] = [[0.0] * count for _ in range(count)]
    for link in topology.links:
        links[place[link.head]][place[link.tail]] = int(link.bandwidth / unit)
        inverse[place[link.head]][place[link.tail]] = float(1000 / link.bandwidth)
    value = {
        "name": topology.name,
        "gpus_per_node": count,
        "nics_per_node": 0,
        "alpha": 0,
        "links": links,
        "invbws": inverse,
        "betas": inverse,
        "link_GBps": decimal(unit),
    }
    return json.dumps(value, indent=1) + "\n"


def _common_unit(values: list[Fraction]) -> Fraction:
    """The largest rate of which all `values` are whole multiples."""
    unit = values[0]
    for value in values[1:]:
        while value:
            unit, value = value, unit % value
    return unit


def _link_name(topology: Topology, tail: int, head: int) -> str:
    return f"{topology.vertices[tail].name} - {topology.vertices[head].name}"
