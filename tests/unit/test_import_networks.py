"""Simulators' texts, TACCL, TE-CCL and generic graphs."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from forestsyn.errors import InputError
from forestsyn.frontend.imports.astra_yml import AstraYml
from forestsyn.frontend.imports.graph_text import DotText, GmlText, GraphMlText, NodeLinkJson
from forestsyn.frontend.imports.htsim_topology import HtsimTopology
from forestsyn.frontend.imports.kinds import Options, Reader
from forestsyn.frontend.imports.ns3_topology import Ns3Topology
from forestsyn.frontend.imports.simai_topology import SimAiTopology
from forestsyn.frontend.imports.taccl_json import TacclSketch, TacclTopology
from forestsyn.frontend.imports.teccl_json import TecclJson
from forestsyn.ir.topology import Topology
from tests.importing import topology_of

HTSIM = """
Nodes 32
Tiers 2
Podsize 32
Tier 0
Downlink_speed_Gbps 100
Radix_Down 8
Radix_Up 2
Downlink_Latency_ns 1000
Oversubscribed 4
Tier 1
Downlink_speed_Gbps 400   # faster
Radix_Down 4
Downlink_Latency_ns 500
"""
HTSIM3 = """Nodes 16
Tiers 3
Podsize 4
Tier 0
Downlink_speed_Gbps 100
Radix_Down 2
Radix_Up 2
Tier 1
Downlink_speed_Gbps 100
Radix_Down 2
Radix_Up 2
Tier 2
Downlink_speed_Gbps 100
Radix_Down 4
"""
NS3 = (
    "6 2 5\n4 5\n0 4 100Gbps 0.001ms 0\n1 4 100Gbps 1us 0\n2 5 100Gbps 1us 0\n3 5 100Gbps 1us 0\n4 5 400Gbps 1us 0\n"
)
SIMAI = "7 2 2 1 6 H100\n4 5 6\n" + "".join(f"{g} {4 + g // 2} 2400Gbps 0.0005ms 0\n" for g in range(4))
SIMAI += "0 6 400Gbps 0.0005ms 0\n2 6 400Gbps 0.0005ms 0\n"


def _read(reader: Reader, text: str, **answers: str | int) -> Topology:
    assert reader.recognizes("x", text) > 0
    found = reader.read(text, source="file", options=Options(**answers))
    assert not found.missing, found.missing
    return topology_of(found)


def _rates(topology: Topology) -> dict[tuple[str, str], Fraction]:
    names = [vertex.name for vertex in topology.vertices]
    return {(names[link.tail], names[link.head]): link.bandwidth for link in topology.links}


def test_astra_dimensions() -> None:
    text = "topology: [ Ring, Switch ]\nnpus_count: [ 2, 3 ]\nbandwidth: [ 50.5, 25 ]\nlatency: [ 500, 1e3 ]\n"
    rates = _rates(_read(AstraYml(), text))
    assert rates["gpu0", "gpu1"] == Fraction(101, 2), "a ring of two has one link"
    assert rates["gpu4", "sw1.0"] == 25
    assert ("gpu0", "gpu2") not in rates
    topology = _read(AstraYml(), "topology: Ring\nnpus_count: 4\nbandwidth: 50\n")
    assert len(topology.links) == 8


def test_ns3_and_simai() -> None:
    rates = _rates(_read(Ns3Topology(), NS3))
    assert rates["sw4", "sw5"] == 50
    topology = _read(SimAiTopology(), SIMAI)
    rates = _rates(topology)
    assert rates["n1/gpu1", "n1/nvsw"] == 300
    assert rates["n1/gpu0", "sw6"] == 50
    assert {link.latency for link in topology.links} == {Fraction(1, 2)}


def test_htsim_two_and_three_tiers() -> None:
    topology = _read(HtsimTopology(), HTSIM)
    rates = _rates(topology)
    assert topology.rank_count == 32
    assert rates["tor3", "agg1"] == 50
    assert sum(tail == "tor0" for tail, _ in rates) == 8 + 2
    topology = _read(HtsimTopology(), HTSIM3)
    cores = {head for tail, head in _rates(topology) if tail == "agg0" and head.startswith("core")}
    assert cores == {"core0", "core2"}
    assert len(topology.vertices) == 16 + 8 + 8 + 4


def test_htsim_bundles_are_parallel_cables() -> None:
    text = HTSIM.replace("Radix_Down 4\n", "Radix_Down 8\nBundle 2\n")
    assert _rates(_read(HtsimTopology(), text))["tor0", "agg0"] == 100


def test_taccl_matrices() -> None:
    text = json.dumps(
        {
            "name": "m",
            "gpus_per_node": 2,
            "nics_per_node": 0,
            "links": [[0, 1], [2, 0]],
            "invbws": [[0, 40], [20, 0]],
        }
    )
    rates = _rates(_read(TacclTopology(), text))
    assert rates == {("gpu1", "gpu0"): 25, ("gpu0", "gpu1"): 50}


def test_teccl_mesh_and_machines() -> None:
    mesh = json.dumps({"TopologyParams": {"name": "Mesh", "side_length": 2}})
    rates = _rates(_read(TecclJson(), mesh, link="100GB/s"))
    assert ("gpu1", "gpu2") in rates
    machine = json.dumps({"TopologyParams": {"name": "NDv2", "chassis": 2}})
    assert _read(TecclJson(), machine).rank_count == 16
    with pytest.raises(InputError, match="class 'Secret' is not known"):
        _read(TecclJson(), json.dumps({"TopologyParams": {"name": "Secret"}}))


GRAPHS = {
    "json": (
        NodeLinkJson(),
        '{"directed": false, "multigraph": true, "graph": {}, "nodes": [{"id": 1, "type": "host"}, {"id": 2, "type": '
        '"host"}, {"id": 3, "type": "sw"}], "edges": [{"source": 1, "target": 3, "cap": 12.5}, {"source": 2, '
        '"target": 3, "cap": 10}, {"source": 2, "target": 3, "cap": 10}]}',
    ),
    "gml": (
        GmlText(),
        'graph [\n node [ id 1 type "host" ]\n node [ id 2 type "host" ]\n node [ id 3 type "sw" ]\n'
        " edge [ source 1 target 3 cap 12.5 ]\n edge [ source 2 target 3 cap 10 ]\n"
        " edge [ source 2 target 3 cap 10 ]\n]",
    ),
    "graphml": (
        GraphMlText(),
        '<?xml version="1.0"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key id="c" for="edge" '
        'attr.name="cap" attr.type="double"/><key id="t" for="node" attr.name="type" attr.type="string"/>'
        '<graph edgedefault="undirected"><node id="1"><data key="t">host</data></node><node id="2"><data key="t">'
        'host</data></node><node id="3"><data key="t">sw</data></node><edge source="1" target="3"><data key="c">12.5'
        '</data></edge><edge source="2" target="3"><data key="c">10</data></edge><edge source="2" target="3">'
        '<data key="c">10</data></edge></graph></graphml>',
    ),
    "dot": (
        DotText(),
        'graph g {\n 1 [type=host]; 2 [type="host"]; subgraph cluster_a { 3 [type=sw]; }\n 1 -- 3 [cap="12.5"];\n'
        " 2 -- 3 [cap=10];\n 2 -- 3:p0 [cap=10];\n}",
    ),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_are_alike(name: str) -> None:
    if name == "dot":
        pytest.importorskip("pydot")
    reader, text = GRAPHS[name]
    rates = _rates(_read(reader, text, capacity_attribute="cap", unit="GB/s", gpu_attribute="type=host"))
    assert rates == {
        ("v1", "v3"): Fraction(25, 2),
        ("v3", "v1"): Fraction(25, 2),
        ("v2", "v3"): 20,
        ("v3", "v2"): 20,
    }


def test_graphs_ask_what_attributes_mean() -> None:
    reader, text = GRAPHS["json"]
    found = reader.read(text, source="g", options=Options())
    asked = {question.option: question.choices for question in found.missing}
    assert asked["--gpu-attr"] == ("all", "type=host", "type=sw")
    assert asked["--capacity-attr"] == ("cap", "none, with --link")
    found = reader.read(text, source="g", options=Options(gpu_attribute="all", capacity_attribute="cap"))
    assert [question.option for question in found.missing] == ["--unit"]


def test_edges_without_the_attribute_are_asked_for() -> None:
    reader, text = GRAPHS["json"]
    text = text.replace(', "cap": 12.5', "")
    options = Options(gpu_attribute="all", capacity_attribute="cap", unit="Gb/s")
    found = reader.read(text, source="g", options=options)
    assert [question.option for question in found.missing] == ["--link"]


@pytest.mark.parametrize(
    ("reader", "text", "message"),
    [
        (AstraYml(), "topology: [Ring]\nnpus_count: [1]\nbandwidth: [5]", "has 1 NPUs"),
        (AstraYml(), "topology: [Ring]\nnpus_count: [4, 4]\nbandwidth: [5]", "has 2 values for 1 dim"),
        (AstraYml(), "topology: [Ring]\nnpus_count: [4]\nbandwidth: [0]", "expected more than 0"),
        (AstraYml(), "topology: [Blob]\nnpus_count: [4]\nbandwidth: [5]", "no basic topology"),
        (AstraYml(), "topology: [Ring]\nnpus_count: [999999]\nbandwidth: [5]", "the limit is"),
        (AstraYml(), "npus_count: [4]\nbandwidth: [5]", "'topology' is missing"),
        (Ns3Topology(), NS3.replace("6 2 5", "6 2 6"), "5 links are listed, the first line says 6"),
        (Ns3Topology(), NS3.replace("4 5\n", "4\n", 1), "1 switches are listed"),
        (Ns3Topology(), NS3.replace("3 5 100", "3 9 100"), "no node 9 among 6"),
        (Ns3Topology(), NS3.replace("100Gbps 0", "100 0"), "has no unit"),
        (Ns3Topology(), NS3.replace("400Gbps", "400000000Gbps"), "expected at most"),
        (SimAiTopology(), SIMAI.replace("7 2 2 1", "7 0 2 1"), "do not fit"),
        (HtsimTopology(), HTSIM.replace("Nodes 32", "Nodes 33"), "do not divide evenly"),
        (HtsimTopology(), HTSIM.replace("Radix_Down 4", "Radix_Down 3"), "do not fit switches"),
        (HtsimTopology(), HTSIM.replace("Tiers 2", "Tiers 3"), "2 of 3 tiers"),
        (HtsimTopology(), HTSIM.replace("Oversubscribed 4", "Oversubscribed"), "cannot read"),
        (TacclTopology(), '{"gpus_per_node": 0, "nics_per_node": 1}', "'gpus_per_node' is 0"),
        (TacclTopology(), '{"gpus_per_node": 2, "nics_per_node": 1, "links": [[0]]}', "no matrix of 2 x 2"),
        (TacclTopology(), '{"gpus_per_node": 2, "nics_per_node": 1', "not JSON"),
        (TacclSketch(), '{"intranode_sketch": {}}', "how to search"),
        (NodeLinkJson(), '{"nodes": [{"id": 1}], "links": [{"source": 1, "target": 2}]}', "no node '2'"),
        (NodeLinkJson(), '{"nodes": [{"id": 1}, {"id": 1}], "links": []}', "the same id"),
        (NodeLinkJson(), '{"nodes": [{"id": []}], "links": []}', "an id must be"),
        (GmlText(), "graph [ node [ id 1 ]", "this is not GML"),
        (GmlText(), "graph [ node [ " + "a [ " * 100, "nested more than"),
        (GraphMlText(), "<graphml", "not XML"),
        (GraphMlText(), '<!DOCTYPE a [<!ENTITY x "y">]><graphml>&x;</graphml>', "declares an entity"),
    ],
)
def test_texts_that_cannot_be_trusted_are_refused(reader: Reader, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        reader.read(text, source="file", options=Options(gpu_attribute="all", link="1GB/s", hosts=1))
    assert caught.value.where


def test_an_edge_may_spell_the_number_of_its_node_otherwise() -> None:
    text = "graph [\n node [ id .0 ]\n node [ id 2 ]\n edge [ source 0 target 2 ]\n]"
    assert len(_read(GmlText(), text, gpu_attribute="all", link="1GB/s").links) == 2


def test_broken_dot_is_refused() -> None:
    pytest.importorskip("pydot")
    for text in ("graph {", "graph { a -- }", "digraph { {a b} -> c }"):
        with pytest.raises(InputError):
            DotText().read(text, source="file", options=Options(gpu_attribute="all", link="1GB/s"))
