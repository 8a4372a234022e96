"""Links as lines: which ends they have in the picture, which are drawn as one, where they bend.

Lines are as wide as the square root of their bandwidth, so that a NIC still shows beside NVLink.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import hypot, sqrt

import msgspec

from forestsyn.ir.forest import Direction
from forestsyn.ir.topology import Link, Topology, VertexKind
from forestsyn.show.place import Node
from forestsyn.show.scene import CARD_WIDTH, Placed, Scene
from forestsyn.show.shapes import Label, Line, Shape
from forestsyn.show.view import CutView


class _End(msgspec.Struct, frozen=True):
    """Where lines of a vertex end: a node, a card or the upper edge of a direct group. key: tells ends apart."""

    key: tuple[str, int]
    x: float
    y: float
    node: Node | None = None
    block: int = -1


class Bundle(msgspec.Struct):
    """Links between two ends that are drawn as one line; crossing: the data must cross them from first to second."""

    first: _End
    second: _End
    links: list[Link]
    crossing: bool
    wrapping: bool


def crossing_links(topology: Topology, cut: CutView) -> tuple[Link, ...]:
    """The links by which data leaves (or enters) the inside of the cut."""
    out = cut.direction is Direction.OUT
    return tuple(
        link for link in topology.links if (link.tail in cut.inside) == out and (link.head in cut.inside) != out
    )


def find_bundles(topology: Topology, cut: CutView, scene: Scene) -> list[Bundle]:
    """Links between the same two ends as one, those that cross the cut apart and last."""
    ends = _ends(topology, scene)
    crossing = {(link.tail, link.head) for link in crossing_links(topology, cut)}
    wraps = frozenset(pair for placed in scene.blocks for pair in placed.block.wraps)
    found: dict[tuple[object, ...], Bundle] = {}
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
        bundle = found.setdefault(key, Bundle(first, second, [], hot, wrapping))
        bundle.links.append(link)
    return sorted(found.values(), key=lambda bundle: bundle.crossing)


def draw_lines(
    topology: Topology, scene: Scene, bundles: Sequence[Bundle]
) -> tuple[list[Shape], list[Shape], list[Shape]]:
    """The lines, those that end at cards and may pass behind hosts, and what is written beside lines."""
    widest = max(link.bandwidth for link in topology.links)
    discs = [(node.x, node.y) for placed in scene.blocks for node in moved_nodes(placed) if node.disc]
    shapes: list[Shape] = []
    distant: list[Shape] = []
    labels: list[Shape] = []
    hot = {frozenset((b.first.key, b.second.key)) for b in bundles if b.crossing}
    for bundle in bundles:
        if bundle.wrapping and not bundle.crossing and is_deep(scene):
            continue
        one, other = bundle.first, bundle.second
        beside = not bundle.crossing and frozenset((one.key, other.key)) in hot
        x1, x2 = _meet(one, other), _meet(other, one)
        shift = 16.0 if beside else 0.0
        bend = _bend(bundle, discs)
        total = sum((link.bandwidth for link in bundle.links), Fraction(0))
        style = "crossing" if bundle.crossing else link_style(topology, bundle.links[0])
        at_card = "card" in (one.key[0], other.key[0])
        if at_card:
            total = max(link.bandwidth for link in bundle.links)
        (distant if at_card else shapes).append(
            Line(
                x1=x1 + shift,
                y1=one.y,
                x2=x2 + shift,
                y2=other.y,
                width=line_width(min(total, widest), widest),
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
                f"{len(bundle.links)} × {decimal_text(min(each))} GB/s"
                if len(each) == 1
                else f"{decimal_text(total)} GB/s"
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


def moved_nodes(placed: Placed) -> list[Node]:
    """The nodes of a block in px of the whole picture."""
    return [
        msgspec.structs.replace(
            node,
            x=node.x + placed.x,
            y=node.y + placed.y,
            domain=(node.domain[0] + placed.x, node.domain[1] + placed.x),
        )
        for node in placed.block.nodes
    ]


def is_deep(scene: Scene) -> bool:
    """Whether some network has three dimensions, in which links round the edges would cover everything."""
    return any(placed.block.wraps and placed.block.shape.count("×") > 1 for placed in scene.blocks)


def link_style(topology: Topology, link: Link) -> str:
    """`peer`, `pcie` or `network`."""
    ends = topology.vertices[link.tail], topology.vertices[link.head]
    if any(end.kind is VertexKind.CPU for end in ends):
        return "pcie"
    if ends[0].host != ends[1].host or any(end.kind is VertexKind.NIC for end in ends):
        return "network"
    return "network" if all(end.kind is VertexKind.SWITCH and end.host is None for end in ends) else "peer"


def line_width(bandwidth: Fraction, widest: Fraction) -> float:
    """Px, by the square root of the share of the widest link."""
    return 0.8 + 4.2 * sqrt(bandwidth / widest)


def decimal_text(value: Fraction) -> str:
    """At most two decimals."""
    return f"{float(value):.2f}".rstrip("0").rstrip(".")


def _ends(topology: Topology, scene: Scene) -> dict[int, tuple[_End, _End]]:
    """For each vertex where lines within its group end, and where lines to outside end."""
    ends: dict[int, tuple[_End, _End]] = {}
    count = 0
    for number, placed in enumerate(scene.blocks):
        edge = _End(("block", number), placed.x + placed.block.width / 2, placed.y, None, number)
        for node in moved_nodes(placed):
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


def _bend(bundle: Bundle, discs: Sequence[tuple[float, float]]) -> float:
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


def _tip(topology: Topology, bundle: Bundle) -> str:
    link = bundle.links[0]
    names = topology.vertices[link.tail].name, topology.vertices[link.head].name
    arrow = "→" if bundle.crossing else "↔"
    more = f" and {len(bundle.links) - 1} more" if len(bundle.links) > 1 else ""
    speeds = sorted({link.bandwidth for link in bundle.links})
    speed = " to ".join(dict.fromkeys(decimal_text(value) for value in (speeds[0], speeds[-1])))
    return f"{names[0]} {arrow} {names[1]}{more}: {speed} GB/s{' each' if more else ''}"
