"""What `check` says about a topology."""

from __future__ import annotations

from forestsyn.frontend import describe_topology, parse_topology
from forestsyn.frontend.report import TopologyReport

ODD = """
forestsyn: 1
name: odd
gpus: 4
switches: [sw]
links:
  - {from: gpu0, to: gpu1, bw: 10}
  - {from: gpu2, to: gpu3, bw: 10}
  - {from: gpu3, to: gpu2, bw: 2, dir: one-way}
  - {from: gpu0, to: sw, bw: 7, dir: one-way}
  - {from: sw, to: gpu1, bw: 5, dir: one-way}
"""


def report(text: str) -> TopologyReport:
    """The report of a text."""
    return describe_topology(parse_topology(text, source="odd.yaml"))


def test_counts_and_bandwidth() -> None:
    found = report(ODD)
    assert found.vertices == {"gpu": 4, "switch": 1}
    assert found.links == 6
    assert [(rank.name, rank.send, rank.receive) for rank in found.ranks] == [
        ("gpu0", 17, 10),
        ("gpu1", 10, 15),
        ("gpu2", 10, 12),
        ("gpu3", 12, 10),
    ]


def test_oddities() -> None:
    found = report(ODD)
    assert [(item.subject, item.first, item.second) for item in found.asymmetric_links] == [
        ("gpu0 - sw", 7, 0),
        ("gpu2 - gpu3", 10, 12),
        ("sw - gpu1", 5, 0),
    ]
    assert [(item.subject, item.first, item.second) for item in found.unbalanced_switches] == [("sw", 7, 5)]
    assert found.sides == (("gpu0", "gpu1"), ("gpu2", "gpu3"))


def test_the_text_names_both_sides() -> None:
    text = str(report(ODD))
    assert "NOT CONNECTED" in text
    assert "2 ranks: gpu0, gpu1" in text
    assert "unbalanced switches (1): sw (7.00 GB/s in, 5.00 GB/s out)" in text


def test_one_way_reach_is_not_enough() -> None:
    found = report("forestsyn: 1\ngpus: 2\nlinks:\n  - {from: gpu0, to: gpu1, bw: 1, dir: one-way}\n")
    assert found.sides == (("gpu0",), ("gpu1",))


def test_a_nic_on_the_fabric_alone_is_lonely() -> None:
    found = report(
        "forestsyn: 1\ntemplates:\n  box:\n    gpus: 2\n    nics: 1\n"
        "    links:\n      - {from: gpu0, to: gpu1, bw: 5}\n"
        "hosts:\n  - {template: box, count: 2}\n"
        "fabric:\n  switches: [a, b]\n  links:\n"
        "    - {from: 'n*/nic0', to: a, bw: 1}\n    - {from: 'n*/nic0', to: b, bw: 1}\n"
    )
    assert found.lonely_nics == ("n0/nic0", "n1/nic0")
