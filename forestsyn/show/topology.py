"""The picture of a topology with its bottleneck cut.

Lines are as wide as their bandwidth (by its square root, so that a NIC still shows beside NVLink). The side of the
cut with fewer ranks is shaded; links that the data must cross are highlighted, with an arrow the way that counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from textwrap import wrap

from forestsyn.ir.topology import Topology, VertexKind
from forestsyn.show.lines import (
    Bundle,
    crossing_links,
    decimal_text,
    draw_lines,
    find_bundles,
    is_deep,
    line_width,
    link_style,
    moved_nodes,
)
from forestsyn.show.place import Node
from forestsyn.show.scene import CARD_HEIGHT, CARD_WIDTH, Card, Placed, Scene, build_scene
from forestsyn.show.shapes import Disc, Label, Line, Picture, Rect, Shape, text_width
from forestsyn.show.view import CutView

_MOST_LEGEND, _LEGEND_STEP = 6, 268.0
_STACK = 5.0


def topology_picture(topology: Topology, cut: CutView) -> Picture:
    """Hosts, devices, links, fabric and the cut."""
    shaded = smaller_side(topology, cut)
    scene = build_scene(topology, shaded)
    bundles = find_bundles(topology, cut, scene)
    shapes: list[Shape] = []
    lines, distant, labels = draw_lines(topology, scene, bundles)
    shapes += distant
    for placed in scene.blocks:
        shapes += _frame(placed, shaded)
    shapes += lines
    shapes += [title for placed in scene.blocks for title in _title(placed)]
    for placed in scene.blocks:
        shapes += [shape for node in moved_nodes(placed) for shape in _node(topology, node, shaded)]
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


def _legend(
    topology: Topology, cut: CutView, scene: Scene, bundles: Sequence[Bundle], shaded: frozenset[int]
) -> tuple[list[Shape], float]:
    widest = max(link.bandwidth for link in topology.links)
    kinds: dict[tuple[str, Fraction], int] = {}
    for link in topology.links:
        key = link_style(topology, link), link.bandwidth
        kinds[key] = kinds.get(key, 0) + 1
    words = {"peer": "GPU links", "pcie": "host bus", "network": "network"}
    entries = [
        (style, line_width(bandwidth, widest), f"{words[style]} {decimal_text(bandwidth)} GB/s ({_links(count)})")
        for (style, bandwidth), count in sorted(kinds.items(), key=lambda item: (item[0][0], -item[0][1]))
    ]
    if len(entries) > _MOST_LEGEND:
        left = len(entries) - _MOST_LEGEND + 1
        entries = [*entries[: _MOST_LEGEND - 1], ("", 0.0, f"and {left} other rates")]
    crossing = crossing_links(topology, cut)
    entries.append(
        ("crossing", 3.0, f"crosses the cut ({_links(len(crossing))}, {decimal_text(cut.bandwidth)} GB/s)")
    )
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
    if is_deep(scene):
        tail += " Links round the edges of the torus are drawn only where they cross the cut."
    for place, text in enumerate(wrap(f"Bottleneck: {cut.text}.{tail}", int((scene.width - 90) / 6.9))):
        shapes.append(Label(x=60, y=y + 18 * place, text=text, style="caption", anchor="start"))
        y_end = y + 18 * place
    return shapes, y_end + 20


def _links(count: int) -> str:
    return "1 link" if count == 1 else f"{count:,} links"
