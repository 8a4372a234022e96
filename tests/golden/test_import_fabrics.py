"""Every file of the corpus that describes a fabric or a whole network: read with the oracle's figures, or refused.

`python -m tests.golden.test_import_fabrics` prints a table of all files with the outcome.
"""

from __future__ import annotations

import ast
import csv
import re
from collections import Counter
from fractions import Fraction
from pathlib import Path

import networkx as nx
import pytest

from forestsyn.errors import ForestsynError, InputError
from forestsyn.frontend import parse_topology
from forestsyn.frontend.imports.compose_plain import machine_template
from forestsyn.frontend.imports.ibnetdiscover import cables_of, read_records
from forestsyn.frontend.imports.kinds import Options, Reader
from forestsyn.frontend.imports.ns3_topology import read_header, read_ids, read_links
from forestsyn.frontend.imports.registry import SourceText, read_source, recognize
from forestsyn.frontend.imports.slurm_conf import read_conf
from forestsyn.frontend.imports.text import split_lines
from forestsyn.frontend.imports.writing import document_text
from forestsyn.frontend.native import load_topology
from forestsyn.ir.collective import Collective
from forestsyn.ir.topology import Topology
from forestsyn.pipeline.bound import bound
from tests.conftest import SHARED
from tests.importing import CORPUS, complete_fabric, corpus_files, corpus_name, topology_of

ORACLE = SHARED / "data" / "oracles" / "fabric.tsv"
FOLDERS = (
    *("ibnetdiscover", "slurm_topology", "slurm_topology_yaml", "topograph_model", "topograph_payload"),
    *("k8s_topology", "astra_yml", "simai_topo", "ns3_topo", "htsim_topo", "taccl_topo", "taccl_sketch"),
    *("teccl_json", "graph_generic"),
)

#: What each refused file is refused for.
REFUSED = {
    "superbench_hostfile.txt": "this lists host names, not what they hold",
    "superbench_ibstat.txt": "not how they are cabled",
    "topograph_example-bad.out": "no switch is listed, only 1 adapter",
    "astra_dgx_v100_8gpu.yml": "the bandwidth is 'tbd', expected a number",
}

pytestmark = pytest.mark.shared


def _known(path: Path) -> tuple[Reader, SourceText]:
    source = SourceText(path.name, read_source(path).text)
    reader = recognize(source)
    assert reader is not None
    return reader, source


def _topology(path: Path) -> tuple[Topology, list[str]]:
    reader, source = _known(path)
    host = machine_template("dgx-h100", load_topology("dgx-h100:2"), pattern="*")
    found, asked = complete_fabric(reader, source.text, source=source.source, options=Options(templates=(host,)))
    topology = parse_topology(document_text(found), source=path.name)
    assert topology == parse_topology(document_text(found), source=path.name)
    assert topology.links == topology_of(found).links
    return topology, asked


_FILES = corpus_files(FOLDERS)
_READABLE = [path for path in _FILES if path.name not in REFUSED]


@pytest.mark.parametrize("path", _READABLE, ids=corpus_name)
def test_files_read_once_their_questions_are_answered(path: Path) -> None:
    topology, asked = _topology(path)
    assert len(asked) <= 4
    assert topology.rank_count >= 2
    if topology.rank_count <= 64:
        assert bound(topology, Collective.ALLGATHER).inverse_rate > 0


@pytest.mark.parametrize("path", [path for path in _FILES if path.name in REFUSED], ids=corpus_name)
def test_refused_files_say_what_is_missing(path: Path) -> None:
    reader, source = _known(path)
    with pytest.raises(InputError, match=re.escape(REFUSED[path.name])) as caught:
        reader.read(source.text, source=source.source, options=Options())
    assert caught.value.where is not None
    assert caught.value.hint


def _rows(folder: str) -> list[dict[str, str]]:
    if not ORACLE.is_file():
        return []
    with ORACLE.open(encoding="utf-8") as file:
        return [row for row in csv.DictReader(file, delimiter="\t") if row["file"].startswith(folder)]


def _figures(row: dict[str, str]) -> dict[str, str]:
    return dict(re.findall(r"(\w+)=(\{[^}]*\}|[^ ]+(?: [^ =]+(?= |$))*)", row["what"]))


@pytest.mark.parametrize("row", _rows("simai_topo"), ids=lambda row: row["file"])
def test_simai_files_hold_the_figures_of_the_oracle(row: dict[str, str]) -> None:
    figures = _figures(row)
    path = CORPUS / row["file"]
    lines = split_lines(read_source(path).text, source=path.name)
    nodes, per_server, nvswitches, switches, links = read_header(lines, 5, path.name)
    assert figures["header"].split()[:5] == [str(n) for n in (nodes, per_server, nvswitches, switches, links)]
    ids = read_ids(lines, nvswitches + switches, nodes, path.name)
    assert len(ids) == int(figures["switches_listed"])
    assert nodes - len(ids) == int(figures["hosts"])
    read = read_links(lines, nodes, links, path.name)
    assert len(read) == int(figures["links_read"])
    assert dict(Counter(rate["bw"] for *_, rate in read)) == ast.literal_eval(figures["bw"])
    topology, _ = _topology(path)
    assert topology.rank_count == int(figures["hosts"])
    assert len(topology.links) <= 2 * len(read)


@pytest.mark.parametrize("row", _rows("ibnetdiscover"), ids=lambda row: row["file"])
def test_fabrics_hold_the_figures_of_the_oracle(row: dict[str, str]) -> None:
    figures = _figures(row)
    path = CORPUS / row["file"]
    records = read_records(read_source(path).text, source=path.name)
    assert sum(record.kind == "switch" for record in records.values()) == int(figures["switches"])
    assert sum(record.kind == "ca" for record in records.values()) == int(figures["cas"])
    ports = [port for record in records.values() for port in record.ports]
    assert len(ports) == int(figures["port_lines"].split()[0])
    speeds = Counter(rate for *_, rate in ports if rate and not rate.endswith("x"))
    assert dict(speeds) == ast.literal_eval(row["what"].partition("speeds=")[2])
    cables = cables_of(records, source=path.name)
    listed_twice = len(ports) - len(cables)
    assert 0 <= listed_twice <= len(cables)


@pytest.mark.parametrize("row", _rows("slurm_topology"), ids=lambda row: row["file"])
def test_trees_hold_the_figures_of_the_oracle(row: dict[str, str]) -> None:
    figures = {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", row["what"])}
    tree = read_conf(read_source(CORPUS / row["file"]).text, source=row["file"])
    switches = figures["SwitchName"] or figures["BlockName"] + 1  # the one above all blocks
    assert len(tree.parent) == switches
    assert len(set(tree.leaf.values())) == figures["with_Nodes"]
    assert len(tree.leaf) == 96


def test_parallel_cables_add_up() -> None:
    topology, _ = _topology(CORPUS / "ibnetdiscover" / "topograph_example.out")
    names = [vertex.name for vertex in topology.vertices]
    rates = {(names[link.tail], names[link.head]): link.bandwidth for link in topology.links}
    assert rates["A09-P1-IBLEAF-04-04", "A10-P1-IBSPINE-02"] == 100, "two cables of 400 Gb/s"
    assert all(rates[head, tail] == rate for (tail, head), rate in rates.items())


def test_times_of_taccl_are_rates() -> None:
    topology, _ = _topology(CORPUS / "taccl_topo" / "topo-ndv2-1MB.json")
    inside = Counter(
        link.bandwidth
        for link in topology.links
        if topology.vertices[link.tail].host == topology.vertices[link.head].host
    )
    assert inside[Fraction(1000, 23)] == 2 * 2 * 8
    assert inside[Fraction(1000, 46)] == 2 * 2 * 8


def test_the_ndv2_of_taccl_is_a_dgx1v() -> None:
    topology, _ = _topology(CORPUS / "taccl_topo" / "topo-ndv2-1MB.json")
    graph, other = nx.Graph(), nx.Graph()
    for link in topology.links:
        ends = {topology.vertices[end].host for end in (link.tail, link.head)}
        if ends == {"n0"} and {link.tail, link.head} <= set(topology.ranks):
            graph.add_edge(link.tail, link.head, weight=link.bandwidth / Fraction(500, 23))
    for link in load_topology("dgx1v").links:
        other.add_edge(link.tail, link.head, weight=link.bandwidth / 25)
    assert nx.is_isomorphic(graph, other, edge_match=lambda one, two: one["weight"] == two["weight"])


def test_an_outer_dimension_is_a_switch_for_each_inner_position() -> None:
    topology, _ = _topology(CORPUS / "astra_yml" / "analytical_Ring_FullyConnected_Switch.yml")
    degree = Counter(link.tail for link in topology.links)
    assert {degree[rank] for rank in topology.ranks} == {1 + 7 + 1}
    assert len(topology.vertices) == 64 + 16


def main() -> None:
    """Print a table of all files."""
    for path in _FILES:
        try:
            reader, _ = _known(path)
            topology, asked = _topology(path)
            print(
                f"{corpus_name(path)}\t{reader.kind}\tread\t{topology.rank_count} GPUs\t{len(topology.links)} links\t"
                f"asked {', '.join(asked) or 'nothing'}"
            )
        except ForestsynError as error:
            print(f"{corpus_name(path)}\t{reader.kind}\trefused\t{error.message}")


if __name__ == "__main__":
    main()
