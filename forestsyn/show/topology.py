"""The picture of a topology with its bottleneck cut.

Lines are as wide as their bandwidth (by its square root, so that a NIC still shows beside NVLink). The side of the
cut with fewer ranks is shaded; links that the data must cross are highlighted, with an arrow the way that counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import hypot, sqrt
from textwrap import wrap

import msgspec

from forestsyn.ir.forest import Direction
from forestsyn.ir.topology import Link, Topology, VertexKind
from forestsyn.show.place import Node
from forestsyn.show.scene import CARD_HEIGHT, CARD_WIDTH, Card, Placed, Scene, build_scene
from forestsyn.show.shapes import Disc, Label, Line, Picture, Rect, Shape, text_width
from forestsyn.show.view import CutView

_MOST_LEGEND, _LEGEND_STEP = 6, 268.0
_STACK = 5.0


class _End(msgspec.Struct, frozen=True):
    """Where lines of a vertex end: a node, a card or the upper edge of a direct group. key: tells ends apart."""

    key: tuple[str, int]
    x: float
    y: float
    node: Node | None = None
    block: int = -1


class _Bundle(msgspec.Struct):
    """Links between two ends that are drawn as one line; crossing: the data must cross them from first to second."""

    first: _End
    second: _End
    links: list[Link]
    crossing: bool
    wrapping: bool


def topology_picture(topology: Topology, cut: CutView) -> Picture:
    """Hosts, devices, links, fabric and the cut."""
    shaded = smaller_side(topology, cut)
    scene = build_scene(topology, shaded)
    bundles = _bundles(topology, cut, scene)
    shapes: list[Shape] = []
    lines, distant, labels = _lines(topology, scene, bundles)
    shapes += distant
    for placed in scene.blocks:
        shapes += _frame(placed, shaded)
    shapes += lines
    shapes += [title for placed in scene.blocks for title in _title(placed)]
    for placed in scene.blocks:
        shapes += [shape for node in _moved(placed) for shape in _node(topology, node, shaded)]
    for card in scene.cards:
        shapes += _card(topology, card)
    shapes += labels
    shapes += [shape for node in scene.fabric for shape in _node(topology, node, shaded)]
    legend, height = _legend(topology, cut, scene, bundles, shaded)
    return Picture(
        width=scene.width,
        height=height,
        shapes=(*shapes, *legend),
        title=f"Topology {topology.name} and its bottleneck",
        description=f"{cut.text}. {_inventory(topology)}",
    )


def smaller_side(topology: Topology, cut: CutView) -> frozenset[int]:
    """The vertices on the side of the cut with fewer ranks, of which the sentence of the cut speaks."""
    inside = sum(rank in cut.inside for rank in topology.ranks)
    if 2 * inside <= topology.rank_count:
        return cut.inside
    return frozenset(range(len(topology.vertices))) - cut.inside


def crossing_links(topology: Topology, cut: CutView) -> tuple[Link, ...]:
    """The links by which data leaves (or enters) the inside of the cut."""
    out = cut.direction is Direction.OUT
    return tuple(
        link for link in topology.links if (link.tail in cut.inside) == out and (link.head in cut.inside) != out
    )


def _inventory(topology: Topology) -> str:
    counts = {kind: sum(vertex.kind is kind for vertex in topology.vertices) for kind in VertexKind}
    hosts = len({vertex.host for vertex in topology.vertices if vertex.host})
    words = {VertexKind.GPU: "GPU", VertexKind.SWITCH: "switch", VertexKind.NIC: "NIC", VertexKind.CPU: "CPU"}
    parts = [f"{hosts} host{'s' * (hosts != 1)}"] if hosts else []
    for kind, count in counts.items():
        if count:
            plural = "" if count == 1 else "es" if kind is VertexKind.SWITCH else "s"
            parts.append(f"{count:,} {words[kind]}{plural}")
    return ", ".join(parts)


def _moved(placed: Placed) -> list[Node]:
    return [
        msgspec.structs.replace(
            node,
            x=node.x + placed.x,
            y=node.y + placed.y,
            domain=(node.domain[0] + placed.x, node.domain[1] + placed.x),
        )
        for node in placed.block.nodes
    ]


def _frame(placed: Placed, shaded: frozenset[int]) -> list[Shape]:
    block = placed.block
    whole = shaded.issuperset(block.group.members)
    style = f"{'host' if block.group.name else 'loose'}{' inside' if whole else ''}"
    return [Rect(x=placed.x, y=placed.y, width=block.width, height=block.height, style=style, radius=8)]


def _title(placed: Placed) -> list[Shape]:
    name, extent = placed.block.group.name, placed.block.width - 24
    if not name:
        return []
    return [Label(x=placed.x + 12, y=placed.y + 19, text=name, style="heading halo", anchor="start", extent=extent)]


def _node(topology: Topology, node: Node, shaded: frozenset[int]) -> list[Shape]:
    inside = shaded.issuperset(node.vertices)
    style = f"device {node.style}{' inside' if inside else ''}"
    names = [topology.vertices[vertex].name for vertex in node.vertices]
    tip = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}, {len(names)} in all"
    if node.disc:
        shape: Shape = Disc(x=node.x, y=node.y, radius=node.width / 2, style=style, tip=tip)
    else:
        shape = Rect(
            x=node.x - node.width / 2,
            y=node.y - node.height / 2,
            width=node.width,
            height=node.height,
            style=style,
            tip=tip,
        )
    if not node.label:
        return [shape]
    size = "small" if node.width < 60 or text_width(node.label) > node.width - 6 else "label"
    return [shape, Label(x=node.x, y=node.y + 4, text=node.label, style=f"{size} on", extent=node.width - 3)]


def _card(topology: Topology, card: Card) -> list[Shape]:
    count = len(card.groups)
    behind = min(count - 1, 2)
    style = f"host{' inside' if card.inside else ''}"
    shapes: list[Shape] = [
        Rect(x=card.x + shift, y=card.y - shift, width=CARD_WIDTH, height=CARD_HEIGHT, style=style, radius=8)
        for shift in (_STACK * place for place in range(behind, -1, -1))
    ]
    first, last = card.groups[0], card.groups[-1]
    ends = [group.name or topology.vertices[group.members[0]].name for group in (first, last)]
    title = ends[0] if count == 1 else f"{ends[0]} … {ends[1]}"
    kinds = [topology.vertices[vertex].kind for vertex in first.members]
    gpus, nics = kinds.count(VertexKind.GPU), kinds.count(VertexKind.NIC)
    lines = [
        title,
        f"{count:,} × {gpus} GPUs" if count > 1 else f"{gpus} GPUs{f', {nics} NICs' if nics else ''}",
        card.like,
    ]
    for place, text in enumerate(lines):
        shapes.append(
            Label(
                x=card.x + CARD_WIDTH / 2,
                y=card.y + 26 + 22 * place,
                text=text,
                style="heading" if place == 0 else "label",
                extent=CARD_WIDTH - 12,
            )
        )
    return shapes


def _ends(topology: Topology, scene: Scene) -> dict[int, tuple[_End, _End]]:
    """For each vertex where lines within its group end, and where lines to outside end."""
    ends: dict[int, tuple[_End, _End]] = {}
    count = 0
    for number, placed in enumerate(scene.blocks):
        edge = _End(("block", number), placed.x + placed.block.width / 2, placed.y, None, number)
        for node in _moved(placed):
            count += 1
            end = _End(("node", count), node.x, node.y, node, number)
            upward = node.style.startswith("nic") or (node.style.startswith("gpu") and not placed.block.direct)
            for vertex in node.vertices:
                ends[vertex] = end, end if upward else edge
    for number, card in enumerate(scene.cards):
        end = _End(("card", number), card.x + CARD_WIDTH / 2, card.y)
        ends.update({vertex: (end, end) for group in card.groups for vertex in group.members})
    for node in scene.fabric:
        count += 1
        end = _End(("node", count), node.x, node.y, node)
        ends.update(dict.fromkeys(node.vertices, (end, end)))
    return ends


def _bundles(topology: Topology, cut: CutView, scene: Scene) -> list[_Bundle]:
    ends = _ends(topology, scene)
    crossing = {(link.tail, link.head) for link in crossing_links(topology, cut)}
    wraps = frozenset(pair for placed in scene.blocks for pair in placed.block.wraps)
    found: dict[tuple[object, ...], _Bundle] = {}
    pairs = {(link.tail, link.head) for link in topology.links}
    for link in topology.links:
        back = (link.head, link.tail)
        hot = (link.tail, link.head) in crossing
        if not hot and back in pairs and (back in crossing or back < (link.tail, link.head)):
            continue  # one line stands for both directions
        if link.tail not in ends or link.head not in ends:
            continue
        inner = ends[link.tail][0].block == ends[link.head][0].block >= 0
        first, second = ends[link.tail][not inner], ends[link.head][not inner]
        if first.key == second.key:
            continue
        if not hot and second.key < first.key:
            first, second = second, first
        key = (hot, first.key, second.key)
        wrapping = (min(link.tail, link.head), max(link.tail, link.head)) in wraps
        bundle = found.setdefault(key, _Bundle(first, second, [], hot, wrapping))
        bundle.links.append(link)
    return sorted(found.values(), key=lambda bundle: bundle.crossing)


def _lines(
    topology: Topology, scene: Scene, bundles: Sequence[_Bundle]
) -> tuple[list[Shape], list[Shape], list[Shape]]:
    """The lines, those that end at cards and may pass behind hosts, and what is written beside lines."""
    widest = max(link.bandwidth for link in topology.links)
    discs = [(node.x, node.y) for placed in scene.blocks for node in _moved(placed) if node.disc]
    shapes: list[Shape] = []
    distant: list[Shape] = []
    labels: list[Shape] = []
    hot = {frozenset((b.first.key, b.second.key)) for b in bundles if b.crossing}
    for bundle in bundles:
        if bundle.wrapping and not bundle.crossing and _is_deep(scene):
            continue
        one, other = bundle.first, bundle.second
        beside = not bundle.crossing and frozenset((one.key, other.key)) in hot
        x1, x2 = _meet(one, other), _meet(other, one)
        shift = 16.0 if beside else 0.0
        bend = _bend(bundle, discs)
        total = sum((link.bandwidth for link in bundle.links), Fraction(0))
        style = "crossing" if bundle.crossing else _style(topology, bundle.links[0])
        at_card = "card" in (one.key[0], other.key[0])
        if at_card:
            total = max(link.bandwidth for link in bundle.links)
        (distant if at_card else shapes).append(
            Line(
                x1=x1 + shift,
                y1=one.y,
                x2=x2 + shift,
                y2=other.y,
                width=_width(min(total, widest), widest),
                style=style,
                bend=bend,
                arrow=bundle.crossing,
                tip=_tip(topology, bundle),
            )
        )
        if len(bundle.links) > 1 and "block" in (one.key[0], other.key[0]):
            below = one if one.y > other.y else other
            each = {link.bandwidth for link in bundle.links}
            speed = (
                f"{len(bundle.links)} × {_decimal(min(each))} GB/s" if len(each) == 1 else f"{_decimal(total)} GB/s"
            )
            labels.append(
                Label(
                    x=(x1 if below is one else x2) + shift + (-8 if bundle.crossing else 8),
                    y=below.y - 10,
                    text=speed,
                    style=f"small halo{' hot' if bundle.crossing else ''}",
                    anchor="end" if bundle.crossing else "start",
                )
            )
    return shapes, distant, labels


def _is_deep(scene: Scene) -> bool:
    """Whether some network has three dimensions, in which links round the edges would cover everything."""
    return any(placed.block.wraps and placed.block.shape.count("×") > 1 for placed in scene.blocks)


def _meet(end: _End, other: _End) -> float:
    """Where on `end` a line from `other` arrives: wide nodes are met along their width."""
    node = end.node
    if node is None or not node.wide:
        return end.x
    left, right = node.domain
    if node.width > 0.85 * (right - left):
        return min(max(other.x, node.x - node.width / 2 + 6), node.x + node.width / 2 - 6)
    share = min(max((other.x - left) / max(right - left, 1), 0.0), 1.0)
    return node.x + (share - 0.5) * (node.width - 12)


def _bend(bundle: _Bundle, discs: Sequence[tuple[float, float]]) -> float:
    one, other = bundle.first, bundle.second
    if one.node is None or other.node is None or one.block != other.block:
        return 0.0
    if not (one.node.disc and other.node.disc):
        level = one.y == other.y and abs(one.x - other.x) > one.node.width * 1.6
        return (1 if one.x < other.x else -1) * 22.0 if level else 0.0
    length = hypot(other.x - one.x, other.y - one.y)
    for x, y in discs:
        along = ((x - one.x) * (other.x - one.x) + (y - one.y) * (other.y - one.y)) / length
        away = abs((x - one.x) * (other.y - one.y) - (y - one.y) * (other.x - one.x)) / length
        if 1 < along < length - 1 and away < one.node.width / 2 + 2:
            forward = (one.x, one.y) < (other.x, other.y)
            return (1 if forward else -1) * 1.65 * one.node.width / 2
    return 0.0


def _style(topology: Topology, link: Link) -> str:
    ends = topology.vertices[link.tail], topology.vertices[link.head]
    if any(end.kind is VertexKind.CPU for end in ends):
        return "pcie"
    if ends[0].host != ends[1].host or any(end.kind is VertexKind.NIC for end in ends):
        return "network"
    return "network" if all(end.kind is VertexKind.SWITCH and end.host is None for end in ends) else "peer"


def _width(bandwidth: Fraction, widest: Fraction) -> float:
    return 0.8 + 4.2 * sqrt(bandwidth / widest)


def _tip(topology: Topology, bundle: _Bundle) -> str:
    link = bundle.links[0]
    names = topology.vertices[link.tail].name, topology.vertices[link.head].name
    arrow = "→" if bundle.crossing else "↔"
    more = f" and {len(bundle.links) - 1} more" if len(bundle.links) > 1 else ""
    speeds = sorted({link.bandwidth for link in bundle.links})
    speed = " to ".join(dict.fromkeys(_decimal(value) for value in (speeds[0], speeds[-1])))
    return f"{names[0]} {arrow} {names[1]}{more}: {speed} GB/s{' each' if more else ''}"


def _legend(
    topology: Topology, cut: CutView, scene: Scene, bundles: Sequence[_Bundle], shaded: frozenset[int]
) -> tuple[list[Shape], float]:
    widest = max(link.bandwidth for link in topology.links)
    kinds: dict[tuple[str, Fraction], int] = {}
    for link in topology.links:
        key = _style(topology, link), link.bandwidth
        kinds[key] = kinds.get(key, 0) + 1
    words = {"peer": "GPU links", "pcie": "host bus", "network": "network"}
    entries = [
        (style, _width(bandwidth, widest), f"{words[style]} {_decimal(bandwidth)} GB/s ({_links(count)})")
        for (style, bandwidth), count in sorted(kinds.items(), key=lambda item: (item[0][0], -item[0][1]))
    ]
    if len(entries) > _MOST_LEGEND:
        left = len(entries) - _MOST_LEGEND + 1
        entries = [*entries[: _MOST_LEGEND - 1], ("", 0.0, f"and {left} other rates")]
    crossing = crossing_links(topology, cut)
    entries.append(("crossing", 3.0, f"crosses the cut ({_links(len(crossing))}, {_decimal(cut.bandwidth)} GB/s)"))
    shapes: list[Shape] = []
    x, y = 24.0, scene.height + 16
    for style, width, text in entries:
        if x > 24 and x + _LEGEND_STEP > scene.width:
            x, y = 24.0, y + 20
        if style:
            shapes.append(Line(x1=x, y1=y, x2=x + 28, y2=y, width=width, style=style))
        shapes.append(Label(x=x + 34, y=y + 4, text=text, style="small", anchor="start"))
        x += _LEGEND_STEP
    y += 30
    shapes.append(Rect(x=24, y=y - 11, width=28, height=14, style="device gpu inside", radius=3))
    tail = f" {scene.unseen} hosts of other kinds are not drawn." if scene.unseen else ""
    if _is_deep(scene):
        tail += " Links round the edges of the torus are drawn only where they cross the cut."
    for place, text in enumerate(wrap(f"Bottleneck: {cut.text}.{tail}", int((scene.width - 90) / 6.9))):
        shapes.append(Label(x=60, y=y + 18 * place, text=text, style="caption", anchor="start"))
        y_end = y + 18 * place
    return shapes, y_end + 20


def _links(count: int) -> str:
    return "1 link" if count == 1 else f"{count:,} links"


def _decimal(value: Fraction) -> str:
    return f"{float(value):.2f}".rstrip("0").rstrip(".")
