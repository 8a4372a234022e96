"""The shape keys of a file (`torus: [4, 4]`, ...) and the shape names of the command line (`torus:4x4`)."""

from __future__ import annotations

from fractions import Fraction

import msgspec

from forestsyn.errors import InputError
from forestsyn.frontend import shapes
from forestsyn.frontend.builder import MAXIMUM_VERTICES, Speed, TopologyBuilder
from forestsyn.frontend.expression import Variables, evaluate_count
from forestsyn.frontend.schema import FatTreeShape, LinkRate, RailShape, TopologyFile, TorusShape, Whole
from forestsyn.frontend.speeds import SpeedReader
from forestsyn.units import format_count

_MAXIMUM_DIMENSIONS = 8


class ShapeName(msgspec.Struct, frozen=True, kw_only=True):
    """A shape as the command line names it: `text` makes its file from the sizes, `default` sizes an example."""

    name: str
    title: str
    parameter: str
    sizes: int | None
    default: tuple[int, ...]
    text: str


def shape_names() -> tuple[ShapeName, ...]:
    """All shapes; `sizes` is how many numbers a name needs, None for any."""
    rows: tuple[tuple[str, str, str, int | None, tuple[int, ...], str], ...] = (
        ("dragonfly", "groups of linked routers", "groups x routers x GPUs", 3, (3, 2, 2), _DRAGONFLY),
        ("fat-tree", "k-ary fat tree of k-port switches", "ports k", 1, (4,), "fat-tree: {0}"),
        ("full", "every two GPUs linked", "GPUs", 1, (8,), "full: {0}"),
        ("hypercube", "GPUs linked along each binary dimension", "dimension", 1, (3,), "hypercube: {0}"),
        ("leaf-spine", "two tiers of switches, one spine", "leaves x GPUs", 2, (4, 8), _LEAF_SPINE),
        ("mesh", "grid without wrap", "sizes A x B x ...", None, (4, 4), "mesh: [{all}]"),
        ("rail-optimized", "hosts of linked GPUs, a switch for each rail", "hosts x GPUs", 2, (4, 8), _RAILS),
        ("ring", "each GPU linked to the next", "GPUs", 1, (8,), "ring: {0}"),
        ("switch", "GPUs on one switch", "GPUs", 1, (8,), "switch: {0}"),
        ("torus", "grid with wrap", "sizes A x B x ...", None, (4, 4), "torus: [{all}]"),
    )
    return tuple(
        ShapeName(name=name, title=title, parameter=parameter, sizes=sizes, default=default, text=text)
        for name, title, parameter, sizes, default, text in rows
    )


_DRAGONFLY = "dragonfly: {{groups: {0}, routers: {1}, gpus: {2}}}"
_LEAF_SPINE = "fat-tree: {{leaves: {0}, gpus: {1}}}"
_RAILS = "rail-optimized: {{hosts: {0}, gpus: {1}}}"


def shape_text(shape: ShapeName, sizes: tuple[int, ...]) -> str:
    """The native file of `shape` with these sizes. Raises InputError without a place."""
    if not sizes or (shape.sizes is not None and len(sizes) != shape.sizes):
        example = f"{shape.name}:{'x'.join(map(str, shape.default))}"
        raise InputError(f"'{shape.name}' needs its size: {shape.parameter}", hint=f"for example {example}")
    body = shape.text.format(*sizes, all=", ".join(map(str, sizes)))
    return f"forestsyn: 1\nname: {shape.name}-{'x'.join(map(str, sizes))}\n{body}\n"


def add_shape(
    key: str, file: TopologyFile, reader: SpeedReader, variables: Variables, builder: TopologyBuilder
) -> None:
    """Add the shape that `file` gives under `key`. Raises InputError without a place."""
    speed = _link_speed(file.link, reader, variables, shapes.DEFAULT_BANDWIDTH, builder)
    value = getattr(file, key)
    if isinstance(value, RailShape):
        _add_rails(value, speed, reader, variables, builder)
    elif isinstance(value, FatTreeShape):
        leaves, gpus, spines, over = _sizes(
            (value.leaves, value.gpus, value.spines, value.oversubscription), variables
        )
        shapes.add_leaf_spine(builder, leaves, gpus, spines, over, speed)
    elif key == "dragonfly":
        groups, routers, gpus = _sizes((value.groups, value.routers, value.gpus), variables)
        shapes.add_dragonfly(builder, groups, routers, gpus, speed)
    elif key in ("mesh", "torus"):
        _add_grid(value, key == "torus", speed, variables, builder)
    else:
        add = {
            "ring": shapes.add_ring,
            "full": shapes.add_full,
            "switch": shapes.add_star,
            "hypercube": shapes.add_hypercube,
            "fat_tree": shapes.add_fat_tree,
        }[key]
        add(builder, _size(value, variables), speed)


def _add_grid(
    value: list[Whole] | TorusShape, wrap: bool, speed: Speed, variables: Variables, builder: TopologyBuilder
) -> None:
    torus = value if isinstance(value, TorusShape) else TorusShape(dimensions=value)
    if not 1 <= len(torus.dimensions) <= _MAXIMUM_DIMENSIONS:
        found = format_count(len(torus.dimensions), "dimension")
        raise InputError(f"found {found}, expected 1 to {_MAXIMUM_DIMENSIONS}")
    dimensions = _sizes(tuple(torus.dimensions), variables)
    multiple = _size(torus.wrap_multiple, variables)
    wrap = wrap and all(size % multiple == 0 for size in dimensions)
    shapes.add_grid(builder, dimensions, speed, wrap=wrap)


def _add_rails(
    shape: RailShape, speed: Speed, reader: SpeedReader, variables: Variables, builder: TopologyBuilder
) -> None:
    host_speed = _link_speed(shape.host_link, reader, variables, shapes.DEFAULT_HOST_BANDWIDTH, builder)
    hosts, gpus, oversubscription = _sizes((shape.hosts, shape.gpus, shape.oversubscription), variables)
    shapes.add_rails(builder, hosts, gpus, host_speed, speed, oversubscription if shape.spine else None)


def _link_speed(
    link: LinkRate | None, reader: SpeedReader, variables: Variables, default: Fraction, builder: TopologyBuilder
) -> Speed:
    if link is not None:
        return reader.read(link, variables)
    builder.notes.append(f"no bandwidth is given for its links: {default} GB/s is assumed")
    return Speed(default, None)


def _sizes(values: tuple[Whole, ...], variables: Variables) -> list[int]:
    return [_size(value, variables) for value in values]


def _size(value: Whole, variables: Variables) -> int:
    return evaluate_count(value, variables, minimum=1, maximum=MAXIMUM_VERTICES, what="the size of the shape")
