"""Generic graph files to plain nodes and edges, and back, by networkx (GML, GraphML) and pydot (DOT).

The libraries parse; nothing here knows what an attribute means. They raise many kinds of exception on broken text,
so that any of them is turned into one InputError.
"""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from collections.abc import Callable
from typing import Any

import msgspec

from forestsyn.errors import InputError

MAXIMUM_BYTES = 16 * 2**20
#: A DOT parser of a general kind needs a hundred times the time of the others.
MAXIMUM_DOT_BYTES = 2**19
_MAXIMUM_DEPTH = 40

Attributes = dict[str, Any]


class PlainGraph(msgspec.Struct, frozen=True, kw_only=True):
    """nodes: (identity, attributes) in order. edges: (tail, head, attributes), parallel ones kept."""

    directed: bool
    attributes: Attributes
    nodes: tuple[tuple[str, Attributes], ...]
    edges: tuple[tuple[str, str, Attributes], ...]


def parse_gml(text: str, *, source: str) -> PlainGraph:
    """The graph of a GML text. Raises InputError."""
    _check(text, "[", source, MAXIMUM_BYTES // 4)
    if re.search(r"\bgraph\s*\[", text) is None:
        raise InputError("this is not GML: 'graph [' is missing", where=source)
    if re.search(r"^\s*multigraph\s", text, re.MULTILINE) is None:
        # Without the word, the parser refuses parallel edges, and those are parallel cables here.
        text = re.sub(r"\bgraph\s*\[", "graph [\n  multigraph 1\n", text, count=1)

    def parse() -> Any:
        import networkx

        return networkx.parse_gml(text, label="id")

    return _plain(_parsed(parse, "GML", source), source)


def parse_graphml(text: str, *, source: str) -> PlainGraph:
    """The graph of a GraphML text, which the caller has found to declare no entities. Raises InputError."""
    _check(text, "", source, MAXIMUM_BYTES)

    def parse() -> Any:
        import networkx

        return networkx.parse_graphml(text, force_multigraph=True)

    return _plain(_parsed(parse, "GraphML", source), source)


def parse_dot(text: str, *, source: str) -> PlainGraph:
    """The graph of a DOT text, subgraphs included. Raises InputError, also when pydot is not installed."""
    _check(text, "{[<", source, MAXIMUM_DOT_BYTES)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            import pydot
    except ImportError:
        raise InputError(
            "reading DOT needs the package pydot", where=source, hint="pip install 'forestsyn[dot]'"
        ) from None

    def parse() -> Any:
        # pydot prints what it cannot parse, and uses names that its own parser has deprecated.
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore", DeprecationWarning)
            graphs = pydot.graph_from_dot_data(text)
        if not graphs or len(graphs) != 1:
            raise ValueError(f"{len(graphs or ())} graphs found, expected 1")
        return graphs[0]

    graph = _parsed(parse, "DOT", source)
    nodes: dict[str, Attributes] = {}
    edges: list[tuple[str, str, Attributes]] = []
    _collect_dot(graph, nodes, edges, source)
    return PlainGraph(
        directed=graph.get_type() == "digraph",
        attributes={name: _unquoted(value) for name, value in graph.get_attributes().items()},
        nodes=tuple(nodes.items()),
        edges=tuple(edges),
    )


def emit_gml(graph: PlainGraph) -> str:
    """`graph` as GML."""
    import networkx

    return "\n".join(networkx.generate_gml(_networkx(graph))) + "\n"


def emit_graphml(graph: PlainGraph) -> str:
    """`graph` as GraphML."""
    import networkx

    return "\n".join(networkx.generate_graphml(_networkx(graph))) + "\n"


def emit_dot(graph: PlainGraph) -> str:
    """`graph` as DOT; every identity and value is quoted."""
    arrow = "->" if graph.directed else "--"
    lines = ["digraph {" if graph.directed else "graph {"]
    lines += [f"  {name}={_quoted(value)};" for name, value in graph.attributes.items()]
    lines += [f"  {_quoted(node)}{_dot_attributes(attributes)};" for node, attributes in graph.nodes]
    lines += [
        f"  {_quoted(tail)} {arrow} {_quoted(head)}{_dot_attributes(attributes)};"
        for tail, head, attributes in graph.edges
    ]
    return "\n".join((*lines, "}")) + "\n"


def _check(text: str, brackets: str, source: str, maximum: int) -> None:
    if len(text) > maximum:
        raise InputError(f"the text is larger than {maximum // 1024:,} KiB", where=source)
    closing = {"[": "]", "{": "}", "<": ">"}
    for bracket in brackets:
        depth = deepest = 0
        for sign in re.findall(re.escape(bracket) + "|" + re.escape(closing[bracket]), text):
            depth += 1 if sign == bracket else -1
            deepest = max(deepest, depth)
        if deepest > _MAXIMUM_DEPTH and bracket != "<":
            raise InputError(f"'{bracket}' is nested more than {_MAXIMUM_DEPTH} deep", where=source)


def _parsed(parse: Callable[[], Any], what: str, source: str) -> Any:
    try:
        return parse()
    except InputError:
        raise
    except Exception as error:
        reason = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise InputError(f"this is not {what}: {reason}", where=source) from None


def _plain(graph: Any, source: str) -> PlainGraph:
    # An edge may spell the number of its node otherwise (0 for 0.0): the node's own spelling counts.
    names = {node: str(node) for node in graph.nodes}
    if len(set(names.values())) < len(names):
        raise InputError("two nodes have the same id", where=source)
    return PlainGraph(
        directed=bool(graph.is_directed()),
        attributes={str(name): value for name, value in graph.graph.items()},
        nodes=tuple((names[node], dict(attributes)) for node, attributes in graph.nodes(data=True)),
        edges=tuple(
            (names[tail], names[head], dict(attributes)) for tail, head, attributes in graph.edges(data=True)
        ),
    )


def _networkx(graph: PlainGraph) -> Any:
    import networkx

    made: Any = networkx.MultiDiGraph() if graph.directed else networkx.MultiGraph()
    made.graph.update(graph.attributes)
    for node, attributes in graph.nodes:
        made.add_node(node, **attributes)
    for tail, head, attributes in graph.edges:
        made.add_edge(tail, head, **attributes)
    return made


def _collect_dot(
    graph: Any, nodes: dict[str, Attributes], edges: list[tuple[str, str, Attributes]], source: str
) -> None:
    """Nodes and edges of `graph` and of its subgraphs, in the order of the text."""
    waiting = [graph]
    while waiting:
        current = waiting.pop()
        waiting.extend(reversed(current.get_subgraphs()))
        for node in current.get_nodes():
            name = _unquoted(node.get_name())
            if name not in ("node", "edge", "graph", ""):
                nodes.setdefault(name, {}).update({k: _unquoted(v) for k, v in node.get_attributes().items()})
        for edge in current.get_edges():
            ends = (edge.get_source(), edge.get_destination())
            if not all(isinstance(end, str) for end in ends):
                raise InputError("an edge of the DOT text ends at a subgraph", where=source, hint="list its nodes")
            tail, head = (_unquoted(_without_port(end)) for end in ends)
            nodes.setdefault(tail, {})
            nodes.setdefault(head, {})
            edges.append((tail, head, {k: _unquoted(v) for k, v in edge.get_attributes().items()}))


def _without_port(name: str) -> str:
    """`a:p0` is port p0 of node a."""
    quoted = re.match(r'"(?:[^"\\]|\\.)*"', name)
    return quoted[0] if quoted else name.partition(":")[0]


def _unquoted(value: Any) -> str:
    text = "" if value is None else str(value)
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return text[1:-1].replace('\\"', '"')
    return text


def _quoted(value: Any) -> str:
    return '"' + str(value).replace('"', '\\"') + '"'


def _dot_attributes(attributes: Attributes) -> str:
    if not attributes:
        return ""
    return " [" + ", ".join(f"{name}={_quoted(value)}" for name, value in attributes.items()) + "]"
