"""Regular networks by name: ring, full, switch, hypercube, mesh, torus, fat-tree, dragonfly, rail-optimized.

Each link is two-way and as fast as the file's `link` says, by default 50 GB/s.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

from forestsyn.errors import InputError
from forestsyn.frontend.builder import Speed, TopologyBuilder
from forestsyn.ir.topology import Vertex, VertexKind

DEFAULT_BANDWIDTH = Fraction(50)
DEFAULT_HOST_BANDWIDTH = Fraction(450)


def add_ring(builder: TopologyBuilder, count: int, speed: Speed) -> None:
    """GPU i is linked to i+1, the last one to the first; two GPUs have one link."""
    add_grid(builder, [count], speed, wrap=True)


def add_full(builder: TopologyBuilder, count: int, speed: Speed) -> None:
    """Every two of `count` GPUs are linked."""
    builder.reserve(count, count * (count - 1))
    gpus = [_gpu(builder, f"gpu{index}") for index in range(count)]
    for one, other in itertools.combinations(gpus, 2):
        _join(builder, one, other, speed)


def add_star(builder: TopologyBuilder, count: int, speed: Speed) -> None:
    """`count` GPUs on one switch."""
    builder.reserve(count + 1, 2 * count)
    gpus = [_gpu(builder, f"gpu{index}") for index in range(count)]
    switch = _switch(builder, "switch0")
    for gpu in gpus:
        _join(builder, gpu, switch, speed)


def add_hypercube(builder: TopologyBuilder, dimension: int, speed: Speed) -> None:
    """2^dimension GPUs, linked when their numbers differ in one bit."""
    if dimension > 16:
        raise InputError(f"a hypercube of dimension {dimension} is too large, the limit is 16")
    count = 2**dimension
    builder.reserve(count, count * dimension)
    gpus = [_gpu(builder, f"gpu{index}") for index in range(count)]
    for one in range(count):
        for bit in range(dimension):
            if one < one ^ (1 << bit):
                _join(builder, gpus[one], gpus[one ^ (1 << bit)], speed)


def add_grid(builder: TopologyBuilder, dimensions: Sequence[int], speed: Speed, *, wrap: bool) -> None:
    """A mesh, or with `wrap` a torus, in row-major order. A dimension of two has one link, wrapped or not."""
    count = 1
    for size in dimensions:
        count *= size
    builder.reserve(count, 2 * count * len(dimensions))
    gpus = {
        place: _gpu(builder, "gpu" + ".".join(map(str, place)))
        for place in itertools.product(*(range(size) for size in dimensions))
    }
    for place, gpu in gpus.items():
        for axis, size in enumerate(dimensions):
            step = place[axis] + 1
            if step < size or (wrap and size > 2):
                neighbour = (*place[:axis], step % size, *place[axis + 1 :])
                _join(builder, gpu, gpus[neighbour], speed)


def add_leaf_spine(
    builder: TopologyBuilder, leaves: int, gpus: int, spines: int, oversubscription: int, speed: Speed
) -> None:
    """`gpus` GPUs on each leaf; each leaf has a link to each spine, all together 1/oversubscription of its GPUs."""
    builder.reserve(leaves * (gpus + 1) + spines, 2 * leaves * (gpus + spines))
    up = Speed(speed.bandwidth * gpus / (spines * oversubscription), speed.latency)
    members = [[_gpu(builder, f"gpu{leaf}.{index}") for index in range(gpus)] for leaf in range(leaves)]
    leaf_switches = [_switch(builder, f"leaf{leaf}") for leaf in range(leaves)]
    spine_switches = [_switch(builder, f"spine{spine}") for spine in range(spines)]
    for leaf, below in zip(leaf_switches, members, strict=True):
        for gpu in below:
            _join(builder, gpu, leaf, speed)
        for spine in spine_switches:
            _join(builder, leaf, spine, up)


def add_fat_tree(builder: TopologyBuilder, ports: int, speed: Speed) -> None:
    """The k-ary fat tree of k-port switches: k pods of k/2 edge and k/2 upper switches, k²/4 cores, k³/4 GPUs."""
    if ports % 2:
        raise InputError(f"a fat tree of {ports}-port switches is not defined, expected an even number")
    half = ports // 2
    builder.reserve(ports**3 // 4 + ports * ports + half * half, 3 * ports**3 // 2)
    gpus = [
        _gpu(builder, f"gpu{pod}.{edge}.{index}")
        for pod, edge, index in itertools.product(range(ports), range(half), range(half))
    ]
    edges = [_switch(builder, f"edge{pod}.{edge}") for pod in range(ports) for edge in range(half)]
    uppers = [_switch(builder, f"upper{pod}.{upper}") for pod in range(ports) for upper in range(half)]
    cores = [_switch(builder, f"core{upper}.{index}") for upper in range(half) for index in range(half)]
    for position, gpu in enumerate(gpus):
        _join(builder, gpu, edges[position // half], speed)
    for pod, edge, upper in itertools.product(range(ports), range(half), range(half)):
        _join(builder, edges[pod * half + edge], uppers[pod * half + upper], speed)
    for pod, upper, index in itertools.product(range(ports), range(half), range(half)):
        _join(builder, uppers[pod * half + upper], cores[upper * half + index], speed)


def add_dragonfly(builder: TopologyBuilder, groups: int, routers: int, gpus: int, speed: Speed) -> None:
    """Routers of a group are all linked, and every two groups once; those links go round the routers in turn."""
    builder.reserve(groups * routers * (gpus + 1), groups * routers * (2 * gpus + routers) + groups * groups)
    members = [
        _gpu(builder, f"gpu{group}.{router}.{index}")
        for group, router, index in itertools.product(range(groups), range(routers), range(gpus))
    ]
    switches = [_switch(builder, f"router{group}.{router}") for group in range(groups) for router in range(routers)]
    for position, gpu in enumerate(members):
        _join(builder, gpu, switches[position // gpus], speed)
    for group in range(groups):
        for one, other in itertools.combinations(range(routers), 2):
            _join(builder, switches[group * routers + one], switches[group * routers + other], speed)
    used = [0] * groups
    for one, other in itertools.combinations(range(groups), 2):
        ends = [switches[group * routers + used[group] % routers] for group in (one, other)]
        _join(builder, ends[0], ends[1], speed)
        used[one] += 1
        used[other] += 1


def add_rails(
    builder: TopologyBuilder, hosts: int, gpus: int, host_speed: Speed, speed: Speed, oversubscription: int | None
) -> None:
    """GPU r of every host is on switch rail r. The spine carries 1/oversubscription of each rail; None: no spine."""
    builder.reserve(hosts * (gpus + 1) + gpus + 1, 4 * hosts * gpus + 2 * gpus)
    members = []
    for host in (f"n{index}" for index in range(hosts)):
        members.append([_gpu(builder, f"{host}/gpu{index}", host) for index in range(gpus)])
        inner = _switch(builder, f"{host}/switch0", host)
        for gpu in members[-1]:
            _join(builder, gpu, inner, host_speed)
    rails = [_switch(builder, f"rail{index}") for index in range(gpus)]
    for below in members:
        for gpu, rail in zip(below, rails, strict=True):
            _join(builder, gpu, rail, speed)
    if oversubscription is not None:
        spine = _switch(builder, "spine0")
        for rail in rails:
            _join(builder, rail, spine, Speed(speed.bandwidth * hosts / oversubscription, speed.latency))


def _gpu(builder: TopologyBuilder, name: str, host: str | None = None) -> int:
    return builder.add_vertex(Vertex(name=name, kind=VertexKind.GPU, host=host))


def _switch(builder: TopologyBuilder, name: str, host: str | None = None) -> int:
    defaults = builder.switch_defaults
    return builder.add_vertex(
        Vertex(name=name, kind=VertexKind.SWITCH, host=host, multicast=defaults.multicast, reduce=defaults.reduce)
    )


def _join(builder: TopologyBuilder, one: int, other: int, speed: Speed) -> None:
    builder.add_link(one, other, speed)
    builder.add_link(other, one, speed)
