"""The native topology file: each feature on a small example."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest

from forestsyn.errors import InputError
from forestsyn.frontend import describe_topology, parse_topology
from forestsyn.ir.topology import Topology

BOX = """
forestsyn: 1
gpus: 3
cpus: 1
links:
  - {from: "gpu*", to: cpu0, bw: 24}
"""
PAIR = """
forestsyn: 1
templates:
  box:
    gpus: 2
    switches: {nvsw: {multicast: true}}
    nics: 2
    links:
      - {from: "gpu*", to: nvsw, bw: 300}
      - {from: "gpu{0..1}", to: "nic{0..1}", bw: 25, zip: true}
hosts:
  - {template: box, count: 2}
fabric:
  switches: [ib]
  links:
    - {from: "n*/nic*", to: ib, bw: 25}
"""


def read(text: str) -> Topology:
    """The topology of a text."""
    return parse_topology(text, source="example.yaml")


def links(topology: Topology) -> dict[tuple[str, str], Fraction]:
    """Bandwidth by the names of both ends."""
    names = [vertex.name for vertex in topology.vertices]
    return {(names[link.tail], names[link.head]): link.bandwidth for link in topology.links}


def ranks(topology: Topology) -> list[str]:
    """The names of the ranks, in order."""
    return [topology.rank_name(rank) for rank in range(topology.rank_count)]


def box(entry: str, gpus: int = 2) -> dict[tuple[str, str], Fraction]:
    """The links that one entry makes among `gpus` GPUs."""
    return links(read(f"forestsyn: 1\ngpus: {gpus}\nlinks:\n  - {entry}\n"))


def test_one_box_takes_six_lines() -> None:
    topology = read(BOX)
    assert topology.name == "example"
    assert ranks(topology) == ["gpu0", "gpu1", "gpu2"]
    assert {vertex.host for vertex in topology.vertices} == {"example"}
    assert set(links(topology).values()) == {Fraction(24)}
    assert len(topology.links) == 6


def test_the_version_is_required() -> None:
    with pytest.raises(InputError, match="'forestsyn' is missing"):
        read("gpus: 2\n")


def test_a_glob_with_itself_is_the_full_mesh_once() -> None:
    found = box("{from: 'gpu*', to: 'gpu*', bw: 64}", gpus=4)
    assert len(found) == 12
    assert set(found.values()) == {Fraction(64)}


def test_parallel_links_add_up_and_the_slower_latency_counts() -> None:
    topology = read(
        "forestsyn: 1\ngpus: 2\nlinks:\n"
        "  - {from: gpu0, to: gpu1, bw: 10, times: 3, latency: 1}\n"
        "  - {from: gpu1, to: gpu0, bw: 5, latency: 2 us}\n"
    )
    assert links(topology) == {("gpu0", "gpu1"): 35, ("gpu1", "gpu0"): 35}
    assert {link.latency for link in topology.links} == {Fraction(2)}


def test_one_way_links() -> None:
    found = links(
        read(
            "forestsyn: 1\ngpus: 2\nlinks:\n"
            "  - {from: gpu0, to: gpu1, bw: 10, dir: one-way}\n"
            "  - {from: gpu1, to: gpu0, bw: 3, dir: one-way}\n"
        )
    )
    assert found == {("gpu0", "gpu1"): 10, ("gpu1", "gpu0"): 3}


@pytest.mark.parametrize(
    ("form", "bandwidth"),
    [
        ("bw: 12.5", Fraction(25, 2)),
        ("bw: 3/7", Fraction(3, 7)),
        ("bw: 100Gb/s", Fraction(25, 2)),
        ("nvlink: 12, gen: 3", Fraction(300)),
        ("nvlink: 4, part: 3090", Fraction(225, 4)),
        ("nvlink: 18, part: H100", Fraction(450)),
        ("xgmi: 7, part: mi350x", Fraction(1071, 2)),
        ("pcie: gen4x16", Fraction(63, 2)),
        ("pcie: gen3x1", Fraction(63, 64)),
        ("nic: 400Gb/s, times: 2", Fraction(100)),
        ("socket: xgmi-milan", Fraction(36)),
        ("c2c: gh200", Fraction(450)),
    ],
)
def test_forms_of_bandwidth(form: str, bandwidth: Fraction) -> None:
    assert box(f"{{from: gpu0, to: gpu1, {form}}}")[("gpu0", "gpu1")] == bandwidth


@pytest.mark.parametrize(
    ("rates", "bandwidth"), [("spec", Fraction(450)), ("nccl", Fraction("370.8")), ("measured", Fraction(361))]
)
def test_columns_of_rates(rates: str, bandwidth: Fraction) -> None:
    topology = read(f"forestsyn: 1\nuse: hgx-h100\nrates: {rates}\n")
    assert set(links(topology).values()) == {bandwidth}
    assert topology.rates == rates


def test_the_unit_of_plain_numbers() -> None:
    topology = read("forestsyn: 1\nunit: Gb/s\ngpus: 2\nlinks:\n  - {from: gpu0, to: gpu1, bw: 400}\n")
    assert set(links(topology).values()) == {Fraction(50)}


def test_hosts_and_fabric() -> None:
    topology = read(PAIR)
    assert ranks(topology) == ["n0/gpu0", "n0/gpu1", "n1/gpu0", "n1/gpu1"]
    assert [topology.rank_host(rank) for rank in range(4)] == ["n0", "n0", "n1", "n1"]
    assert links(topology)["n1/nic1", "ib"] == 25
    assert [vertex.multicast for vertex in topology.vertices if vertex.name == "n0/nvsw"] == [True]
    assert [vertex.host for vertex in topology.vertices if vertex.name == "ib"] == [None]


def test_host_names_and_prefixes() -> None:
    text = PAIR.replace("count: 2}", "names: 'rack[08-09]'}").replace("n*/", "rack*/")
    assert ranks(read(text))[0] == "rack08/gpu0"
    assert ranks(read(PAIR.replace("count: 2}", "count: 2, prefix: x}").replace("n*/", "x*/")))[3] == "x1/gpu1"


def test_for_turns_the_last_variable_fastest() -> None:
    text = PAIR.replace("{from: 'n*/nic*', to: ib, bw: 25}", "").replace(
        '- {from: "n*/nic*", to: ib, bw: 25}', '- {from: "n{h}/nic{r}", to: ib, bw: 25, for: {h: 0..1, r: [0, 1]}}'
    )
    assert links(read(text)) == links(read(PAIR))


def test_a_nic_that_stays_inside_its_host_leads_nowhere() -> None:
    topology = read(PAIR.partition("fabric:")[0].replace("count: 2", "count: 1"))
    assert [vertex.name for vertex in topology.vertices] == ["n0/gpu0", "n0/gpu1", "n0/nvsw"]
    assert "2 in all" in topology.notes[0]


def test_a_fabric_can_wait_for_a_number_of_hosts() -> None:
    text = PAIR.replace("fabric:\n", "fabric:\n  min_hosts: 2\n").replace("count: 2", "count: 1")
    assert len(read(text).links) == 4


def test_templates_can_start_from_a_machine() -> None:
    topology = read(
        "forestsyn: 1\ntemplates:\n  a: {use: hgx-a100}\n  h:\n    use: hgx-h100\n"
        "    cpus: 1\n    links:\n      - {from: 'gpu*', to: cpu0, bw: 10}\n"
        "hosts:\n  - {template: a, names: left}\n  - {template: h, names: right}\n"
        "fabric:\n  links:\n    - {from: left/nvsw, to: right/nvsw, bw: 1}\n"
    )
    assert topology.rank_count == 16
    assert links(topology)["left/gpu0", "left/nvsw"] == 300
    assert links(topology)["right/gpu0", "right/cpu0"] == 10


def test_parameters_and_expressions() -> None:
    text = PAIR.replace("forestsyn: 1", "forestsyn: 1\nparameters: {N: 3}").replace("count: 2", "count: 2*N-1")
    assert read(text).rank_count == 10


def test_removed_devices_and_hosts() -> None:
    text = PAIR + "exceptions:\n  - {remove: n0/gpu1, reason: XID 79}\n"
    topology = read(text)
    assert ranks(topology) == ["n0/gpu0", "n1/gpu0", "n1/gpu1"]
    assert "exception: n0/gpu1 removed: XID 79" in topology.notes
    # its NIC is now a dead end
    assert "n0/nic1" not in {vertex.name for vertex in topology.vertices}
    whole_host = read(PAIR + "exceptions:\n  - {remove: n0, reason: maintenance}\n")
    assert ranks(whole_host) == ["n1/gpu0", "n1/gpu1"]


def test_removed_and_changed_links() -> None:
    topology = read(
        PAIR
        + "exceptions:\n"
        + "  - {remove: {link: [n0/nic0, ib], dir: one-way}, reason: one fibre}\n"
        + "  - {set: {link: [n1/gpu*, n1/nvsw], bw: 275, latency: 3}, reason: one NVLink down}\n"
    )
    found = links(topology)
    assert ("n0/nic0", "ib") not in found
    assert found["ib", "n1/nic0"] == 25
    assert found["n1/gpu1", "n1/nvsw"] == found["n1/nvsw", "n1/gpu1"] == 275
    assert found["n0/gpu1", "n0/nvsw"] == 300


def test_exceptions_apply_to_a_used_machine() -> None:
    topology = read("forestsyn: 1\nuse: dgx-a100:2\nexceptions:\n  - {remove: n1/nic3, reason: port down}\n")
    assert topology.name == "dgx-a100"
    assert len(topology.links) == 96 - 4


def test_rank_order_and_subset() -> None:
    topology = read(PAIR + "ranks: [n1/gpu1, n0/gpu0]\n")
    assert ranks(topology) == ["n1/gpu1", "n0/gpu0"]
    assert "n0/gpu1" not in {vertex.name for vertex in topology.vertices}


def test_relays_forward() -> None:
    text = "forestsyn: 1\nmesh: [3]\nlink: {bw: 5}\nranks: [gpu0, gpu2]\n"
    assert len(read(text).links) == 0
    relayed = read(text + "relay: true\n")
    assert len(relayed.links) == 4
    assert describe_topology(relayed).relays == ("gpu1",)


def test_switch_defaults() -> None:
    text = PAIR + "switch_defaults: {reduce: true}\n"
    abilities = {vertex.name: (vertex.multicast, vertex.reduce) for vertex in read(text).vertices}
    assert abilities["n0/nvsw"] == (True, True)
    assert abilities["ib"] == (False, True)
    assert abilities["n0/gpu0"] == (False, False)
    used = read("forestsyn: 1\nuse: dgx-a100:2\nswitch_defaults: {multicast: true}\n")
    assert [vertex.multicast for vertex in used.vertices if vertex.name in ("n0/nvsw", "ib0")] == [True, True]


def test_links_are_sorted() -> None:
    order = [(link.tail, link.head) for link in read(PAIR).links]
    assert order == sorted(order)


def test_optional_links() -> None:
    assert box("{from: 'tpu*', to: gpu0, bw: 1, optional: true}") == {}


def test_the_limits_hold_before_anything_is_built() -> None:
    for text in (
        "gpus: 1000000000\n",
        "torus: [100000, 100000]\n",
        "full: 100000\n",
        "hypercube: 99999\n",
        "rail-optimized: {hosts: 99999, gpus: 99999}\n",
        "dragonfly: {groups: 99999, routers: 99999, gpus: 1}\n",
        "fat-tree: 10000\n",
        "use: dgx-h100:99999\n",
        "gpus: 2\nlinks:\n  - {from: 'gpu{0..99999}{0..99999}', to: gpu0, bw: 1}\n",
        "gpus: ['gpu{0..99999}', 'x{0..9}']\n",
        "gpus: 2\nlinks:\n  - {from: gpu0, to: gpu1, bw: 1, times: 999999999}\n",
    ):
        with pytest.raises(InputError):
            read("forestsyn: 1\n" + text)


def test_the_examples_of_the_documentation() -> None:
    text = (Path(__file__).parents[2] / "docs" / "topology.md").read_text(encoding="utf-8")
    examples = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert [read(example).rank_count for example in examples] == [4, 23, 32]
