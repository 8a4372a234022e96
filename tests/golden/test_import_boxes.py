"""Every file of the corpus that describes GPU boxes: read with the figures of the oracles, or refused with a reason.

`python -m tests.golden.test_import_boxes` prints a table of all files with the outcome.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from fractions import Fraction
from pathlib import Path

import networkx as nx
import pytest

from forestsyn.errors import ForestsynError, InputError
from forestsyn.frontend.imports.amd_smi import AmdSmi, RocmSmi
from forestsyn.frontend.imports.hwloc_xml import HwlocXml
from forestsyn.frontend.imports.kinds import Options, Reader
from forestsyn.frontend.imports.matrix import find_matrices
from forestsyn.frontend.imports.nccl_system import Gpu, System, read_system
from forestsyn.frontend.imports.nccl_xml import NcclXml
from forestsyn.frontend.imports.nvidia_topo import NvidiaHelper, NvidiaTopo
from forestsyn.frontend.imports.nvidia_words import WordsOnly
from forestsyn.frontend.imports.text import decode_bytes, split_lines
from forestsyn.ir.collective import Collective
from forestsyn.ir.topology import Topology
from forestsyn.pipeline.bound import bound
from forestsyn.pipeline.compile import compile_topology
from tests.conftest import SHARED
from tests.importing import CORPUS, ask_until_complete, corpus_files, corpus_name, topology_of

ORACLES = SHARED / "data" / "oracles"
READERS: tuple[Reader, ...] = (NvidiaTopo(), NvidiaHelper(), RocmSmi(), AmdSmi(), NcclXml(), HwlocXml(), WordsOnly())
FOLDERS = (
    *("nvidia_smi_topo", "nvidia_smi_nvlink", "nvidia_smi_p2p", "issues", "rocm_smi_topo", "amd_smi_topology"),
    *("nccl_xml", "nccl_graph_xml", "hwloc_xml"),
)

#: The model behind a file where its text does not say; another would contradict the link counts.
MODELS = {
    "dlperf_Megatron_LM_0.txt": "v100",
    "dlperf_dlrm_0.txt": "v100",
    "sccl_dgx1v_tests_0.txt": "v100",
    "mleng_net_network_2.txt": "a100",
    "13_8xA100_glued_columns.txt": "a100",
    "01_3gpu_nvlink_pair_plus_single.txt": "3090",
    "21_8gpu_only_6_7_nvlink.txt": "a6000",
    "mleng_net_network_0.txt": "2080ti",
    "33_h800_NV8_interleaved_nics.txt": "h800",
    "archer2_4xMI210.txt": "mi210",
    "31_8gpu_two_hives_weight72.txt": "mi100",
    "pub_8xMI300X.txt": "mi300x",
    "hazard_gb200_all_SYS_nics.txt": "gb200",
    "oci_topo-flattened.xml": "a100",
    "oci_topo-flattened-b4.xml": "a100",
}

#: What each refused file is refused for.
REFUSED = {
    "hazard_single_gpu.txt": "1 GPU; a collective needs at least 2",
    "pub_1gpu.txt": "1 GPU; a collective needs at least 2",
    "2x3090_bridge.txt": "not which GPUs are joined",
    "gb200_tray_s.txt": "not which GPUs are joined",
    "h100_R_gpu0.txt": "18 active NVLinks to 4 devices, not which GPUs are joined",
    "v100_two_inactive.txt": "2 inactive (3, 5), not which GPUs are joined",
    "09_v100_inactive_nvlinks.txt": "2 inactive (3, 5), not which GPUs are joined",
    "mleng_p2p_debug_0.txt": "peer access",
    "mleng_p2p_debug_1.txt": "peer access",
    "nccldoc_p2p_troubleshooting_0.txt": "peer access",
    "11_gb300_rank5_no_nvlink.txt": "in it rank 5 lists no NVLink, and others do",
    "rocm_smi_MI300_TPX_broken.txt": "the tool reports a failure",
    "amdsmi_changelog_1.txt": "no table of link types",
    "amdsmi_changelog_3.txt": "abbreviated with '...'",
    "aws_p5.48xl-topo_2025.xml": "no GPU is listed",
    "aws_p5.48xl-topo_v0.xml": "no GPU is listed",
    "azure_ncv4-graph.xml": "this is a graph file",
    "15_9ranks_8plus1_split_rails.txt": "in words",
    "17_hetero_4xA100_4xV100.txt": "in words",
    "19_h200_vm_pci_0.2.txt": "suspiciously narrow: PCI/0-65000 at 0.2 GB/s, PCI/0-69000",
    "25_3gpu_2x3080_1x5090.txt": "in words",
    "27_mig_partitions.txt": "in words",
    "37_two_nics_one_uplink.txt": "in words",
    "39_2xH800_net_faster_than_nvlink.txt": "in words",
}

pytestmark = pytest.mark.shared


def _text(path: Path) -> str:
    return decode_bytes(path.read_bytes(), source=path.name)


def _reader(path: Path) -> Reader | None:
    text = _text(path)
    score, place = max((reader.recognizes(path.name, text[:20_000]), -at) for at, reader in enumerate(READERS))
    return READERS[-place] if score else None


def _model(path: Path) -> str:
    return MODELS.get(path.name, "h100")


def _topology(path: Path) -> tuple[Topology, list[str], tuple[str, ...]]:
    reader = _reader(path)
    assert reader is not None
    found, asked = ask_until_complete(reader, _text(path), source=path.name, gpu=_model(path))
    return topology_of(found), asked, found.notes


_FILES = corpus_files(FOLDERS)
_READABLE = [path for path in _FILES if path.name not in REFUSED]
_MATRICES = [path for path in _READABLE if path.parent.name in ("nvidia_smi_topo", "issues")]


@pytest.mark.parametrize("path", _READABLE, ids=corpus_name)
def test_files_read_once_their_questions_are_answered(path: Path) -> None:
    topology, asked, _ = _topology(path)
    assert len(asked) <= 4
    result = bound(topology, Collective.ALLGATHER)
    assert result.inverse_rate > 0


@pytest.mark.parametrize("path", _MATRICES, ids=corpus_name)
def test_matrices_compile_to_a_verified_allreduce(path: Path) -> None:
    topology, _, _ = _topology(path)
    result = compile_topology(topology, Collective.ALLREDUCE)
    assert result.text.startswith("<algo"), "compile_topology verifies what it returns"


@pytest.mark.parametrize("path", [path for path in _FILES if path.name in REFUSED], ids=corpus_name)
def test_refused_files_say_what_is_missing(path: Path) -> None:
    reader = _reader(path)
    assert reader is not None
    with pytest.raises(InputError, match=re.escape(REFUSED[path.name])) as caught:
        ask_until_complete(reader, _text(path), source=path.name, gpu=_model(path))
    assert caught.value.where is not None
    assert caught.value.hint


def _rows(name: str) -> list[dict[str, str]]:
    if not (ORACLES / name).is_file():
        return []
    with (ORACLES / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


@pytest.mark.parametrize("row", _rows("nvidia_smi_topo.tsv"), ids=lambda row: row["file"])
def test_matrices_hold_the_figures_of_the_oracle(row: dict[str, str]) -> None:
    lines = split_lines(_text(CORPUS / row["file"]), source=row["file"])
    (matrix,) = find_matrices(lines, source=row["file"])
    assert len(matrix.gpus) == int(row["n_gpu"])
    assert len(matrix.others) == int(row["n_other"])
    assert row["matrix_symmetric"] == "True"
    sums = [
        sum(int(word[2:]) for peer in matrix.gpus if (word := matrix.between(gpu, peer) or "").startswith("NV"))
        for gpu in matrix.gpus
        if gpu not in matrix.missing_rows
    ]
    expected = [int(part) for part in row["nv_links_per_gpu"].split(",")]
    assert sums == (expected * len(sums) if len(expected) == 1 else expected)
    if row["numa_groups"] not in ("-", "N/A,N/A"):
        assert [matrix.numa_affinity[gpu] for gpu in matrix.gpus] == row["numa_groups"].split(",")
    assert {*matrix.cells.values(), "X"} == set(row["tokens"].split())
    assert ("wrapped_header" in row["flags"]) == matrix.wrapped_header
    missing = row["flags"].partition("missing_rows:")[2]
    assert ",".join(matrix.missing_rows) == missing


def _list_or_dash(values: list[str]) -> str:
    if not any(value != "0" for value in values):
        return "-"
    return values[0] if len(set(values)) == 1 else ",".join(values)


def _counted(values: list[str], between: str) -> str:
    return between.join(f"{value}*{count}" for value, count in Counter(values).items()) or "-"


def _gpus(system: System) -> list[Gpu]:
    return [pci.gpu for pci in system.pci() if pci.gpu is not None and pci.gpu.stated]


@pytest.mark.parametrize("row", _rows("nccl_xml.tsv"), ids=lambda row: row["file"])
def test_nccl_xml_holds_the_figures_of_the_oracle(row: dict[str, str]) -> None:
    system = read_system(_text(CORPUS / "nccl_xml" / row["file"]), source=row["file"])
    pci = system.pci()
    ports = [port for cpu in system.cpus for port in cpu.ports] + [port for device in pci for port in device.ports]
    gpus = sorted(_gpus(system), key=lambda gpu: gpu.dev if gpu.dev is not None else 0)
    assert system.version == row["version"]
    assert len(system.cpus) == int(row["cpus"])
    assert len(pci) == int(row["pci"])
    assert len(gpus) == int(row["gpu_elements"])
    classes = [device.pci_class for device in pci]
    assert sum(name.startswith(("0x03", "0x12")) for name in classes) == int(row["gpu_class_pci"])
    assert len(ports) == int(row["net_elements"])
    assert sum(name.startswith("0x02") for name in classes) == int(row["nic_class_pci"])
    nvlinks = [str(sum(link.count for link in gpu.nvlinks)) for gpu in gpus]
    assert _list_or_dash(nvlinks) == row["nvlink_count_per_gpu"]
    assert _list_or_dash([str(sum(link.count for link in gpu.xgmi)) for gpu in gpus]) == row["xgmi_count_per_gpu"]
    assert set(_counted([port.get("speed") for port in ports], " ").split()) == set(row["net_speeds_mbps"].split())
    speeds = [" x".join(device.speed_text) for device in pci]
    assert sorted(part.strip() for part in _counted(speeds, "; ").split("; ")) == sorted(
        part.strip() for part in row["link_speeds"].split("; ")
    )


@pytest.mark.parametrize("row", _rows("nccl_xml.tsv"), ids=lambda row: row["file"])
def test_nccl_xml_keeps_all_gpus(row: dict[str, str]) -> None:
    if row["file"] in REFUSED:
        return
    topology, _, _ = _topology(CORPUS / "nccl_xml" / row["file"])
    assert topology.rank_count == max(int(row["gpu_elements"]), int(row["gpu_class_pci"]))


def _graph(topology: Topology) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(topology.vertices)))
    for link in topology.links:
        graph.add_edge(link.tail, link.head, weight=link.bandwidth)
    return graph


def _are_alike(topologies: list[Topology]) -> bool:
    def same(one: dict[str, Fraction], other: dict[str, Fraction]) -> bool:
        return one["weight"] == other["weight"]

    first = _graph(topologies[0])
    return all(nx.is_isomorphic(first, _graph(other), edge_match=same) for other in topologies[1:])


def test_the_numberings_of_a_dgx1v_are_one_graph() -> None:
    names = ("dlperf_Megatron_LM_0.txt", "dlperf_dlrm_0.txt", "sccl_dgx1v_tests_0.txt")
    found = [_topology(CORPUS / "nvidia_smi_topo" / name)[0] for name in names]
    assert _are_alike(found)
    matrices = [tuple(sorted((link.tail, link.head, link.bandwidth) for link in one.links)) for one in found]
    assert len(set(matrices)) > 1, "they are numbered differently"
    assert bound(found[0], Collective.ALLGATHER).inverse_rate == Fraction(7, 150)


def test_boxes_of_mi250_are_one_graph() -> None:
    small = [f"rccl_topo_8p1h{suffix}.xml" for suffix in ("", "_1", "_4", "_5", "_n1")]
    assert _are_alike([_topology(CORPUS / "nccl_xml" / name)[0] for name in small])
    large = [_topology(CORPUS / "nccl_xml" / f"rccl_topo_16p1h{suffix}.xml")[0] for suffix in ("", "_vm")]
    assert _are_alike(large)
    assert not _are_alike([large[0], _topology(CORPUS / "nccl_xml" / small[0])[0]])


def test_storage_nics_are_left_out_and_named() -> None:
    _, _, notes = _topology(CORPUS / "issues" / "33_h800_NV8_interleaved_nics.txt")
    assert any("left out NIC0: NODE from every GPU" in note for note in notes)


def test_all_nics_of_a_rail_are_kept() -> None:
    path = CORPUS / "issues" / "33_h800_NV8_interleaved_nics.txt"
    reader = NvidiaTopo()
    found, _ = ask_until_complete(reader, _text(path), source=path.name, options=Options(gpu="h800", nic="400G"))
    links = {(entry["from"], entry["to"]) for entry in found.document["links"]}
    assert ("gpu3", "nic8") in links
    assert ("gpu1", "nic4") in links


def main() -> None:
    """Print a table of all files."""
    for path in _FILES:
        try:
            reader = _reader(path)
            if reader is None:
                print(f"{corpus_name(path)}\tnot recognized")
                continue
            topology, asked, notes = _topology(path)
            rate = bound(topology, Collective.ALLGATHER).inverse_rate
            print(
                f"{corpus_name(path)}\t{reader.kind}\tread\t{topology.rank_count} GPUs\t{rate} s/GB\t"
                f"asked {', '.join(asked) or 'nothing'}\t{len(notes)} notes"
            )
        except ForestsynError as error:
            print(f"{corpus_name(path)}\t{reader.kind if reader else ''}\trefused\t{error.message}")


if __name__ == "__main__":
    main()
