"""Generic graphs: node-link JSON, GML, GraphML and DOT."""

from __future__ import annotations

import json
import re
from typing import Any

from forestsyn.errors import InputError
from forestsyn.frontend.imports.graph_network import graph_found
from forestsyn.frontend.imports.kinds import Found, Options
from forestsyn.frontend.imports.xml_tree import parse_xml
from forestsyn.graph.graph_files import Attributes, PlainGraph, parse_dot, parse_gml, parse_graphml

_EDGE_KEYS = ("links", "edges")


class NodeLinkJson:
    """Node-link JSON as networkx and d3 write it: `nodes`, and `links` or `edges`."""

    kind = "graph-json"
    title = "node-link JSON"
    helps: str | None = None

    def recognizes(self, name: str, head: str) -> int:
        """How sure, 0 to 100."""
        if not head.lstrip().startswith("{"):
            return 0
        if '"nodes"' in head and any(f'"{key}"' in head for key in (*_EDGE_KEYS, "directed", "multigraph")):
            return 80
        return 70 if '"directed"' in head and '"multigraph"' in head else 0

    def read(self, text: str, *, source: str, options: Options) -> Found:
        """The network. Raises InputError."""
        return graph_found(parse_node_link(text, source=source), kind=self.kind, source=source, options=options)


class GmlText:
    """GML."""

    kind = "graph-gml"
    title = "GML"
    helps: str | None = None

    def recognizes(self, name: str, head: str) -> int:
        """How sure, 0 to 100."""
        found = re.search(r"^\s*graph\s*\[", head, re.MULTILINE)
        return 90 if found and re.search(r"\bnode\s*\[", head) else 50 if found else 0

    def read(self, text: str, *, source: str, options: Options) -> Found:
        """The network. Raises InputError."""
        return graph_found(parse_gml(text, source=source), kind=self.kind, source=source, options=options)


class GraphMlText:
    """GraphML."""

    kind = "graph-graphml"
    title = "GraphML"
    helps: str | None = None

    def recognizes(self, name: str, head: str) -> int:
        """How sure, 0 to 100."""
        return 95 if "<graphml" in head else 0

    def read(self, text: str, *, source: str, options: Options) -> Found:
        """The network. Raises InputError."""
        parse_xml(text, source=source)  # the hardened parser refuses what could expand
        body = re.sub(r"^\s*<\?xml[^>]*\?>", "", text.removeprefix("\ufeff"))
        return graph_found(parse_graphml(body, source=source), kind=self.kind, source=source, options=options)


class DotText:
    """DOT, the language of Graphviz."""

    kind = "graph-dot"
    title = "DOT"
    helps: str | None = None

    def recognizes(self, name: str, head: str) -> int:
        """How sure, 0 to 100."""
        start = re.search(r'^\s*(?:strict\s+)?(?:di)?graph\b\s*(?:[\w.-]+|"[^"\n]*")?\s*\{', head, re.MULTILINE)
        return 85 if start else 0

    def read(self, text: str, *, source: str, options: Options) -> Found:
        """The network. Raises InputError."""
        return graph_found(parse_dot(text, source=source), kind=self.kind, source=source, options=options)


def parse_node_link(text: str, *, source: str) -> PlainGraph:
    """The graph of a node-link JSON text; decimal numbers stay texts, so that they are exact. Raises InputError."""
    try:
        value = json.loads(text.removeprefix("\ufeff"), parse_float=str, parse_constant=str, parse_int=_whole)
    except (ValueError, RecursionError) as error:
        where = f"{source}:{error.lineno}" if isinstance(error, json.JSONDecodeError) else source
        raise InputError(f"this is not JSON: {str(error)[:80]}", where=where) from None
    key = next((key for key in _EDGE_KEYS if isinstance(value, dict) and isinstance(value.get(key), list)), None)
    if key is None or not isinstance(value.get("nodes"), list):
        raise InputError("expected the lists 'nodes' and 'links' (or 'edges')", where=source)
    nodes: list[tuple[str, Attributes]] = []
    for place, node in enumerate(value["nodes"]):
        attributes = _attributes(node, f"{source}, node {place}")
        nodes.append((_identity(attributes.pop("id", attributes.get("name", place)), source), attributes))
    known = {name for name, _ in nodes}
    edges: list[tuple[str, str, Attributes]] = []
    for place, edge in enumerate(value[key]):
        where = f"{source}, edge {place}"
        attributes = _attributes(edge, where)
        if "source" not in attributes or "target" not in attributes:
            raise InputError("'source' or 'target' is missing", where=where)
        tail, head = (_identity(attributes.pop(end), where) for end in ("source", "target"))
        if tail not in known or head not in known:
            raise InputError(f"there is no node '{tail if tail not in known else head}'"[:120], where=where)
        edges.append((tail, head, attributes))
    if len(known) < len(nodes):
        raise InputError("two nodes have the same id", where=source)
    graph = value.get("graph")
    return PlainGraph(
        directed=value.get("directed") is True,
        attributes=graph if isinstance(graph, dict) else {},
        nodes=tuple(nodes),
        edges=tuple(edges),
    )


def _whole(text: str) -> int | str:
    return int(text) if len(text) <= 18 else text


def _attributes(value: Any, where: str) -> Attributes:
    if not isinstance(value, dict):
        raise InputError("expected a mapping", where=where)
    return dict(value)


def _identity(value: Any, where: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InputError("an id must be a text or a whole number", where=where)
    return str(value)
