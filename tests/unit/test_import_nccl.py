"""NCCL's and RCCL's topology XML: dialects, links, PCIe, several hosts, hazards, refusals."""

from __future__ import annotations

from fractions import Fraction

import pytest

from forestsyn.errors import InputError
from forestsyn.frontend.imports.kinds import Options
from forestsyn.frontend.imports.nccl_speeds import PcieLink, pcie_link, socket_part, xgmi_part
from forestsyn.frontend.imports.nccl_xml import NcclXml
from forestsyn.frontend.imports.xml_tree import Element, parse_xml
from forestsyn.ir.topology import Topology
from tests.importing import ask_until_complete, topology_of

READER = NcclXml()
SPEED = 'link_speed="16.0 GT/s PCIe" link_width="16"'


def _gpu(number: int, links: str = "", *, sm: int = 80, speed: str = SPEED, extra: str = "") -> str:
    return (
        f'<pci busid="0000:{number:02x}:00.0" class="0x030200" {speed}>'
        f'<gpu dev="{number}" sm="{sm}" rank="{number}" gdr="1"{extra}>{links}</gpu></pci>'
    )


def _link(target: str, count: int, pci_class: str = "0x030200", tag: str = "nvlink") -> str:
    return f'<{tag} target="{target}" count="{count}" tclass="{pci_class}"/>'


def _address(number: int) -> str:
    return f"0000:{number:02x}:00.0"


def _net(number: int, speed: str = "200000", *, address: int = 0x80) -> str:
    return (
        f'<pci busid="0000:{address + number:02x}:00.0" class="0x020700" {SPEED}><nic>'
        f'<net name="mlx5_{number}" dev="{number}" speed="{speed}" port="1" guid="0x{number}" gdr="1"/></nic></pci>'
    )


def _bridge(inside: str, number: int = 0, device: str = "", speed: str = SPEED) -> str:
    return f'<pci busid="0000:f{number}:00.0" class="0x060400" {device} {speed}>{inside}</pci>'


def _cpu(inside: str, numa: int = 0, extra: str = "") -> str:
    known = 'arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143"'
    return f'<cpu numaid="{numa}" affinity="ff" {known} {extra}>{inside}</cpu>'


def _system(inside: str, version: int = 1) -> str:
    return f'<system version="{version}">{inside}</system>'


def _switched(count: int = 12) -> str:
    return _link("fffffff:ffff:ff", count, "0x068000")


def _links(topology: Topology) -> dict[frozenset[str], Fraction]:
    names = [vertex.name for vertex in topology.vertices]
    return {frozenset((names[link.tail], names[link.head])): link.bandwidth for link in topology.links}


def _read(text: str, **options: object) -> tuple[dict[frozenset[str], Fraction], tuple[str, ...], list[str]]:
    found, asked = ask_until_complete(READER, text, source="system.xml", options=Options(**options))
    return _links(topology_of(found)), found.notes, asked


def test_switch_targets_fold_into_one_switch() -> None:
    links = "".join(_link(f"0000:{chip}:00.0", count, "0x068000") for chip, count in (("c1", 5), ("c2", 7)))
    pairs, _, asked = _read(_system(_cpu(_gpu(0, links) + _gpu(1, _switched()))))
    assert asked == []
    assert pairs == {frozenset(("gpu0", "nvsw")): 300, frozenset(("gpu1", "nvsw")): 300}


def test_direct_links_are_summed_and_both_ends_compared() -> None:
    text = _system(
        _cpu(
            _gpu(0, _link(_address(1), 2) + _link(_address(1), 2)) + _gpu(1, _link(_address(0), 3)),
        )
    )
    pairs, notes, _ = _read(text)
    assert pairs[frozenset(("gpu0", "gpu1"))] == 75
    assert "gpu0 lists 4 links to gpu1, and gpu1 3; the fewer count" in notes


def test_self_links_and_strangers_are_left_out_and_told() -> None:
    both = _link(_address(0), 12) + _link("0000:77:00.0", 4) + _switched()
    _, notes, _ = _read(_system(_cpu(_gpu(0, both) + _gpu(1, _switched()))))
    assert "gpu0 claims 12 links to itself; they are left out" in notes
    assert any("0000:77:00.0, which is no GPU of the file" in note for note in notes)


def test_rates_come_from_the_compute_capability_or_the_model() -> None:
    for sm, bandwidth in ((60, 80), (70, 100), (80, 100), (86, Fraction("56.25")), (90, 100), (103, 200)):
        text = _system(_cpu(_gpu(0, _link(_address(1), 4), sm=sm) + _gpu(1, _link(_address(0), 4), sm=sm)))
        assert _read(text)[0][frozenset(("gpu0", "gpu1"))] == bandwidth
    text = _system(_cpu(_gpu(0, _link(_address(1), 4)) + _gpu(1, _link(_address(0), 4))))
    assert _read(text, rates="nccl")[0][frozenset(("gpu0", "gpu1"))] == 80
    assert _read(text, gpu="3090")[0][frozenset(("gpu0", "gpu1"))] == Fraction("56.25")


def test_the_gpu_without_links_is_named_and_reached_over_pcie() -> None:
    gpus = "".join(_gpu(number, _switched(18) if number != 2 else "", sm=103) for number in range(4))
    pairs, notes, _ = _read(_system(_cpu(gpus)))
    assert "gpu2 (rank 2) has no NVLink or xGMI links where its siblings have 18" in notes
    assert frozenset(("gpu2", "cpu0")) in pairs


def test_xgmi() -> None:
    one = _link(_address(1), 4, "0x038000", "xgmi")
    other = _link(_address(0), 4, "0x038000", "xgmi")
    for gcn, bandwidth in (("910", 200), ("gfx90a", 200), ("gfx942", 256), ("906", 184)):
        extra = f' gcn="{gcn}"'
        text = _system(_cpu(_gpu(0, one, extra=extra) + _gpu(1, other, extra=extra)), version=2)
        assert _read(text)[0] == {frozenset(("gpu0", "gpu1")): bandwidth}
    assert xgmi_part("gfx950") == "mi350x"
    assert xgmi_part("1100") is None


def test_nics_serve_the_nearest_gpus() -> None:
    inside = _cpu(_bridge(_gpu(0, _switched()) + _net(0), 0) + _bridge(_gpu(1, _switched()) + _net(1), 1))
    found, _ = ask_until_complete(READER, _system(inside + _cpu(_net(2), 1)), source="system.xml")
    assert {"from": "gpu0", "to": "mlx5_0", "nic": "200Gb/s"} in found.document["links"]
    assert found.document["nics"] == ["mlx5_0", "mlx5_1"]
    assert any("left out mlx5_2: SYS from every GPU" in note for note in found.notes)


@pytest.mark.parametrize(("speed", "note"), [("200000000", "claims 200000000 Mb/s"), ("1000", "management")])
def test_speeds_that_no_rail_has(speed: str, note: str) -> None:
    inside = _cpu(_bridge(_gpu(0, _switched()) + _gpu(1, _switched()) + _net(0, speed)))
    _, notes, _ = _read(_system(inside))
    assert any(note in text for text in notes)


def test_pcie_tree_merges_bridges_of_one_device() -> None:
    slow = 'link_speed="2.5 GT/s PCIe" link_width="1"'
    inside = _cpu(_bridge(_bridge(_gpu(0), 1), 0) + _bridge(_gpu(1), 2, speed=slow)) + _cpu(_gpu(2), 1)
    pairs, notes, asked = _read(_system(inside), nvswitch=False)
    assert asked == []
    assert pairs == {
        frozenset(("gpu0", "cpu0")): Fraction("31.5"),
        frozenset(("gpu1", "cpu0")): Fraction(1, 4),
        frozenset(("gpu2", "cpu1")): Fraction("31.5"),
        frozenset(("cpu0", "cpu1")): 32,
    }
    assert any("gpu1 hangs on a PCIe link of only gen1x1" in note for note in notes)


def test_two_levels_of_one_broadcom_switch_are_one() -> None:
    device = 'vendor="0x1000" device="0xc030"'
    inside = _bridge(_gpu(0) + _gpu(1), 1, device) + _bridge(_gpu(2) + _gpu(3), 2, device)
    pairs, _, _ = _read(_system(_cpu(_bridge(inside, 0, device) + _gpu(4))), nvswitch=False)
    assert sum("pcie0" in pair for pair in pairs) == 5


def test_links_between_switches_are_left_out_and_told() -> None:
    inside = _bridge(_gpu(0) + _gpu(1) + '<pcilink target="0000:f2:00.0"/>', 1) + _bridge(_gpu(2) + _gpu(3), 2)
    assert any("pcilink" in note for note in _read(_system(_cpu(inside)), nvswitch=False)[1])


def test_unknown_pcie_speeds_are_asked_for_or_told() -> None:
    unknown = 'link_speed="" link_width="0"'
    text = _system(_cpu(_gpu(0, speed=unknown) + _gpu(1, speed=unknown)))
    assert _read(text, nvswitch=False)[2] == ["--pcie"]
    odd = 'link_speed="32 GT/s PCIe/s" link_width="16"'
    pairs, notes, _ = _read(_system(_cpu(_gpu(0, speed=odd) + _gpu(1, speed=odd))), nvswitch=False)
    assert pairs[frozenset(("gpu0", "cpu0"))] == 63
    assert any("NCCL does not know the speed '32 GT/s PCIe/s'" in note for note in notes)


@pytest.mark.parametrize(
    ("speed", "width", "link"),
    [
        ("2.5 GT/s", "1", PcieLink(1, 1)),
        ("5 GT/s", "8", PcieLink(2, 8)),
        ("8.0 GT/s PCIe", "16", PcieLink(3, 16)),
        ("64 GT/s PCIe", "16", PcieLink(6, 16)),
        ("Unknown", "16", None),
        ("", "0", None),
        ("16 GT/s", "17", None),
    ],
)
def test_pcie_links(speed: str, width: str, link: PcieLink | None) -> None:
    assert pcie_link(Element("pci", {"link_speed": speed, "link_width": width}, 1)) == link


def test_sockets_by_processor() -> None:
    def part(**given: str) -> str | None:
        found = socket_part(Element("cpu", given, 1))
        return found[0] if found is not None else None

    assert part(vendor="GenuineIntel", modelid="143") == "upi-sapphire-rapids"
    assert part(vendor="GenuineIntel", modelid="85") == "upi-skylake"
    assert part(vendor="AuthenticAMD", familyid="23", modelid="49") == "xgmi-rome"
    assert part(vendor="AuthenticAMD", familyid="25", modelid="17") == "xgmi-genoa"
    assert part(arch="ppc64") == "power9"
    assert part(vendor="Shanghai") is None


def test_static_hints_ask_for_what_nccl_would_detect() -> None:
    leaf = '<pci busid="0000:0{}:00.0" class="0x030200" {} link_speed="16 GT/s" link_width="16"/>'
    nic = f'<pci busid="0000:09:00.0" class="0x020700" {SPEED}/>'
    hint = _system(_cpu(_bridge(leaf.format(1, "") + leaf.format(2, "") + nic)))
    pairs, notes, asked = _read(hint)
    assert asked == ["--gpu", "--nvswitch", "--nic"]
    assert pairs[frozenset(("gpu0", "nvsw"))] == 300
    assert any("the file lists none" in note for note in notes)
    known = _system(_cpu(_bridge(leaf.format(1, 'device="0x2330"') + leaf.format(2, 'device="0x2330"'))))
    assert _read(known)[2] == ["--nvswitch"]
    assert _read(known, nvswitch=False)[0][frozenset(("gpu0", "pcie0"))] == Fraction("31.5")
    assert _read(hint, gpu="4090", nic="200G")[2] == []


def test_a_c2c_link_leads_to_the_cpu() -> None:
    c2c = '<c2c bw="44712" count="5"/>'
    pairs, _, _ = _read(_system(_cpu(_gpu(0, c2c, sm=103)) + _cpu(_gpu(1, c2c, sm=103), 1)), nvswitch=False)
    assert pairs[frozenset(("gpu0", "cpu0"))] == Fraction("31.5") + Fraction("223.56")


def test_power_servers_link_gpus_to_cpus() -> None:
    links = _link("0000:00:00.0", 3, "0x068001") + _link(_address(1), 3)
    back = _link("0000:00:00.0", 3, "0x068001") + _link(_address(0), 3)
    found, _ = ask_until_complete(
        READER, _system(_cpu(_gpu(0, links, sm=70) + _gpu(1, back, sm=70) + _gpu(2, sm=70))), source="x"
    )
    assert {"from": "gpu[0-1]", "to": "cpu0", "nvlink": 3, "gen": 2} in found.document["links"]


def test_several_hosts_share_one_switch() -> None:
    hosts = "".join(
        _cpu("".join(_gpu(gpu, _switched(18), sm=100) for gpu in range(4)), extra=f'host_hash="0x{host}"')
        for host in range(3)
    )
    found, asked = ask_until_complete(READER, _system(hosts), source="system.xml")
    assert asked == []
    assert len(found.document["templates"]) == 1
    topology = topology_of(found)
    assert topology.rank_count == 12
    assert set(_links(topology).values()) == {Fraction(900)}
    assert topology.rank_host(4) == "n1"
    apart = [_cpu(_gpu(0, sm=89) + _gpu(1, sm=89), extra=f'host_hash="{host}"') for host in range(2)]
    with pytest.raises(InputError, match="has 2 hosts, and no NVLink switch joins them"):
        READER.read(_system("".join(apart)), source="x", options=Options())


def test_ranks_order_the_gpus() -> None:
    text = _system(_cpu(_gpu(1, _switched()) + _gpu(0, _switched()) + _gpu(5, _switched())))
    found, _ = ask_until_complete(READER, text, source="x")
    assert [vertex.name for vertex in topology_of(found).vertices][:3] == ["gpu0", "gpu1", "gpu5"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (_system(_cpu(_gpu(0))), "1 GPU; a collective needs at least 2"),
        (_system(_cpu(_bridge(""))), "no GPU is listed"),
        (_system(""), "has no <cpu>"),
        (_system(_cpu(_gpu(0)), version=3), "version of the dump is '3'"),
        ("<graphs version='1'/>", "graph file"),
        ("<topology/>", "expected <system>"),
        (_system(_cpu(_gpu(0)))[:-9], "not XML"),
        (_gpu(4, _switched()) + _gpu(5), "in it rank 5 lists no NVLink"),
        ("", "not XML: no element found"),
        ('<!DOCTYPE s [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]><system version="1">&b;</system>', "declares an entity"),
        ("<a>" * 200, "too deep nesting"),
        ("<system>" + "<b/>" * 50_001 + "</system>", "more than 50,000 elements"),
    ],
)
def test_what_cannot_be_trusted_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        READER.read(text, source="system.xml", options=Options())
    assert (caught.value.where or "").startswith("system.xml")


def test_nothing_outside_the_text_is_read() -> None:
    text = '<!DOCTYPE s [<!ENTITY a SYSTEM "file:///etc/hostname">]><system version="1">&a;</system>'
    with pytest.raises(InputError, match="declares an entity"):
        parse_xml(text, source="x")
    assert parse_xml('<!DOCTYPE s SYSTEM "hwloc.dtd"><s a="1"/>', source="x").get("a") == "1"


def test_bare_hints_need_a_machine() -> None:
    text = _system('<cpu numaid="0"><pci busid="0000:45:00.0"><pci busid="0000:4f:00.0"/></pci></cpu>')
    with pytest.raises(InputError, match="hint for NCCL") as caught:
        READER.read(text, source="x", options=Options())
    assert "--machine" in (caught.value.hint or "")
    assert READER.read(text, source="x", options=Options(machine="p5")).document["use"] == "p5"
