"""hwloc's XML: PCIe trees, NVLink matrices with switches and CPUs, refusals."""

from __future__ import annotations

from fractions import Fraction

import pytest

from forestsyn.errors import InputError
from forestsyn.frontend.imports.hwloc_objects import pcie_rate
from forestsyn.frontend.imports.hwloc_xml import HwlocXml
from forestsyn.frontend.imports.kinds import Options
from tests.importing import ask_until_complete, topology_of

GPU = (
    '<object type="PCIDev" gp_index="{index}" pci_type="0302 [10de:20b0] [10de:0] a1" '
    'pci_link_speed="{speed}"><object type="OSDev" gp_index="{os}" name="nvml{index}" subtype="NVML" osdev_type="1">'
    '<info name="GPUModel" value="A100"/></object></object>'
)
NIC = (
    '<object type="PCIDev" gp_index="{index}" pci_type="0207 [15b3:101b] [15b3:0] 00" '
    'pci_link_speed="31.507692"><object type="OSDev" gp_index="{os}" name="mlx5_{index}" osdev_type="3"/></object>'
)


def _gpu(index: int, speed: str = "31.507692") -> str:
    return GPU.format(index=index, os=index + 100, speed=speed)


def _bridge(index: int, inside: str) -> str:
    return (
        f'<object type="Bridge" gp_index="{index}" bridge_type="1-1" pci_type="0604 [1000:c010] [0:0] 00" '
        f'pci_link_speed="31.507692">{inside}</object>'
    )


def _package(index: int, inside: str) -> str:
    host = f'<object type="Bridge" gp_index="{index + 500}" bridge_type="0-1">{inside}</object>'
    return f'<object type="Package" gp_index="{index}" os_index="0">{host}</object>'


def _file(inside: str, matrix: str = "") -> str:
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n'
    return f'{head}<topology version="2.0"><object type="Machine" gp_index="1">{inside}</object>{matrix}</topology>'


def _matrix(indexes: str, values: str, name: str = "NVLinkBandwidth") -> str:
    return (
        f'<distances2hetero nbobjs="0" kind="25" name="{name}"><indexes length="1">{indexes} </indexes>'
        f'<u64values length="1">{values[: len(values) // 2]}</u64values>'
        f'<u64values length="1">{values[len(values) // 2 :]}</u64values></distances2hetero>'
    )


def test_pcie_tree() -> None:
    inside = _package(2, _bridge(50, _gpu(10) + _gpu(11) + NIC.format(index=20, os=120))) + _package(
        3, _bridge(51, _gpu(12, "15.753846"))
    )
    found, asked = ask_until_complete(HwlocXml(), _file(inside), source="h.xml")
    assert asked == ["--socket"]
    document = found.document
    assert document["gpus"] == 3
    assert document["cpus"] == 2
    assert document["nics"] == ["mlx5_20"]
    topology = topology_of(found)
    names = [vertex.name for vertex in topology.vertices]
    pairs = {frozenset((names[link.tail], names[link.head])): link.bandwidth for link in topology.links}
    assert pairs[frozenset(("gpu2", "cpu1"))] == Fraction("15.75")
    assert pairs[frozenset(("gpu0", "pcie0"))] == Fraction("31.5")


def test_links_through_switch_chips() -> None:
    chip = '<object type="PCIDev" gp_index="30" subtype="NVSwitch" pci_type="0680 [10de:1ac2] [0:0] a1"/>'
    inside = _package(2, _gpu(10) + _gpu(11) + chip + chip.replace("30", "31"))
    values = " 1000000 0 25000 25000 0 1000000 25000 25000 25000 25000 0 0 25000 25000 0 0 "
    matrix = _matrix("OSDev:110 OSDev:111 PCIDev:30 PCIDev:31", values)
    found, asked = ask_until_complete(HwlocXml(), _file(inside, matrix), source="h.xml")
    assert asked == []
    assert found.document["links"] == [{"from": "gpu[0-1]", "to": "nvsw0", "bw": 50}]
    assert any("2 NVSwitch chips count as one switch" in note for note in found.notes)


def test_links_to_a_cpu() -> None:
    inside = _package(2, _gpu(10)) + _package(3, _gpu(11))
    matrix = _matrix("OSDev:110 OSDev:111 Package:2 Package:3", " 9 0 40000 0 0 9 0 40000 40000 0 9 0 0 40000 0 9 ")
    found, asked = ask_until_complete(HwlocXml(), _file(inside, matrix), source="h.xml")
    assert asked == ["--socket"]
    assert {"from": "gpu0", "to": "cpu0", "bw": 40} in found.document["links"]


def test_xgmi_joins_gpus_directly() -> None:
    inside = _package(2, _gpu(10) + _gpu(11)).replace("10de", "1002")
    matrix = _matrix("OSDev:110 OSDev:111", " 0 100000 100000 0 ", "XGMIBandwidth")
    matrix += _matrix("OSDev:110 OSDev:111", " 0 1 1 0 ", "XGMIHops")
    found, _ = ask_until_complete(HwlocXml(), _file(inside, matrix), source="h.xml")
    assert found.document["links"] == [{"from": "gpu0", "to": "gpu1", "bw": 100}]


def test_unknown_speeds_are_asked_for() -> None:
    inside = _package(2, _gpu(10, "0.000000") + _gpu(11, ""))
    found, asked = ask_until_complete(HwlocXml(), _file(inside), source="h.xml", pcie="gen3x8")
    assert asked == ["--pcie"]
    assert found.guesses[0].text.endswith("given by --pcie")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (_file(""), "no GPU is listed"),
        (_file(_package(2, _gpu(10))), "1 GPU; a collective"),
        (_file(_package(2, _gpu(10) + _gpu(11)), _matrix("OSDev:110 OSDev:111", " 0 1 1 ")), "3 numbers, expected 4"),
        (
            _file(_package(2, _gpu(10) + _gpu(11)), _matrix("OSDev:110 OSDev:99", " 0 1 1 0 ")),
            "objects that the file lacks",
        ),
        ("<topology><object", "not XML"),
        ("<html/>", "expected <topology>"),
        ('<!DOCTYPE t [<!ENTITY a "b">]><topology>&a;</topology>', "declares an entity"),
    ],
)
def test_what_cannot_be_trusted_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        HwlocXml().read(text, source="h.xml", options=Options(pcie="gen4x16", socket="16GB/s"))
    assert (caught.value.where or "").startswith("h.xml")


def test_speeds_as_generations() -> None:
    assert pcie_rate(Fraction("15.753846")) == {"pcie": "gen3x16"}
    assert pcie_rate(Fraction("31.507692")) == {"pcie": "gen4x16"}
    assert pcie_rate(Fraction("63.015385")) == {"pcie": "gen5x16"}
    assert pcie_rate(Fraction("3.3")) == {"bw": "3.300000 GB/s"}
