"""The catalog: every machine loads, and the reference graphs are the reference's."""

from __future__ import annotations

import csv
import xml.etree.ElementTree as ElementTree
from fractions import Fraction
from pathlib import Path

import pytest

from forestsyn.errors import InputError
from forestsyn.frontend import describe_topology, list_machines, load_topology, rate_table
from forestsyn.ir.topology import Topology, VertexKind

MACHINES = list_machines()
TOPOLOGIES = Path(__file__).parents[1] / "data" / "topologies"


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_machines_are_sane(machine) -> None:
    topology = load_topology(machine.example)
    assert topology.rank_count == machine.ranks
    report = describe_topology(topology)
    assert len(report.sides) == 1
    assert not report.unbalanced_switches
    assert not report.asymmetric_links
    assert not report.unused_switches
    assert str(report)
    assert machine.sources or machine.description.startswith("shape")


@pytest.mark.parametrize("machine", [m for m in MACHINES if m.parameter.startswith("N =")], ids=lambda m: m.name)
def test_three_hosts_of_everything(machine) -> None:
    topology = load_topology(f"{machine.name}:3")
    report = describe_topology(topology)
    assert topology.name == f"{machine.name}-3"
    assert len(report.sides) == 1
    assert not report.lonely_nics
    assert not any("left out" in note for note in topology.notes)
    assert len({rank.send for rank in report.ranks}) <= 2


def _named_links(topology: Topology) -> dict[tuple[str, str], Fraction]:
    names = [vertex.name for vertex in topology.vertices]
    return {(names[link.tail], names[link.head]): link.bandwidth for link in topology.links}


def _both(links: dict[tuple[str, str], int]) -> dict[tuple[str, str], int]:
    return links | {(head, tail): bandwidth for (tail, head), bandwidth in links.items()}


def test_dgx_a100_is_the_reference_graph() -> None:
    expected: dict[tuple[str, str], int] = {}
    for host in range(2):
        for index in range(8):
            expected[f"n{host}/gpu{index}", f"n{host}/nvsw"] = 300
            expected[f"n{host}/gpu{index}", f"n{host}/nic{index}"] = 25
            expected[f"n{host}/nic{index}", f"ib{index % 2}"] = 25
    assert _named_links(load_topology("dgx-a100:2")) == _both(expected)


def test_mi250_is_the_reference_graph() -> None:
    topology = load_topology("mi250:2")
    links = _named_links(topology)
    assert len(links) == 2 * 56 + 64
    assert {bandwidth for ends, bandwidth in links.items() if "ib" in ends} == {16}
    for gpu in range(16):
        inside = sum(bandwidth for ends, bandwidth in links.items() if ends[0] == f"n1/gpu{gpu}" and "ib" not in ends)
        assert inside == 350, gpu


def _rccl_graph(path: Path):
    import networkx

    root = ElementTree.parse(path).getroot()
    found = {pci.get("busid"): gpu for pci in root.iter("pci") for gpu in pci.findall("gpu")}
    graph = networkx.DiGraph()
    for busid, gpu in found.items():
        for link in gpu.findall("xgmi"):
            graph.add_edge(busid, link.get("target"), weight=int(link.get("count")) * 50)
    return graph


def _gpu_graph(topology: Topology):
    import networkx

    graph = networkx.DiGraph()
    for link in topology.links:
        if all(topology.vertices[end].kind is VertexKind.GPU for end in (link.tail, link.head)):
            graph.add_edge(link.tail, link.head, weight=int(link.bandwidth))
    return graph


@pytest.mark.shared
@pytest.mark.parametrize(
    ("machine", "file"), [("mi250", "rccl_topo_16p1h.xml"), ("mi250x-8gcd", "rccl_topo_8p1h.xml")]
)
def test_the_xgmi_links_are_those_of_rccl(shared: Path, machine: str, file: str) -> None:
    from networkx import is_isomorphic
    from networkx.algorithms.isomorphism import numerical_edge_match

    theirs = _rccl_graph(shared / "data" / "topologies" / "nccl_xml" / file)
    ours = _gpu_graph(load_topology(machine))
    assert is_isomorphic(ours, theirs, edge_match=numerical_edge_match("weight", 0))


@pytest.mark.shared
def test_sizes_of_the_table_of_bounds(shared: Path) -> None:
    with open(TOPOLOGIES / "bounds.tsv", encoding="utf-8") as stream:
        specs = {row["name"]: row["topology"] for row in csv.DictReader(stream, delimiter="\t")}
    with open(shared / "data" / "oracles" / "allgather_bounds.tsv", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    assert {row["name"] for row in rows} == set(specs)
    for row in rows:
        spec = specs[row["name"]]
        topology = load_topology(str(TOPOLOGIES / spec) if spec.endswith(".yaml") else spec)
        found = (topology.rank_count, len(topology.vertices) - topology.rank_count, len(topology.links))
        expected = tuple(int(row[key]) for key in ("ranks", "other_vertices", "directed_links"))
        assert found == expected, row["name"]


def test_a_large_cluster_expands() -> None:
    topology = load_topology("dgx-h100-superpod:500")
    assert topology.rank_count == 4000
    assert len(topology.links) == 500 * 48 + 2 * 8 * 16


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("dgx-b100", "did you mean"),
        ("dgx-a100:x", "no size"),
        ("dgx-a100:0", "expected 1 to"),
        ("dgx-a100:2x2", "takes 1"),
        ("hgx-a100:2", "takes none"),
        ("dgx-a100:1000000000", "expected 1 to"),
        ("dgx-a100:" + "9" * 5000, "no size"),
        ("", "forestsyn machines"),
        ("missing.yaml", "cannot read"),
        ("a/b", "cannot read"),
        ("nul\0.yaml", "cannot read"),
        ("x" * 5000, "no machine"),
        (".", "cannot read|no machine"),
    ],
)
def test_wrong_names(spec: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        load_topology(spec)


def test_rates_have_a_number_and_a_source() -> None:
    table = rate_table()
    assert len({(rate.kind, rate.name) for rate in table}) == len(table)
    for rate in table:
        values = [value for value in (rate.spec, rate.nccl, rate.measured) if value is not None]
        assert values
        assert all(value > 0 for value in values)
        assert rate.source
