"""The whole picture laid out: which groups are drawn in full, which as cards, and the fabric above them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from forestsyn.ir.topology import Topology, VertexKind
from forestsyn.show.groups import Group, Neighbours, fabric_levels, find_groups, find_neighbours, vertex_signature
from forestsyn.show.place import SWITCH_HEIGHT, Block, Node, build_block

MARGIN, GAP = 20.0, 22.0
#: Groups are all drawn in full within this width; else those drawn in full get less, and the rest become cards.
FULL_WIDTH, PART_WIDTH = 1180.0, 820.0
CARD_WIDTH, CARD_HEIGHT, MOST_CARDS, MOST_ALONE = 130.0, 92.0, 6, 4
FABRIC_STEP, FABRIC_WIDTH, MOST_FABRIC = 76.0, 88.0, 10


class Card(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Groups that are not drawn in full: one by its name, or several alike ones.

    like: how they compare with what is drawn in full, in words. inside: all of it is shaded.
    """

    groups: tuple[Group, ...]
    x: float
    y: float
    like: str
    inside: bool


class Placed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A block and where its upper left corner is."""

    block: Block
    x: float
    y: float


class Scene(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Places of everything; nodes are those of the fabric, in px of the whole picture."""

    blocks: tuple[Placed, ...]
    cards: tuple[Card, ...]
    fabric: tuple[Node, ...]
    unseen: int
    width: float
    height: float


def build_scene(topology: Topology, shaded: frozenset[int]) -> Scene:
    """Lay out `topology`; groups that touch `shaded` come first among those drawn in full."""
    neighbours = find_neighbours(topology)
    groups = find_groups(topology, neighbours)
    full, rest = _chosen(topology, neighbours, groups, shaded)
    stacks, unseen = _stacks(rest, shaded, full)
    levels = fabric_levels(topology, neighbours)
    top = MARGIN + len(levels) * FABRIC_STEP + (14 if levels else 0)
    tallest = max(block.height for block in full)
    x, blocks, cards = MARGIN, [], []
    for block in full:
        blocks.append(Placed(block=block, x=x, y=top + tallest - block.height))
        x += block.width + GAP
    for members, like, inside in stacks:
        cards.append(Card(groups=members, x=x, y=top + 10, like=like, inside=inside))
        x += CARD_WIDTH + GAP
    width = max(x - GAP + MARGIN, 560.0)
    shift = (width - (x - GAP + MARGIN)) / 2
    placed = tuple(msgspec.structs.replace(item, x=item.x + shift) for item in blocks)
    moved = tuple(msgspec.structs.replace(item, x=item.x + shift) for item in cards)
    span = (MARGIN + shift, x - GAP + shift)
    drawn = {vertex for block in full for vertex in block.group.members}
    return Scene(
        blocks=placed,
        cards=moved,
        fabric=_fabric(topology, neighbours, levels, span, drawn),
        unseen=unseen,
        width=width,
        height=top + max(tallest, CARD_HEIGHT) + MARGIN,
    )


def _chosen(
    topology: Topology, neighbours: Neighbours, groups: Sequence[Group], shaded: frozenset[int]
) -> tuple[list[Block], list[Group]]:
    """The blocks drawn in full, and the groups that are not."""
    if len(groups) <= 12:
        blocks = [build_block(topology, neighbours, group) for group in groups]
        if sum(block.width + GAP for block in blocks) <= FULL_WIDTH or len(groups) == 1:
            return blocks, []
    first: dict[object, Group] = {}
    for group in sorted(groups, key=lambda group: (shaded.isdisjoint(group.members), group.members)):
        first.setdefault(group.signature, group)
    chosen: list[Block] = []
    for group in first.values():
        block = build_block(topology, neighbours, group)
        if not chosen or sum(other.width + GAP for other in chosen) + block.width <= PART_WIDTH:
            chosen.append(block)
    known = {block.group.members for block in chosen}
    chosen.sort(key=lambda block: block.group.members)
    return chosen, [group for group in groups if group.members not in known]


def _stacks(
    rest: Sequence[Group], shaded: frozenset[int], full: Sequence[Block]
) -> tuple[list[tuple[tuple[Group, ...], str, bool]], int]:
    """Cards as (groups, name of the one they are like, shaded), and how many groups are on none."""
    likes = {block.group.signature: f"like {block.group.name}" for block in full if block.group.name}
    unlike = f"differs from {full[0].group.name}" if len(full) == 1 else "of another kind"
    alone = len(rest) <= MOST_ALONE
    found: dict[object, list[Group]] = {}
    for number, group in enumerate(rest):
        side = shaded.isdisjoint(group.members), shaded.issuperset(group.members)
        found.setdefault((number if alone else 0, group.signature, side), []).append(group)
    stacks = [
        (
            tuple(members),
            likes.get(members[0].signature, unlike if members[0].name else "alike"),
            shaded.issuperset(members[0].members),
        )
        for members in found.values()
    ]
    return stacks[:MOST_CARDS], sum(len(members) for members, _, _ in stacks[MOST_CARDS:])


def _fabric(
    topology: Topology,
    neighbours: Neighbours,
    levels: Sequence[Sequence[int]],
    span: tuple[float, float],
    drawn: set[int],
) -> tuple[Node, ...]:
    nodes: list[Node] = []
    left, right = span
    for number, level in enumerate(levels):
        y = MARGIN + (len(levels) - number - 1) * FABRIC_STEP + SWITCH_HEIGHT / 2
        room = right - left
        most = max(min(MOST_FABRIC, int(room // 50)), 2)
        shown = _shown_fabric(topology, neighbours, level, drawn, most)
        drawn = drawn | {vertex for vertices in shown if len(vertices) == 1 for vertex in vertices}
        step = room / len(shown)
        width = step - 16 if len(shown) <= 2 else min(step - 8, FABRIC_WIDTH)
        for place, vertices in enumerate(shown):
            device = topology.vertices[vertices[0]]
            nodes.append(
                Node(
                    vertices=vertices,
                    x=left + (place + 0.5) * step,
                    y=y,
                    width=width,
                    height=SWITCH_HEIGHT,
                    label=device.name if len(vertices) == 1 else f"+{len(vertices):,}",
                    style=str(device.kind) if len(vertices) == 1 else f"{device.kind} more",
                    wide=True,
                    domain=span,
                    quiet=device.kind is not VertexKind.SWITCH,
                )
            )
    return tuple(nodes)


def _shown_fabric(
    topology: Topology, neighbours: Neighbours, level: Sequence[int], drawn: set[int], most: int
) -> list[tuple[int, ...]]:
    """Each alone where they are few; else those next to what is drawn, one of each kind, and the rest as one."""
    if len(level) <= most:
        return [(vertex,) for vertex in level]
    near = [vertex for vertex in level if any(other in drawn for other, _, _ in neighbours.of(vertex))]
    first: dict[object, int] = {}
    for vertex in level:
        first.setdefault(vertex_signature(topology, neighbours, vertex), vertex)
    chosen = sorted(list(dict.fromkeys([*list(first.values())[: most // 2], *near, *level]))[: most - 1])
    return [*((vertex,) for vertex in chosen), tuple(vertex for vertex in level if vertex not in set(chosen))]
