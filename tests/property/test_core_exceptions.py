"""Clusters in which one host is unlike the others: fast ways, shallow trees, compact forests and their checks."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forestsyn.core import forest as forest_module
from forestsyn.core import hierarchy, symmetry
from forestsyn.core.cluster import Port
from forestsyn.core.crossing import PEERS, Edges, Exits, circle_shape, hung_from, spread_centers
from forestsyn.core.network import build_network, host_names
from forestsyn.core.optimum import worst_cut
from forestsyn.core.rehanging import rehung
from forestsyn.core.shares import solve_shares
from forestsyn.core.symmetry import find_orbits
from forestsyn.errors import VerificationError
from forestsyn.frontend import load_topology
from forestsyn.ir.collective import Collective
from forestsyn.ir.topology import Link, Topology
from forestsyn.ir.turns import expanded
from forestsyn.pipeline.results import ForestResult
from forestsyn.pipeline.synthesize import synthesize
from forestsyn.verify import forest_load, verify_forest
from forestsyn.verify.shares import verify_shares

#: One failure each, as the lines of `exceptions`.
FAILURES = {
    "port": "{remove: n1/nic3, reason: down}",
    "two ports": '{remove: "n2/nic[3-4]", reason: down}',
    "rank": "{remove: n1/gpu5, reason: down}",
    "slow port": "{set: {link: [n0/nic1, rail1], bw: 25}, reason: slow}",
    "link inside": "{set: {link: [n1/gpu0, n1/nvsw], bw: 400}, reason: down}",
}


def _failed(folder: Path, hosts: int, failure: str, machine: str = "dgx-h100") -> Topology:
    path = folder / "cluster.yaml"
    path.write_text(f"forestsyn: 1\nuse: {machine}:{hosts}\nexceptions:\n  - {FAILURES[failure]}\n")
    return load_topology(str(path))


def _without_the_general_way(topology: Topology, collective: Collective) -> ForestResult:
    with patch.object(forest_module, "_general", side_effect=AssertionError("the general way takes minutes")):
        return synthesize(topology, collective)


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("collective", [Collective.ALLREDUCE, Collective.ALLGATHER])
def test_one_failure_keeps_the_fast_way(failure: str, collective: Collective, tmp_path: Path) -> None:
    result = _without_the_general_way(_failed(tmp_path, 8, failure), collective)
    assert result.load_over_bound <= Fraction(51, 50)
    assert result.depth <= 7 * len(result.forests)


@pytest.mark.parametrize(("hosts", "depth"), [(4, 10), (16, 10), (32, 14)])
def test_unequal_roots_have_shallow_trees(hosts: int, depth: int, tmp_path: Path) -> None:
    result = _without_the_general_way(_failed(tmp_path, hosts, "port"), Collective.ALLREDUCE)
    assert result.depth <= depth
    assert result.load_over_bound <= Fraction(51, 50)


@pytest.mark.parametrize("failure", ["port", "two ports", "slow port"])
def test_shares_ask_one_rank_of_each_orbit(failure: str, tmp_path: Path) -> None:
    topology = _failed(tmp_path, 9, failure)
    network = build_network(topology)
    orbits = find_orbits(network, host_names(topology), (1,) * topology.rank_count)
    assert len(orbits.representatives) == 16
    found = solve_shares(topology)
    verify_shares(topology, found)
    with patch.object(symmetry, "WORTH_A_SEARCH", 10**9):
        assert len(find_orbits(network, host_names(topology), (1,) * topology.rank_count).representatives) == 72
        assert solve_shares(topology) == found


def test_a_demand_that_breaks_the_symmetry_is_seen(tmp_path: Path) -> None:
    topology = _failed(tmp_path, 9, "port")
    network = build_network(topology)
    demand = [1] * topology.rank_count
    demand[40] = 5
    orbits = find_orbits(network, host_names(topology), demand)
    assert orbits.of[40] == 40
    assert len(orbits.representatives) == 24
    with patch.object(symmetry, "WORTH_A_SEARCH", 10**9):
        everyone = worst_cut(topology, network, tuple(demand))
    assert worst_cut(topology, network, tuple(demand)) == everyone


def _compact(topology: Topology) -> Any:
    with patch.object(hierarchy, "WHOLE_RANKS", 0):
        (forest,) = synthesize(topology, Collective.ALLGATHER).forests
    return forest


@pytest.mark.parametrize("failure", ["port", "two ports", "slow port", "link inside"])
@pytest.mark.parametrize("hosts", [4, 7])
def test_an_unlike_host_leaves_the_forest_compact(failure: str, hosts: int, tmp_path: Path) -> None:
    topology = _failed(tmp_path, hosts, failure)
    forest = _compact(topology)
    assert forest.turns == hosts
    whole = expanded(forest)
    verify_forest(topology, whole)
    assert forest_load(topology, whole) == forest_load(topology, forest) <= forest.time_units
    assert whole.depth == forest.depth


def test_a_missing_rank_is_written_out(tmp_path: Path) -> None:
    assert _compact(_failed(tmp_path, 4, "rank")).turn is None


def _changed(topology: Topology, ends: tuple[str, str], bandwidth: Fraction | None) -> Topology:
    """The topology with another bandwidth of a link both ways, or without it."""
    numbers = {vertex.name: number for number, vertex in enumerate(topology.vertices)}
    pair = {numbers[end] for end in ends}
    links: list[Link] = []
    for link in topology.links:
        if {link.tail, link.head} != pair:
            links.append(link)
        elif bandwidth is not None:
            links.append(msgspec.structs.replace(link, bandwidth=bandwidth))
    return msgspec.structs.replace(topology, links=tuple(links))


@pytest.mark.parametrize("bandwidth", [None, Fraction(49)], ids=["missing", "narrower"])
def test_an_image_without_a_link_or_without_room_is_rejected(bandwidth: Fraction | None, tmp_path: Path) -> None:
    """The base uses nic2 of all hosts, so each host must have it, as wide as the load."""
    topology = _failed(tmp_path, 4, "port")
    forest = _compact(topology)
    for host in range(4):
        with pytest.raises(VerificationError):
            verify_forest(_changed(topology, (f"n{host}/nic2", "rail2"), bandwidth), forest)
    # No tree uses the ports beside the one that failed.
    verify_forest(_changed(topology, ("n0/nic3", "rail3"), bandwidth), forest)


@st.composite
def _crossings(draw: st.DrawFn) -> tuple[list[list[Port]], np.ndarray[Any, np.dtype[np.int64]], int]:
    hosts = draw(st.integers(2, 7))
    counts = draw(st.lists(st.integers(0, 6), min_size=hosts, max_size=hosts).filter(any))
    roots = np.repeat(np.arange(hosts), counts)
    need = len(roots) * (hosts - 1)
    ports = [
        [
            Port(rank=host, place=place, plane=99, switch=99, route=(host, 99), units=draw(st.integers(0, need)))
            for place in range(draw(st.integers(1, 2)))
        ]
        for host in range(hosts)
    ]
    return ports, roots, draw(st.sampled_from((*PEERS, 2, 1)))


@given(_crossings(), st.booleans())
def test_moved_edges_are_trees_within_the_ports(
    case: tuple[list[list[Port]], np.ndarray[Any, np.dtype[np.int64]], int], spread: bool
) -> None:
    ports, roots, peers = case
    hosts, exits = len(ports), Exits(ports)
    shape = circle_shape(hosts, peers)
    limits = np.array([sum(port.units for port in own) for own in ports])
    centers = spread_centers(roots, limits, shape) if spread else roots
    parents = hung_from(centers, roots, shape)
    first = np.array([min(exits.at[host][99]) for host in range(hosts)])
    chosen = first[parents]
    chosen[np.arange(len(roots)), roots] = -1
    planes = np.where(chosen >= 0, 99, -1)
    found = rehung(exits, Edges(chosen, parents), planes, np.zeros_like(parents), roots)
    if found is None:
        return
    assert (np.bincount(found.exits[found.exits >= 0], minlength=len(exits.flat)) <= exits.limit).all()
    assert ((found.exits >= 0) == (planes >= 0)).all()
    owner = np.array([port.rank for port in exits.flat])
    unit, host = np.nonzero(found.exits >= 0)
    assert (owner[found.exits[unit, host]] == found.parents[unit, host]).all()
    position = np.broadcast_to(np.arange(hosts), parents.shape)
    for _ in range(hosts):
        position = np.take_along_axis(found.parents, position, axis=1)
    assert (position == roots[:, None]).all()


def test_an_edge_makes_way_for_one_without_room() -> None:
    """Host 1 of the second tree can only hang below host 0, whose port another edge must leave first."""
    ports = [[Port(host, 0, 99, 99, (host, 99), units)] for host, units in enumerate((2, 1, 1))]
    roots = np.array([0, 0])
    shape = circle_shape(3, 2)
    parents = hung_from(roots, roots, shape)
    found = rehung(
        Exits(ports),
        Edges(np.where(parents == np.arange(3), -1, parents), parents),
        np.array([[-1, 99, 99]] * 2),
        np.zeros_like(parents),
        roots,
    )
    assert found is not None
    assert np.bincount(found.exits[found.exits >= 0]).tolist() == [2, 1, 1]
