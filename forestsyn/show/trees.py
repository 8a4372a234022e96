"""Small multiples of trees: one of each form, with how many there are like it.

Two trees have one form when they have the same multiplicity and as many ranks at each distance from the root, and
cross between hosts as often. A tree grows to the right from its root; subtrees of one form that are many are drawn
once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from hashlib import sha256

import msgspec
import numpy as np

from forestsyn.ir.forest import Direction, Forest
from forestsyn.ir.topology import Topology
from forestsyn.ir.trees import tree_depths
from forestsyn.show.shapes import Label, Line, Picture, Rect, Shape, shifted, text_width
from forestsyn.show.view import PhaseView

MOST_FORMS = 6
#: Trees of more ranks show alike subtrees once.
WHOLE_TREE = 20
#: Rows of a compact forest that are looked at.
_MOST_ROWS = 20_000
#: Transfers from the root that are drawn.
_DEEPEST = 9
_ROW, _HEIGHT, _GAP = 22.0, 17.0, 26.0


class TreeCard(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One form of tree: its heading, what is said of it, and its drawing."""

    heading: str
    text: str
    picture: Picture


class _Branch(msgspec.Struct, frozen=True):
    """A rank of a drawn tree, or what is left out below one.

    times: how many alike subtrees it stands for. away: reached from another host. size: ranks, its own among them.
    """

    rank: int
    label: str
    times: int
    away: bool
    children: tuple[_Branch, ...]
    form: str
    size: int


class TreeForms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """cards: the commonest forms, the commonest first. count: how many forms there are."""

    cards: tuple[TreeCard, ...]
    count: int


def tree_forms(topology: Topology, phase: PhaseView, most: int = MOST_FORMS) -> TreeForms:
    """The forms of trees of a phase, at most `most` of them drawn."""
    forest = phase.forest
    forms: dict[object, list[int]] = {}
    hosts = np.unique([str(topology.rank_host(rank)) for rank in range(forest.rank_count)], return_inverse=True)[1]
    depths = forest.depths()[:_MOST_ROWS]
    for row in range(len(depths)):
        parents = forest.parents[row]
        away = int((hosts[parents] != hosts)[parents >= 0].sum())
        key = int(forest.multiplicities[row]), away, tuple(np.bincount(depths[row]).tolist())
        forms.setdefault(key, []).append(row)
    common = sorted(forms.values(), key=lambda rows: (-len(rows), rows[0]))
    cards = tuple(_card(topology, phase, rows, int(depths[rows[0]].max())) for rows in common[:most])
    return TreeForms(cards=cards, count=len(forms))


def trees_picture(topology: Topology, phases: Sequence[PhaseView]) -> Picture:
    """All cards of all phases in one drawing."""
    shapes: list[Shape] = []
    x, y, row_height, width = 20.0, 20.0, 0.0, 0.0
    for phase in phases:
        x, y, row_height = 20.0, y + row_height, 0.0
        shapes.append(Label(x=x, y=y + 14, text=phase.name, style="heading", anchor="start"))
        y += 34
        for card in tree_forms(topology, phase).cards:
            if x > 20 and x + card.picture.width > 1180:
                x, y, row_height = 20.0, y + row_height, 0.0
            shapes.append(Label(x=x, y=y + 12, text=card.heading, style="heading", anchor="start"))
            shapes.append(Label(x=x, y=y + 30, text=card.text, style="small muted", anchor="start"))
            shapes += [shifted(shape, x, y + 40) for shape in card.picture.shapes]
            extent = max(card.picture.width, text_width(card.text, "small"), text_width(card.heading, "heading"))
            x, width = x + extent + 40, max(width, x + extent + 20)
            row_height = max(row_height, card.picture.height + 64)
    return Picture(
        width=width, height=y + row_height, shapes=tuple(shapes), title=f"Trees on {topology.name}", description=""
    )


def _card(topology: Topology, phase: PhaseView, rows: Sequence[int], depth: int) -> TreeCard:
    forest, row = phase.forest, rows[0]
    count, multiplicity = len(rows) * forest.turns, int(forest.multiplicities[row])
    root = topology.rank_name(int(forest.roots[row]))
    alike = f"{count:,} trees of this form" if count > 1 else "the only tree of this form"
    carries = f"each carries {multiplicity} chunks" if multiplicity > 1 else "one chunk each"
    towards = "from" if forest.direction is Direction.OUT else "to"
    text = f"{alike}, {carries}; depth {depth}"
    return TreeCard(
        heading=f"{towards} {root}",
        text=text,
        picture=_drawing(topology, forest, row, f"Tree {towards} {root}", text),
    )


def _drawing(topology: Topology, forest: Forest, row: int, title: str, text: str) -> Picture:
    tree = _branches(topology, forest, row)
    columns: list[float] = []
    _measure(tree, 0, columns)
    starts = [4.0]
    for width in columns:
        starts.append(starts[-1] + width + _GAP)
    shapes: list[Shape] = []
    height, _ = _draw(tree, 0, 0.0, starts, shapes)
    lines = [shape for shape in shapes if isinstance(shape, Line)]
    rest = [shape for shape in shapes if not isinstance(shape, Line)]
    return Picture(
        width=starts[-1] - _GAP + 4,
        height=height + 6,
        shapes=(*lines, *rest),
        title=title,
        description=text,
    )


def _branches(topology: Topology, forest: Forest, row: int) -> _Branch:
    """The tree from its root, built from the leaves up, since chains may be long."""
    parents = forest.parents[row].tolist()
    depths = tree_depths(forest.parents[row : row + 1])[0].tolist()
    children: dict[int, list[_Branch]] = {}
    whole = forest.rank_count <= WHOLE_TREE
    root = int(forest.roots[row])
    for rank in sorted(range(len(parents)), key=lambda rank: (-depths[rank], rank)):
        own = sorted(children.pop(rank, []), key=lambda branch: (-branch.size, branch.form, branch.rank))
        merged = tuple(own) if whole else _merged(own)
        form = f"({''.join(branch.form * branch.times for branch in merged)})"
        if len(form) > 200:
            form = f"({sha256(form.encode()).hexdigest()})"
        away = parents[rank] >= 0 and topology.rank_host(rank) != topology.rank_host(parents[rank])
        size = 1 + sum(child.size for child in own)
        if depths[rank] == _DEEPEST and own:
            merged = (_Branch(own[0].rank, f"+{size - 1:,} further on", 1, False, (), "", size - 1),)
        name = topology.rank_name(rank)
        branch = _Branch(rank, name, 1, away, merged, f"{'a' if away else 'h'}{form}", size)
        if rank == root:
            return branch
        children.setdefault(parents[rank], []).append(branch)
    raise ValueError("the tree does not reach its root")


def _merged(branches: Sequence[_Branch]) -> tuple[_Branch, ...]:
    """Alike subtrees as one, where there are more than two."""
    counts = Counter(branch.form for branch in branches)
    kept: dict[str, _Branch] = {}
    result: list[_Branch] = []
    for branch in branches:
        if counts[branch.form] <= 2:
            result.append(branch)
        elif branch.form not in kept:
            times = counts[branch.form]
            kept[branch.form] = msgspec.structs.replace(branch, times=times, label=f"{branch.label} × {times}")
            result.append(kept[branch.form])
    return tuple(result)


def _measure(branch: _Branch, level: int, columns: list[float]) -> None:
    if level == len(columns):
        columns.append(0.0)
    columns[level] = max(columns[level], min(text_width(branch.label, "small") + 14, 170.0))
    for child in branch.children:
        _measure(child, level + 1, columns)


def _draw(
    branch: _Branch, level: int, top: float, starts: Sequence[float], shapes: list[Shape]
) -> tuple[float, float]:
    """Add a subtree whose first row is at `top`; its lower end, and the middle of its root."""
    lower, middles = top, []
    for child in branch.children:
        lower, middle = _draw(child, level + 1, lower, starts, shapes)
        middles.append(middle)
    lower = max(lower, top + _ROW)
    y = (middles[0] + middles[-1]) / 2 if middles else top + _ROW / 2
    width = starts[level + 1] - _GAP - starts[level]
    for child, middle in zip(branch.children, middles, strict=True):
        style = f"branch{' away' if child.away else ''}"
        shapes.append(Line(x1=starts[level] + width, y1=y, x2=starts[level + 1], y2=middle, width=1.6, style=style))
    style = f"device gpu{' root' if level == 0 else ''}{' more' if branch.times > 1 else ''}"
    shapes.append(
        Rect(x=starts[level], y=y - _HEIGHT / 2, width=width, height=_HEIGHT, style=style, radius=8, tip=branch.label)
    )
    shapes.append(
        Label(x=starts[level] + width / 2, y=y + 3.5, text=branch.label, style="small on", extent=width - 6)
    )
    return lower, y
