"""Where everything of a topology goes: devices inside their host, hosts in a row, the fabric above.

A host with switches has its NICs on top, its GPUs below them, then its switches, then its CPUs. A host whose GPUs are
joined directly gets the shape of its network instead. Many alike hosts are drawn once in full; of the others a card
is left, or one card for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from forestsyn.ir.topology import Topology, VertexKind
from forestsyn.show.arrange import Arrangement, arrange
from forestsyn.show.groups import Group, Neighbours, vertex_signature
from forestsyn.show.shapes import text_width

GPU_STEP, GPU_WIDTH, GPU_HEIGHT = 54.0, 46.0, 26.0
NIC_HEIGHT, SWITCH_HEIGHT = 20.0, 24.0
ROW_STEP = 58.0
PADDING, TITLE_HEIGHT = 16.0, 24.0
DISC_STEP, DISC_RADIUS = 66.0, 18.0
#: GPUs of one direct network that are drawn with names, and drawn at all.
NAMED_DISCS, MOST_DISCS = 100, 400
#: Devices of one row of a host; of more, alike ones are told by their number.
MOST_IN_ROW, SHOWN_IN_ROW = 16, 8


class Node(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A drawn device, or several that are told by their number.

    x, y: its centre. wide: lines from x in `domain` end on it at the matching place of its width. disc: drawn round.
    """

    vertices: tuple[int, ...]
    x: float
    y: float
    width: float
    height: float
    label: str
    style: str
    disc: bool = False
    wide: bool = False
    domain: tuple[float, float] = (0, 0)
    quiet: bool = False


class Block(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A group drawn in full; nodes are placed from its upper left corner. direct: GPUs joined directly."""

    group: Group
    width: float
    height: float
    nodes: tuple[Node, ...]
    direct: bool
    shape: str = ""
    wraps: frozenset[tuple[int, int]] = frozenset()


def local_name(topology: Topology, vertex: int) -> str:
    """The name of a device within its host."""
    device = topology.vertices[vertex]
    return device.name.removeprefix(f"{device.host}/") if device.host else device.name


def build_block(topology: Topology, neighbours: Neighbours, group: Group) -> Block:
    """Lay a group out in full."""
    gpus = [vertex for vertex in group.members if topology.vertices[vertex].kind is VertexKind.GPU]
    index = {vertex: place for place, vertex in enumerate(gpus)}
    edges = sorted(
        {
            (index[vertex], index[other])
            for vertex in gpus
            for other, _, _ in neighbours.of(vertex)
            if other in index and index[vertex] < index[other]
        }
    )
    others = [vertex for vertex in group.members if vertex not in index]
    inner = {other for vertex in gpus for other, _, _ in neighbours.of(vertex) if other in set(others)}
    mesh = len(edges) >= len(gpus) - 1 and len(gpus) > 2 and not (inner and len(edges) < 2 * len(gpus) - 4)
    if mesh and len(gpus) <= MOST_DISCS:
        return _direct_block(topology, neighbours, group, gpus, others, edges)
    if mesh or (len(gpus) > MOST_DISCS and not inner and edges):
        return _summary_block(topology, group, gpus, edges)
    return _switched_block(topology, neighbours, group, gpus, others)


def _direct_block(
    topology: Topology,
    neighbours: Neighbours,
    group: Group,
    gpus: Sequence[int],
    others: Sequence[int],
    edges: Sequence[tuple[int, int]],
) -> Block:
    found = arrange(len(gpus), edges)
    nics = [vertex for vertex in others if topology.vertices[vertex].kind is VertexKind.NIC]
    rest = [vertex for vertex in others if vertex not in set(nics)]
    least = min(len(nics), MOST_IN_ROW) * 44.0 + 2 * PADDING
    nodes, width, height = _discs(topology, group, gpus, found, least, NIC_HEIGHT + PADDING if nics else 0.0)
    wraps = frozenset((gpus[tail], gpus[head]) for tail, head in found.wraps)
    positions = {node.vertices[0]: node.x for node in nodes}
    upper = _nic_row(topology, neighbours, nics, positions, TITLE_HEIGHT + PADDING + NIC_HEIGHT / 2, width)
    below, extra = _rows(topology, neighbours, rest, positions, height, width)
    return Block(
        group=group,
        width=width,
        height=height + extra,
        nodes=(*nodes, *upper, *below),
        direct=True,
        shape=found.shape,
        wraps=wraps,
    )


def _discs(
    topology: Topology, group: Group, gpus: Sequence[int], found: Arrangement, least: float, above: float
) -> tuple[tuple[Node, ...], float, float]:
    named = len(gpus) <= NAMED_DISCS
    step, radius = (DISC_STEP, DISC_RADIUS) if named else (30.0, 8.0)
    left, top = min(x for x, _ in found.points), min(y for _, y in found.points)
    right, bottom = max(x for x, _ in found.points), max(y for _, y in found.points)
    margin = PADDING + radius + (step * 0.2 if found.wraps else 4)
    head = above + (TITLE_HEIGHT if group.name else 0.0)
    width = max(2 * margin + (right - left) * step, least)
    shift = (width - (right - left) * step) / 2
    nodes = tuple(
        Node(
            vertices=(vertex,),
            x=shift + (x - left) * step,
            y=head + margin + (y - top) * step,
            width=2 * radius,
            height=2 * radius,
            label=_disc_label(local_name(topology, vertex)) if named else "",
            style="gpu",
            disc=True,
        )
        for vertex, (x, y) in zip(gpus, found.points, strict=True)
    )
    return nodes, width, head + 2 * margin + (bottom - top) * step


def _disc_label(name: str) -> str:
    return name if len(name) <= 5 else name.lstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") or name


def _summary_block(topology: Topology, group: Group, gpus: Sequence[int], edges: Sequence[tuple[int, int]]) -> Block:
    shape = arrange(len(gpus), edges).shape if len(gpus) <= 20_000 else "direct network"
    first, last = local_name(topology, gpus[0]), local_name(topology, gpus[-1])
    node = Node(
        vertices=tuple(group.members),
        x=230,
        y=60,
        width=400,
        height=64,
        label=f"{len(gpus):,} GPUs, {first} to {last}: {shape}",
        style="gpu",
    )
    return Block(group=group, width=460, height=120, nodes=(node,), direct=True, shape=shape)


def _switched_block(
    topology: Topology, neighbours: Neighbours, group: Group, gpus: Sequence[int], others: Sequence[int]
) -> Block:
    head = TITLE_HEIGHT if group.name else 4.0
    nics = [vertex for vertex in others if topology.vertices[vertex].kind is VertexKind.NIC]
    rest = [vertex for vertex in others if vertex not in set(nics)]
    shown = _shown(topology, neighbours, gpus)
    longest = max((text_width(local_name(topology, vertex), "small") for vertex in gpus), default=0.0)
    step = min(max(GPU_STEP, longest + 18), 96.0)
    width = max(len(shown) * step, 64.0) + 2 * PADDING
    top = head + PADDING
    gpu_y = top + (NIC_HEIGHT + ROW_STEP - 20 if nics else 0) + GPU_HEIGHT / 2
    row = tuple(
        Node(
            vertices=vertices,
            x=width / 2 + (place - (len(shown) - 1) / 2) * step,
            y=gpu_y,
            width=step - 8,
            height=GPU_HEIGHT,
            label=local_name(topology, vertices[0]) if len(vertices) == 1 else f"+{len(vertices):,}",
            style="gpu" if len(vertices) == 1 else "gpu more",
        )
        for place, vertices in enumerate(shown)
    )
    positions = {vertex: node.x for node in row for vertex in node.vertices}
    upper = _nic_row(topology, neighbours, nics, positions, top + NIC_HEIGHT / 2, width)
    below, extra = _rows(topology, neighbours, rest, positions, gpu_y + GPU_HEIGHT / 2 + PADDING, width)
    height = gpu_y + GPU_HEIGHT / 2 + PADDING + extra
    return Block(group=group, width=width, height=height, nodes=(*row, *upper, *below), direct=False)


def _shown(topology: Topology, neighbours: Neighbours, vertices: Sequence[int]) -> list[tuple[int, ...]]:
    """Each vertex alone where they are few; else some, every kind among them, and the rest as one."""
    if len(vertices) <= MOST_IN_ROW:
        return [(vertex,) for vertex in vertices]
    first: dict[object, int] = {}
    for vertex in vertices:
        first.setdefault(vertex_signature(topology, neighbours, vertex), vertex)
    chosen = list(dict.fromkeys([*list(first.values())[:SHOWN_IN_ROW], *vertices]))[: SHOWN_IN_ROW - 1]
    rest = tuple(vertex for vertex in vertices if vertex not in set(chosen))
    return [*((vertex,) for vertex in sorted(chosen)), rest]


def _nic_row(
    topology: Topology,
    neighbours: Neighbours,
    nics: Sequence[int],
    positions: dict[int, float],
    y: float,
    width: float,
) -> tuple[Node, ...]:
    if not nics:
        return ()
    shown = _shown(topology, neighbours, nics)
    xs = _spaced([_middle(neighbours, vertices, positions, width / 2) for vertices in shown], 44, width)
    return tuple(
        Node(
            vertices=vertices,
            x=x,
            y=y,
            width=40,
            height=NIC_HEIGHT,
            label=local_name(topology, vertices[0]) if len(vertices) == 1 else f"+{len(vertices)}",
            style="nic" if len(vertices) == 1 else "nic more",
        )
        for vertices, x in zip(shown, xs, strict=True)
    )


def _rows(
    topology: Topology,
    neighbours: Neighbours,
    devices: Sequence[int],
    positions: dict[int, float],
    top: float,
    width: float,
) -> tuple[tuple[Node, ...], float]:
    """Switches next to GPUs, then what is next to those, and so on; and the height of it all."""
    nodes: list[Node] = []
    known, left, y = dict(positions), list(devices), top
    while left:
        row = [vertex for vertex in left if any(other in known for other, _, _ in neighbours.of(vertex))] or left
        left = [vertex for vertex in left if vertex not in set(row)]
        shown = _shown(topology, neighbours, row)
        y += ROW_STEP - 22
        room = (width - 2 * PADDING) / len(shown)
        if len(shown) == 1:
            xs, wide = [width / 2], width - 2 * PADDING
        else:
            wide = min(room - 10, 150)
            xs = _spaced([_middle(neighbours, vertices, known, width / 2) for vertices in shown], room, width)
        for vertices, x in zip(shown, xs, strict=True):
            kind = str(topology.vertices[vertices[0]].kind)
            nodes.append(
                Node(
                    vertices=vertices,
                    x=x,
                    y=y + SWITCH_HEIGHT / 2,
                    width=wide,
                    height=SWITCH_HEIGHT,
                    label=local_name(topology, vertices[0]) if len(vertices) == 1 else f"+{len(vertices)}",
                    style=kind if len(vertices) == 1 else f"{kind} more",
                    wide=wide > 60,
                    domain=(PADDING, width - PADDING),
                )
            )
        known.update({vertex: node.x for node in nodes for vertex in node.vertices})
        y += SWITCH_HEIGHT
    return tuple(nodes), (y - top + PADDING if nodes else 0.0)


def _middle(neighbours: Neighbours, vertices: Sequence[int], positions: dict[int, float], default: float) -> float:
    found = [positions[other] for vertex in vertices for other, _, _ in neighbours.of(vertex) if other in positions]
    return sum(found) / len(found) if found else default


def _spaced(wishes: Sequence[float], step: float, width: float) -> list[float]:
    """Places near the wishes, at least `step` apart, in the order of the wishes; evenly where they do not fit."""
    order = sorted(range(len(wishes)), key=lambda place: (wishes[place], place))
    ordered = [wishes[place] for place in order]
    if any(second - first < step for first, second in pairwise(ordered)):
        step = (width - 2 * PADDING) / len(wishes)
        ordered = [width / 2 + (place - (len(wishes) - 1) / 2) * step for place in range(len(wishes))]
    result = [0.0] * len(wishes)
    for place, x in zip(order, ordered, strict=True):
        result[place] = x
    return result
