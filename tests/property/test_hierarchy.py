"""Clusters of hosts: the hierarchical packing against the general way, and what a wrong step of it can do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from importlib import import_module
from itertools import combinations, pairwise
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from forestsyn.core import build_forest, choose_demand, hierarchy, solve_optimum, solve_time_units, symmetry
from forestsyn.core import forest as assembly
from forestsyn.core.cluster import Cluster, find_cluster
from forestsyn.core.crossing import Edges, Shape
from forestsyn.core.inside import Inside
from forestsyn.core.logical import LogicalGraph
from forestsyn.core.network import vertex_order
from forestsyn.core.optimum import directed_network
from forestsyn.core.timing import carrying_capacities
from forestsyn.errors import InfeasibleError, VerificationError
from forestsyn.frontend import load_topology
from forestsyn.ir.collective import Collective
from forestsyn.ir.forest import Direction, Forest
from forestsyn.ir.topology import Topology, Vertex, VertexKind
from forestsyn.pipeline.synthesize import synthesize
from forestsyn.verify import forest_load, verify_forest
from tests.strategies import Bandwidths, make_links

directions = st.sampled_from(Direction)
MAXIMUM_RANKS = 20
MAXIMUM_TREES = 5_000

INSIDES = ("switch", "two switches", "full", "ring", "pairs")
NICS = ("own", "none", "shared", "every other")
FABRICS = ("planes", "planes with spine", "units with spine")


@dataclass
class Draft:
    """A topology under construction; GPUs are its ranks, in order of creation."""

    vertices: list[Vertex] = field(default_factory=list)
    links: dict[tuple[int, int], Fraction] = field(default_factory=dict)

    def add(self, name: str, kind: VertexKind, host: str | None = None) -> int:
        self.vertices.append(Vertex(name=name, kind=kind, host=host))
        return len(self.vertices) - 1

    def join(self, first: int, second: int, bandwidth: Fraction) -> None:
        for ends in ((first, second), (second, first)):
            self.links[ends] = self.links.get(ends, Fraction(0)) + bandwidth

    def topology(self) -> Topology:
        links: Bandwidths = self.links
        gpus = tuple(v for v, vertex in enumerate(self.vertices) if vertex.kind is VertexKind.GPU)
        return Topology(name="cluster", vertices=tuple(self.vertices), links=make_links(links), ranks=gpus)


@st.composite
def hierarchical_clusters(draw: st.DrawFn, *, exceptions: bool = True) -> Topology:
    """2 to 8 hosts of 1 to 8 GPUs around 1 to 4 planes, some with a dead GPU, a dead NIC or slow links."""
    hosts = draw(st.integers(2, 8))
    usual = draw(st.integers(1, min(8, MAXIMUM_RANKS // hosts)))
    sizes = [usual] * hosts
    if exceptions and draw(st.booleans()):
        sizes[draw(st.integers(0, hosts - 1))] = max(1, usual - draw(st.integers(1, 3)))
    slow, dead = (draw(st.integers(0, 3 * hosts)) if exceptions else hosts for _ in range(2))
    inside, nics, fabric = (draw(st.sampled_from(kinds)) for kinds in (INSIDES, NICS, FABRICS))
    inner = Fraction(draw(st.sampled_from([300, 100, 50, 25, 7])))
    outer = Fraction(draw(st.sampled_from([25, 50, 10, 7, Fraction(25, 2)])))
    draft = Draft()
    plane_of = _fabric(draft, hosts, draw(st.integers(1, 4)), fabric, outer * draw(st.sampled_from([1, 2, 4])))
    for host, size in enumerate(sizes):
        pace = Fraction(1, 2) if host == slow else Fraction(1)
        gpus = [draft.add(f"h{host}/g{gpu}", VertexKind.GPU, f"h{host}") for gpu in range(size)]
        _inside(draft, host, gpus, inside, inner * pace)
        _outside(draft, host, gpus, nics, plane_of, outer * pace, dead=host == dead)
    return draft.topology()


def _fabric(draft: Draft, hosts: int, planes: int, kind: str, trunk: Fraction) -> Callable[[int, int], int]:
    """Adds switches; returns host, plane number → switch. Units are pairs of hosts with leaves of their own."""
    units = range(0, hosts, 2) if kind == "units with spine" else range(1)
    leaves = {
        (unit, plane): draft.add(f"leaf{unit}.{plane}", VertexKind.SWITCH)
        for unit in units
        for plane in range(planes)
    }
    if kind != "planes" and len(leaves) > 1:
        spine = draft.add("spine", VertexKind.SWITCH)
        for leaf in leaves.values():
            draft.join(leaf, spine, trunk)
    return lambda host, plane: leaves[host - host % 2 if len(units) > 1 else 0, plane % planes]


def _inside(draft: Draft, host: int, gpus: list[int], kind: str, bandwidth: Fraction) -> None:
    if len(gpus) == 1:
        return
    if kind == "full":
        for first, second in combinations(gpus, 2):
            draft.join(first, second, bandwidth)
    elif kind == "ring":
        for first, second in pairwise([*gpus, gpus[0]] if len(gpus) > 2 else gpus):
            draft.join(first, second, bandwidth)
    elif kind == "pairs":
        cpu = draft.add(f"h{host}/cpu", VertexKind.CPU, f"h{host}")
        for number in range(0, len(gpus), 2):
            switch = draft.add(f"h{host}/pcie{number}", VertexKind.SWITCH, f"h{host}")
            draft.join(switch, cpu, bandwidth)
            for gpu in gpus[number : number + 2]:
                draft.join(gpu, switch, bandwidth)
    else:
        for number in range(1 if kind == "switch" else 2):
            switch = draft.add(f"h{host}/sw{number}", VertexKind.SWITCH, f"h{host}")
            for gpu in gpus:
                draft.join(gpu, switch, bandwidth)


def _outside(
    draft: Draft,
    host: int,
    gpus: list[int],
    kind: str,
    plane_of: Callable[[int, int], int],
    bandwidth: Fraction,
    dead: bool,
) -> None:
    """Ways out of a host: a NIC for each user or two of them, or straight from the GPU; the first may be dead."""
    step = 2 if kind in ("shared", "every other") else 1
    groups = [gpus[number : number + step] for number in range(0, len(gpus), step)]
    for number, group in enumerate(groups):
        if dead and number == 0 and len(groups) > 1:
            continue
        if kind == "none":
            draft.join(group[0], plane_of(host, number), bandwidth)
            continue
        nic = draft.add(f"h{host}/nic{number}", VertexKind.NIC, f"h{host}")
        draft.join(nic, plane_of(host, number), bandwidth)
        for gpu in group if kind == "shared" else group[:1]:
            draft.join(gpu, nic, bandwidth)


def _general_forest(topology: Topology, demand: tuple[int, ...], direction: Direction) -> Forest:
    """The forest that the general way gives, whatever the hierarchical packing could do."""
    network = directed_network(topology, direction)
    time, capacities = carrying_capacities(topology, network, demand)
    order = vertex_order(topology)
    hosts = [topology.vertices[vertex].host for vertex in order]
    rows = assembly._general(network, capacities, demand, hosts)
    return assembly._forest(rows, demand, direction, time, order)


def _is_cluster(topology: Topology) -> bool:
    network = directed_network(topology, Direction.OUT)
    hosts = [topology.vertices[vertex].host for vertex in vertex_order(topology)]
    return find_cluster(network, network.capacities, hosts) is not None


@given(hierarchical_clusters(), directions)
def test_clusters_reach_their_bound_exactly(topology: Topology, direction: Direction) -> None:
    weights = (1,) * topology.rank_count
    try:
        optimum = solve_optimum(topology, weights, direction)
    except InfeasibleError:
        assume(False)
    event(f"seen as a cluster: {_is_cluster(topology)}")
    assume(optimum.trees_per_root * topology.rank_count <= MAXIMUM_TREES)
    forest = build_forest(topology, (optimum.trees_per_root,) * topology.rank_count, direction)
    verify_forest(topology, forest)
    assert forest_load(topology, forest) * topology.rank_count / forest.chunk_count == optimum.inverse_rate


@settings(max_examples=max(settings().max_examples // 2, 1))
@given(hierarchical_clusters(), directions, st.integers(1, 3))
def test_no_result_differs_from_the_general_way(topology: Topology, direction: Direction, count: int) -> None:
    demand = (count,) * topology.rank_count
    try:
        time_units = solve_time_units(topology, demand, direction)
    except InfeasibleError:
        assume(False)
    for forest in (build_forest(topology, demand, direction), _general_forest(topology, demand, direction)):
        verify_forest(topology, forest)
        assert forest.time_units == time_units
        assert forest_load(topology, forest) == time_units


@settings(max_examples=max(settings().max_examples // 2, 1))
@given(hierarchical_clusters(), st.sampled_from([Collective.ALLREDUCE, Collective.ALLGATHER]), st.integers(0, 20))
def test_uneven_demand(topology: Topology, collective: Collective, percent: int) -> None:
    """As programs ask for it: powers of two of chunks, handed out unevenly by an allreduce."""
    try:
        choice = choose_demand(topology, collective, None, "auto", Fraction(percent, 100), chunked=True)
    except InfeasibleError:
        assume(False)
    forest = build_forest(topology, choice.demand, Direction.OUT, choice.time_units[-1])
    verify_forest(topology, forest)
    assert forest_load(topology, forest) == choice.time_units[-1]


@settings(max_examples=max(settings().max_examples // 2, 1))
@given(hierarchical_clusters(), directions, st.integers(1, 3))
def test_orbits_change_no_result(topology: Topology, direction: Direction, count: int) -> None:
    """The guessed turn of the hosts holds here and fails there (dead, slow or small hosts); nothing may differ."""
    weights, demand = (1,) * topology.rank_count, (count,) * topology.rank_count
    results = []
    for smallest in (0, topology.rank_count + 1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(symmetry, "WORTH_A_SEARCH", smallest)
            try:
                optimum = solve_optimum(topology, weights, direction)
            except InfeasibleError:
                assume(False)
            results.append((optimum.inverse_rate, solve_time_units(topology, demand, direction)))
    assert results[0] == results[1]


@settings(max_examples=max(settings().max_examples // 2, 1))
@given(hierarchical_clusters(exceptions=False), directions, st.integers(1, 3))
def test_a_base_and_its_turns_are_a_forest(topology: Topology, direction: Direction, count: int) -> None:
    demand = (count,) * topology.rank_count
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hierarchy, "WHOLE_RANKS", 0)
        try:
            time_units = solve_time_units(topology, demand, direction)
        except InfeasibleError:
            assume(False)
        forest = build_forest(topology, demand, direction, time_units)
    event(f"turns: {forest.turns > 1}")
    whole = _written_out(topology, forest)
    verify_forest(topology, whole)
    assert whole.tree_count == forest.tree_count
    assert whole.depth == forest.depth
    assert forest_load(topology, whole) == time_units


def _written_out(topology: Topology, forest: Forest) -> Forest:
    """The images of all rows under all powers of the turn."""
    if forest.turn is None:
        return forest
    rank_of = {vertex: rank for rank, vertex in enumerate(topology.ranks)}
    image = np.array([rank_of[int(forest.turn[vertex])] for vertex in topology.ranks])
    roots, parents, routes, numbers = forest.roots, forest.parents, forest.routes, forest.edge_routes
    rows: list[tuple[Any, ...]] = []
    all_routes: list[tuple[int, ...]] = []
    for _ in range(forest.turns):
        shifted = np.where(numbers >= 0, numbers + len(all_routes), -1)
        rows.append((roots, forest.multiplicities, parents, shifted))
        all_routes.extend(routes)
        roots = image[roots]
        parents, numbers = (_moved(array, image) for array in (np.where(parents >= 0, image[parents], -1), numbers))
        routes = tuple(tuple(int(forest.turn[vertex]) for vertex in route) for route in routes)
    columns = [np.concatenate(column) for column in zip(*rows, strict=True)]
    return msgspec.structs.replace(
        forest,
        roots=columns[0],
        multiplicities=columns[1],
        parents=columns[2],
        edge_routes=columns[3],
        routes=tuple(all_routes),
        turn=None,
        turns=1,
    )


def _moved(array: Any, image: Any) -> Any:
    """Column v of the array as column image[v]."""
    moved = np.empty_like(array)
    moved[:, image] = array
    return moved


@settings(max_examples=max(settings().max_examples // 2, 1))
@given(hierarchical_clusters(), directions, st.data())
def test_host_names_are_hints(topology: Topology, direction: Direction, data: st.DataObject) -> None:
    """Devices that claim to be in other hosts, or in none, mislead every guess; the rate stays the same."""
    names = st.sampled_from([None, *dict.fromkeys(vertex.host for vertex in topology.vertices if vertex.host)])
    misled = msgspec.structs.replace(
        topology,
        vertices=tuple(
            msgspec.structs.replace(vertex, host=data.draw(names)) if data.draw(st.integers(0, 4)) == 0 else vertex
            for vertex in topology.vertices
        ),
    )
    demand = (1,) * topology.rank_count
    try:
        time_units = solve_time_units(topology, demand, direction)
    except InfeasibleError:
        assume(False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(symmetry, "WORTH_A_SEARCH", 0)
        assert solve_time_units(misled, demand, direction) == time_units
        forest = build_forest(misled, demand, direction, time_units)
    verify_forest(topology, forest)
    assert forest_load(topology, forest) == time_units


def _units(hosts: int, gpus: int, trunk: int) -> Topology:
    """Hosts in pairs, each pair on leaves of its own, one per GPU, under one spine."""
    draft = Draft()
    leaf = _fabric(draft, hosts, gpus, "units with spine", Fraction(trunk))
    for host in range(hosts):
        members = [draft.add(f"h{host}/g{gpu}", VertexKind.GPU, f"h{host}") for gpu in range(gpus)]
        _inside(draft, host, members, "switch", Fraction(300))
        _outside(draft, host, members, "own", leaf, Fraction(50), dead=False)
    return draft.topology()


SAMPLES: dict[str, Callable[[], Topology]] = {
    **{
        spec: partial(load_topology, spec)
        for spec in ("dgx-a100:4", "dgx-h100:3", "mi300x:3", "p4d:2", "rail-optimized:3x4")
    },
    "units": partial(_units, 6, 4, 100),
    "units, oversubscribed": partial(_units, 5, 4, 75),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_the_samples_below_are_packed_as_clusters(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the injections would test nothing."""

    def refuse(*_: object) -> None:
        raise AssertionError("the general way was taken")

    monkeypatch.setattr(assembly, "_general", refuse)
    assert synthesize(SAMPLES[name](), Collective.ALLGATHER, trees=2).tree_count


def _wider_ports(cluster: Cluster) -> Cluster:
    return msgspec.structs.replace(
        cluster,
        hosts=tuple(
            msgspec.structs.replace(
                host,
                ingress=tuple(msgspec.structs.replace(port, units=3 * port.units) for port in host.ingress),
                egress=tuple(msgspec.structs.replace(port, units=3 * port.units) for port in host.egress),
            )
            for host in cluster.hosts
        ),
    )


def _wider_insides(cluster: Cluster) -> Cluster:
    return msgspec.structs.replace(
        cluster,
        hosts=tuple(
            msgspec.structs.replace(host, arcs=tuple((tail, head, 9 * units) for tail, head, units in host.arcs))
            for host in cluster.hosts
        ),
    )


def _swapped_hosts(cluster: Cluster) -> Cluster:
    """Host numbers that do not fit the ranks."""
    shift = max(cluster.host_of) + 1
    return msgspec.structs.replace(cluster, host_of=tuple((host + 1) % shift for host in cluster.host_of))


def _one_plane(cluster: Cluster) -> Cluster:
    """All ports on one plane, whether its switches are joined or not."""
    return msgspec.structs.replace(
        cluster,
        hosts=tuple(
            msgspec.structs.replace(
                host,
                ingress=tuple(msgspec.structs.replace(port, plane=0) for port in host.ingress),
                egress=tuple(msgspec.structs.replace(port, plane=0) for port in host.egress),
            )
            for host in cluster.hosts
        ),
    )


def _links_without_end(cluster: Cluster) -> Cluster:
    return msgspec.structs.replace(cluster, links=dict.fromkeys(cluster.links, 1 << 40))


def _one_entry(wanted: Sequence[int], _: Sequence[int]) -> list[int]:
    """All trees by the first port, however many it takes."""
    return [sum(wanted), *(0 for _ in wanted[1:])]


def _all_back(graph: LogicalGraph, switch: int, *_: object) -> dict[tuple[int, int], int]:
    """A plan by which a switch sends everything back where it came from."""
    out = graph.outgoing[switch]
    return {(port, port): min(units, out[port]) for port, units in graph.incoming[switch].items() if port in out}


def _chains(inside: Inside | None) -> Inside | None:
    """Inner trees that are all the chain through the host, whatever its links carry."""
    if inside is None:
        return None
    trees = []
    for tree in inside.trees:
        size = len(tree.parents)
        order = [(tree.start + step) % size for step in range(size)]
        known = {(parent, place): route for other in inside.trees for place, (parent, route) in _edges(other)}
        parents, routes = list(tree.parents), list(tree.routes)
        for parent, place in pairwise(order):
            if (parent, place) in known:
                parents[place], routes[place] = parent, known[parent, place]
        trees.append(msgspec.structs.replace(tree, parents=tuple(parents), routes=tuple(routes)))
    return msgspec.structs.replace(inside, trees=tuple(trees))


def _edges(tree: Any) -> list[tuple[int, Any]]:
    ends = zip(tree.parents, tree.routes, strict=True)
    return [(place, (parent, route)) for place, (parent, route) in enumerate(ends) if parent >= 0]


def _knotted(shape: Shape) -> Shape:
    """The two last hosts of every tree have each other as parents."""
    parent = shape.parent.copy()
    parent[-1], parent[-2] = len(parent) - 2, len(parent) - 1
    return msgspec.structs.replace(shape, parent=parent)


def _star(shape: Shape) -> Shape:
    """Every host right behind the root host: right, but with loads of another kind."""
    return msgspec.structs.replace(shape, parent=np.zeros_like(shape.parent), level=np.minimum(shape.level, 1))


def _chain(shape: Shape) -> Shape:
    hosts = np.arange(len(shape.parent))
    return msgspec.structs.replace(shape, parent=np.maximum(hosts - 1, 0), level=hosts)


def _unrepaired(*arguments: Any) -> Edges | None:
    edges: Edges = arguments[1]
    return edges


def _first_exit(*arguments: Any) -> Edges | None:
    """All edges of a host leave by its first port."""
    exits, edges = arguments[0], arguments[1]
    first = np.array([min(map(min, by_plane.values())) for by_plane in exits.at])
    return msgspec.structs.replace(edges, exits=np.where(edges.exits >= 0, first[edges.parents], -1))


def _straight(*arguments: Any) -> list[tuple[tuple[int, ...], int]]:
    """A route between two switches as if every two of them were joined."""
    _, tail, head, units = arguments
    return [((tail,) if tail == head else (tail, head), units)]


def _after(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Makes of a function another one that changes its result."""
    return lambda function: lambda *arguments: change(function(*arguments))


def _instead(replacement: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda _: replacement


def _nothing(*_: object) -> None:
    return None


HIERARCHY, LAYOUT, INSIDE = (f"forestsyn.core.{name}" for name in ("hierarchy", "layout", "inside"))

INJECTIONS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "no cluster": (f"{HIERARCHY}.find_cluster", _instead(_nothing)),
    "ports thrice as wide": (f"{HIERARCHY}.find_cluster", _after(_wider_ports)),
    "insides nine times as wide": (f"{HIERARCHY}.find_cluster", _after(_wider_insides)),
    "ranks at the wrong hosts": (f"{HIERARCHY}.find_cluster", _after(_swapped_hosts)),
    "all ports on one plane": (f"{HIERARCHY}.find_cluster", _after(_one_plane)),
    "links without end": (f"{HIERARCHY}.find_cluster", _after(_links_without_end)),
    "no inside": (f"{INSIDE}.Insides.solve", _instead(_nothing)),
    "all in by one port": (f"{INSIDE}._with_room", _instead(_one_entry)),
    "chains inside": (f"{INSIDE}.Insides.solve", _after(_chains)),
    "all hosts alike": ("forestsyn.core.cluster.Host.shape", _instead(lambda host: (len(host.ranks),))),
    "no violated set inside": (f"{INSIDE}.RootedFlows.first_violation", _instead(_nothing)),
    "a knot between hosts": (f"{LAYOUT}.circle_shape", _after(_knotted)),
    "a star of hosts": (f"{LAYOUT}.circle_shape", _after(_star)),
    "a chain of hosts": (f"{LAYOUT}.circle_shape", _after(_chain)),
    "no repair of exits": (f"{LAYOUT}.rehung", _instead(_unrepaired)),
    "repair gives up": (f"{LAYOUT}.rehung", _instead(_nothing)),
    "all out by one port": (f"{LAYOUT}.rehung", _instead(_first_exit)),
    "routes through thin air": (f"{LAYOUT}.Fabric.routes", _instead(_straight)),
    "no route": (f"{LAYOUT}.Fabric.routes", _instead(_nothing)),
    "no layers": ("forestsyn.core.trees.pack_layers", _instead(_nothing)),
    "a plan that turns back": ("forestsyn.core.splitting._plan", _instead(_all_back)),
}


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("injection", INJECTIONS)
def test_a_wrong_step_never_becomes_an_accepted_forest(
    injection: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, change = INJECTIONS[injection]
    owner, attribute = _resolved(target)
    monkeypatch.setattr(owner, attribute, change(getattr(owner, attribute)))
    topology = SAMPLES[name]()
    try:
        result = synthesize(topology, Collective.ALLGATHER, trees=2)
    except VerificationError:
        return
    (forest,) = result.forests
    assert _is_right(topology, forest)


def _resolved(target: str) -> tuple[Any, str]:
    """The module or class that holds the function `target` of the core, and its name there."""
    package, core, module, *path = target.split(".")
    owner: Any = import_module(f"{package}.{core}.{module}")
    for name in path[:-1]:
        owner = getattr(owner, name)
    return owner, path[-1]


def _is_right(topology: Topology, forest: Forest) -> bool:
    """The checker again, slow and plain: trees as asked for, that span and stay within the links."""
    bandwidth = {(link.tail, link.head): link.bandwidth for link in topology.links}
    trees: Counter[int] = Counter()
    loads: Counter[tuple[int, int]] = Counter()
    rows = zip(forest.roots.tolist(), forest.multiplicities.tolist(), forest.parents.tolist(), strict=True)
    for (root, units, parents), numbers in zip(rows, forest.edge_routes.tolist(), strict=True):
        trees[root] += units
        for rank in range(forest.rank_count):
            if rank != root:
                route = forest.routes[numbers[rank]]
                if (route[0], route[-1]) != (topology.ranks[parents[rank]], topology.ranks[rank]):
                    return False
                for ends in pairwise(route):
                    loads[ends] += units
            steps = 0
            while rank != root:
                rank, steps = parents[rank], steps + 1
                if steps > forest.rank_count:
                    return False
    fits = all(units <= forest.time_units * bandwidth.get(ends, 0) for ends, units in loads.items())
    return fits and tuple(trees[rank] for rank in range(forest.rank_count)) == forest.demand
