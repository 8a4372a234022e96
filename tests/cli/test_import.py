"""`forestsyn import`, and foreign files in place of T."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forestsyn.errors import UnsupportedError
from forestsyn.frontend import load_topology
from forestsyn.frontend.imports.graph_export import emit_topology, export_kinds
from forestsyn.frontend.imports.load import ImportRequest
from forestsyn.ir.topology import Topology
from tests.cli.conftest import Run

MATRIX = "\tGPU0\tGPU1\tNIC0\tNIC1\nGPU0\t X \tNV12\tPIX\tSYS\nGPU1\tNV12\t X \tSYS\tPIX\n"
MATRIX += "NIC0\tPIX\tSYS\t X \tSYS\nNIC1\tSYS\tPIX\tSYS\t X \n"
ASTRA = "topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 50.5 ]\nlatency: [ 500 ]\n"
TREE = "SwitchName=s0 Nodes=a[1-2]\nSwitchName=s1 Nodes=b1\nSwitchName=top Switches=s[0-1]\n"
GIVEN = ("--gpu", "a100", "--nic", "200G")


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    path = tmp_path / "smi.txt"
    path.write_text(MATRIX, encoding="utf-8")
    return path


def test_what_is_missing_is_asked_for_with_choices(run: Run, matrix: Path) -> None:
    outcome = run("import", matrix)
    assert outcome.code == 2
    assert "(--gpu)" in outcome.err
    assert "a100" in outcome.err


def test_the_written_file_has_comments_and_means_the_same(run: Run, matrix: Path, tmp_path: Path) -> None:
    target = tmp_path / "box.yaml"
    outcome = run("import", matrix, *GIVEN, "-o", target, "--json")
    assert outcome.code == 0
    assert outcome.data["kind"] == "nvidia-smi-topo"
    assert outcome.data["ranks"] == 2
    assert outcome.data["files"] == [str(target)]
    assert "# " in target.read_text(encoding="utf-8")
    direct = run("bound", matrix, *GIVEN, "--json")
    native = run("bound", target, "--json")
    assert direct.data["inverse_rate"] == native.data["inverse_rate"]
    assert any(note.startswith("assumed") or "PCIe" in note for note in direct.data["notes"])


@pytest.mark.parametrize("verb", ["bound", "forest", "compile", "check"])
def test_every_verb_takes_foreign_files(run: Run, tmp_path: Path, verb: str) -> None:
    path = tmp_path / "network.yml"
    path.write_text(ASTRA, encoding="utf-8")
    assert run(verb, path, "--json").code == 0


def test_a_fabric_and_its_hosts(run: Run, matrix: Path, tmp_path: Path) -> None:
    tree = tmp_path / "topology.conf"
    tree.write_text(TREE, encoding="utf-8")
    answers = ("--link", "200G", "--oversubscription", "1")
    for arguments in (
        ("import", tree, "--host", matrix, *GIVEN, *answers),
        ("import", tree, matrix, *GIVEN, *answers),
        ("import", matrix, "--fabric", tree, *GIVEN, *answers),
        ("import", tree, "--host", f"a*={matrix}", "--host", "b1=dgx-a100", *GIVEN, *answers),
    ):
        outcome = run(*arguments, "--json")
        assert outcome.code == 0, outcome.err
        assert outcome.data["hosts"] == 3
        assert outcome.data["ranks"] == (12 if "b1=dgx-a100" in arguments else 6)
    assert run("bound", tree, "--host", "dgx-a100", *answers).code == 0


@pytest.mark.parametrize("fabric", ["rails", "switch"])
def test_so_many_hosts_of_a_kind(run: Run, matrix: Path, fabric: str) -> None:
    outcome = run("import", matrix, *GIVEN, "--hosts", 4, "--fabric", fabric, "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.data["ranks"] == 8
    outcome = run("import", "dgx-a100", "--hosts", 4, "--fabric", fabric, "--link", "200G", "--json")
    assert outcome.data["ranks"] == 32
    outcome = run("import", matrix, *GIVEN, "--hosts", 4)
    assert outcome.code == 2
    assert "(--fabric)" in outcome.err


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        (b"hello world", (), "no reader recognizes this file"),
        (b"\xff\xfe\x00", (), "not UTF-16"),
        (b"\x7fELF\x02\x01\x01\x00\x00", (), ""),
        (b"", (), "no reader recognizes this file"),
        (MATRIX.encode(), ("--kind", "nonsense"), "no kind of file"),
        (MATRIX.encode(), ("--host", "dgx-a100"), "no fabric to join them"),
        (MATRIX.encode(), ("--gpu", "potato"), "no GPU model 'potato'"),
        (MATRIX.encode(), ("--fabric", "missing.out"), "cannot read the file"),
    ],
)
def test_wrong_input_is_told(
    run: Run, tmp_path: Path, content: bytes, arguments: tuple[str, ...], message: str
) -> None:
    path = tmp_path / "input.txt"
    path.write_bytes(content)
    outcome = run("import", path, *arguments)
    assert outcome.code == 2
    assert message in outcome.err


def test_utf16_is_read(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "smi.txt"
    path.write_bytes(MATRIX.encode("utf-16"))
    assert run("bound", path, *GIVEN).code == 0


def _alike(one: Topology, other: Topology) -> bool:
    def links(topology: Topology) -> set[tuple[object, ...]]:
        names = [vertex.name for vertex in topology.vertices]
        return {(names[k.tail], names[k.head], k.bandwidth, k.latency) for k in topology.links}

    def vertices(topology: Topology) -> set[tuple[object, ...]]:
        hosts = any(vertex.host for vertex in other.vertices)  # without any, a file makes one host of all
        return {(vertex.name, vertex.kind, vertex.host if hosts else None) for vertex in topology.vertices}

    ranks = [topology.rank_name(rank) for topology in (one, other) for rank in range(topology.rank_count)]
    return (
        links(one) == links(other)
        and vertices(one) == vertices(other)
        and ranks[: len(ranks) // 2] == ranks[len(ranks) // 2 :]
        and (one.name, one.rates) == (other.name, other.rates)
    )


ENDINGS = {"yaml": ".yaml", "graph-json": ".json"}
MACHINES = ("dgx-a100:2", "mi250", "fat-tree:4", "torus:2x3", "4x3090", "cross-dc")


@pytest.mark.parametrize("kind", ["yaml", "graph-json", "graph-gml", "graph-graphml", "graph-dot"])
@pytest.mark.parametrize("spec", MACHINES)
def test_graphs_come_back_unchanged(tmp_path: Path, spec: str, kind: str) -> None:
    if kind == "graph-dot":
        pytest.importorskip("pydot")
    topology = load_topology(spec)
    path = tmp_path / f"graph{ENDINGS.get(kind, '.txt')}"
    path.write_text(emit_topology(topology, kind), encoding="utf-8")
    assert _alike(load_topology(str(path)), topology)


@pytest.mark.parametrize("spec", ["dgx1v", "torus:2x3", "full:4"])
def test_matrices_come_back_unchanged(tmp_path: Path, spec: str) -> None:
    topology = load_topology(spec)
    path = tmp_path / "graph.txt"
    path.write_text(emit_topology(topology, "taccl-topology"), encoding="utf-8")
    again = load_topology(str(path))
    assert [(k.tail, k.head, k.bandwidth) for k in again.links] == [
        (k.tail, k.head, k.bandwidth) for k in topology.links
    ]


@pytest.mark.parametrize("spec", ["dgx1v", "fat-tree:4", "switch:5"])
def test_ns3_comes_back_unchanged(tmp_path: Path, spec: str) -> None:
    topology = load_topology(spec)
    path = tmp_path / "graph.txt"
    path.write_text(emit_topology(topology, "ns3-topology"), encoding="utf-8")
    again = load_topology(str(path), ImportRequest(kind="ns3-topology"))
    assert again.rank_count == topology.rank_count
    assert sorted(k.bandwidth for k in again.links) == sorted(k.bandwidth for k in topology.links)


def test_formats_that_lose_links_refuse() -> None:
    with pytest.raises(UnsupportedError, match="GPUs only"):
        emit_topology(load_topology("dgx-a100:2"), "taccl-topology")
    assert set(export_kinds()) >= {"yaml", "graph-json"}


def test_export_of_a_machine(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "graph.json"
    assert run("import", "dgx-a100:2", "--to", "graph-json", "-o", target).code == 0
    value = json.loads(target.read_text(encoding="utf-8"))
    assert len(value["nodes"]) == len(load_topology("dgx-a100:2").vertices)
    outcome = run("import", "dgx-a100:2", "--to", "taccl-topology")
    assert outcome.code == 4
    assert "graph-json" in outcome.err
