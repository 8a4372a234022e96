"""What pictures are made of, and their SVG text.

Coordinates are pixels, y downwards. Colours come from classes only, so that one drawing serves the page (where
classes follow the theme) and a file of its own (where they are fixed). Text is escaped by the XML library.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as tree

import msgspec


class Rect(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A box with its upper left corner at (x, y); tip: what a pointer is told."""

    x: float
    y: float
    width: float
    height: float
    style: str
    radius: float = 4
    tip: str = ""


class Disc(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A circle around (x, y)."""

    x: float
    y: float
    radius: float
    style: str
    tip: str = ""


class Line(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """From (x1, y1) to (x2, y2). bend: how far its middle is pushed to the left of the way; arrow: at its middle."""

    x1: float
    y1: float
    x2: float
    y2: float
    width: float
    style: str
    bend: float = 0
    arrow: bool = False
    tip: str = ""


class Label(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line of text; anchor: start, middle or end; y is its base line. extent: px that it may take, 0 for any."""

    x: float
    y: float
    text: str
    style: str = "label"
    anchor: str = "middle"
    extent: float = 0


Shape = Rect | Disc | Line | Label


class Picture(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Shapes in the order of painting; title and description are read out in place of the picture."""

    width: float
    height: float
    shapes: tuple[Shape, ...]
    title: str
    description: str


#: Px that a character takes, as a share of the size of the font, and the sizes by style.
_CHARACTER = 0.57
_SIZES = {"small": 10.0, "heading": 14.0, "tiny": 8.5}


def text_width(text: str, style: str = "label") -> float:
    """About how many px `text` takes."""
    size = next((_SIZES[word] for word in style.split() if word in _SIZES), 12.0)
    return size * _CHARACTER * len(text)


def shortened(text: str, extent: float, style: str = "label") -> str:
    """`text`, its middle left out where it would take more than `extent` px."""
    room = int(extent / text_width("x", style))
    if len(text) <= max(room, 3):
        return text
    head = (room - 1) // 2
    return f"{text[: room - 1 - head]}…{text[len(text) - head :] if head else ''}"


def shifted(shape: Shape, x: float, y: float) -> Shape:
    """The same shape moved."""
    if isinstance(shape, Line):
        return msgspec.structs.replace(shape, x1=shape.x1 + x, x2=shape.x2 + x, y1=shape.y1 + y, y2=shape.y2 + y)
    return msgspec.structs.replace(shape, x=shape.x + x, y=shape.y + y)


def stacked(pictures: Sequence[tuple[str, Picture]]) -> Picture:
    """Pictures below one another, each under its heading."""
    shapes: list[Shape] = []
    y = 16.0
    for heading, picture in pictures:
        shapes.append(Label(x=20, y=y + 14, text=heading, style="heading", anchor="start"))
        shapes += [shifted(shape, 20, y + 28) for shape in picture.shapes]
        y += picture.height + 48
    width = max(picture.width for _, picture in pictures) + 40
    description = " ".join(picture.description for _, picture in pictures)
    return Picture(width=width, height=y, shapes=tuple(shapes), title=pictures[0][1].title, description=description)


def picture_svg(picture: Picture, *, styles: str = "", name: str = "picture") -> str:
    """SVG text; `styles` goes into it where it is a file of its own. `name` keeps ids apart on a page."""
    root = tree.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {_number(picture.width)} {_number(picture.height)}",
            "width": _number(picture.width),
            "height": _number(picture.height),
            "role": "img",
            "class": "drawing",
            "aria-labelledby": f"{name}-title {name}-description",
        },
    )
    tree.SubElement(root, "title", {"id": f"{name}-title"}).text = clean(picture.title)
    tree.SubElement(root, "desc", {"id": f"{name}-description"}).text = clean(picture.description)
    if styles:
        tree.SubElement(root, "style").text = styles
        background = {"width": _number(picture.width), "height": _number(picture.height), "class": "paper"}
        tree.SubElement(root, "rect", background)
    for shape in picture.shapes:
        _add(root, shape)
    return tree.tostring(root, encoding="unicode") + "\n"


def clean(text: str) -> str:
    """`text` without what XML cannot hold."""
    return "".join(
        character if character in "\t\n" or (" " <= character < "\ud800") or character >= "\ue000" else "\ufffd"
        for character in text
        if character not in "\ufffe\uffff"
    )


def _add(root: tree.Element, shape: Shape) -> None:
    if isinstance(shape, Rect):
        box = {"x": shape.x, "y": shape.y, "width": shape.width, "height": shape.height, "rx": shape.radius}
        _tipped(root, "rect", {key: _number(value) for key, value in box.items()}, shape.style, shape.tip)
    elif isinstance(shape, Disc):
        disc = {"cx": shape.x, "cy": shape.y, "r": shape.radius}
        _tipped(root, "circle", {key: _number(value) for key, value in disc.items()}, shape.style, shape.tip)
    elif isinstance(shape, Line):
        _add_line(root, shape)
    else:
        text = clean(shortened(shape.text, shape.extent, shape.style) if shape.extent else shape.text)
        place = {"x": _number(shape.x), "y": _number(shape.y), "text-anchor": shape.anchor, "class": shape.style}
        element = tree.SubElement(root, "text", place)
        element.text = text
        if text != shape.text:
            tree.SubElement(element, "title").text = clean(shape.text)


def _add_line(root: tree.Element, line: Line) -> None:
    middle_x, middle_y = (line.x1 + line.x2) / 2, (line.y1 + line.y2) / 2
    along_x, along_y = line.x2 - line.x1, line.y2 - line.y1
    length = max((along_x**2 + along_y**2) ** 0.5, 1e-9)
    along_x, along_y = along_x / length, along_y / length
    control = f"Q{_number(middle_x + 2 * line.bend * along_y)} {_number(middle_y - 2 * line.bend * along_x)} "
    path = (
        f"M{_number(line.x1)} {_number(line.y1)}{control if line.bend else 'L'}{_number(line.x2)} {_number(line.y2)}"
    )
    attributes = {"d": path, "stroke-width": _number(line.width)}
    _tipped(root, "path", attributes, f"line {line.style}", line.tip)
    if line.arrow:
        tip_x, tip_y = middle_x + line.bend * along_y + 5 * along_x, middle_y - line.bend * along_x + 5 * along_y
        corners = [(tip_x, tip_y)]
        for side in (1, -1):
            back = 9 * along_x - side * 4.5 * along_y, 9 * along_y + side * 4.5 * along_x
            corners.append((tip_x - back[0], tip_y - back[1]))
        points = " ".join(f"{_number(x)},{_number(y)}" for x, y in corners)
        tree.SubElement(root, "polygon", {"points": points, "class": f"head {line.style}"})


def _tipped(root: tree.Element, tag: str, attributes: dict[str, str], style: str, tip: str) -> None:
    element = tree.SubElement(root, tag, {**attributes, "class": style})
    if tip:
        tree.SubElement(element, "title").text = clean(tip)


def _number(value: float) -> str:
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text
