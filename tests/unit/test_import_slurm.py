"""Trees: Slurm's two files, topograph models, labels of nodes."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from forestsyn.errors import InputError
from forestsyn.frontend.imports.compose_plain import machine_template
from forestsyn.frontend.imports.kinds import Found, Options, Reader
from forestsyn.frontend.imports.slurm_conf import SlurmConf
from forestsyn.frontend.imports.slurm_names import expand_hostlist
from forestsyn.frontend.imports.slurm_yaml import SlurmYaml
from forestsyn.frontend.imports.topograph import NodeLabels, TopographModel
from forestsyn.frontend.native import load_topology
from tests.importing import topology_of

CONF = "SwitchName=s0 Nodes=a[1-2]\nswitchname=s1 nodes=b1 LinkSpeed=9\nSwitchName=top Switches=s[0-1]\n"
YAML = """
- topology: flat
  flat: true
- topology: real
  cluster_default: true
  tree:
    switches:
      - {switch: top, children: "s[0-1]"}
      - {switch: s0, nodes: "a[1-2]"}
      - {switch: s1, nodes: b1}
"""
MODEL = """
switches:
  top: {switches: [s0, s1]}
  s0: {metadata: {}}
  s1: {nodes: [b1]}
blocks:
  - {switch: s0, nodes: ["a[1-2]"], annotations: {domain: nvl-1}}
"""


def _labels(level: str) -> str:
    nodes = [("a1", "s0"), ("a2", "s0"), ("b1", "s1"), ("c1", None)]
    items = [
        {"metadata": {"name": name, "labels": {level.format(1): leaf, level.format(2): "top"} if leaf else {}}}
        for name, leaf in nodes
    ]
    return json.dumps({"kind": "List", "items": items})


CASES: list[tuple[Reader, str]] = [
    (SlurmConf(), CONF),
    (SlurmYaml(), YAML),
    (TopographModel(), MODEL),
    (NodeLabels(), _labels("fabric.topograph.run/tier-{}")),
    (NodeLabels(), _labels("topology.kubernetes.io/network-level-{}")),
]


def _read(reader: Reader, text: str, **answers: str | int) -> Found:
    host = machine_template("dgx-a100", load_topology("dgx-a100:2"), pattern="*")
    given = {"link": "200G", "oversubscription": "2", "templates": (host,), **answers}
    return reader.read(text, source="tree", options=Options(**given))


@pytest.mark.parametrize(("reader", "text"), CASES, ids=lambda value: getattr(value, "kind", ""))
def test_trees_are_alike(reader: Reader, text: str) -> None:
    assert reader.recognizes("x", text) >= 40
    topology = topology_of(_read(reader, text))
    names = [vertex.name for vertex in topology.vertices]
    rates = {(names[link.tail], names[link.head]): link.bandwidth for link in topology.links}
    assert topology.rank_count == 24
    assert rates["a1/nic3", "s0"] == 25
    assert rates["s0", "top"] == 2 * 8 * 25 / 2
    assert rates["top", "s1"] == 8 * 25 / 2


def test_oversubscription_by_level_and_fractions() -> None:
    text = CONF + "SwitchName=r Switches=top\nSwitchName=q Nodes=c1\nSwitchName=z Switches=q,r\n"
    topology = topology_of(_read(SlurmConf(), text, oversubscription="1,3"))
    names = [vertex.name for vertex in topology.vertices]
    rates = {(names[link.tail], names[link.head]): link.bandwidth for link in topology.links}
    assert rates["s0", "top"] == 400
    assert rates["top", "r"] == 200
    assert rates["r", "z"] == Fraction(200, 3)


def test_everything_that_a_tree_does_not_tell_is_asked_for() -> None:
    found = SlurmConf().read(CONF, source="t", options=Options())
    assert [question.option for question in found.missing] == ["--link", "--oversubscription", "--host"]
    found = SlurmConf().read(CONF, source="t", options=Options(gpus_per_host=4, link="100G", oversubscription="1"))
    assert [question.option for question in found.missing] == ["--gpu", "--nic", "--nics-per-host"]


def test_blocks_hang_on_one_switch() -> None:
    found = _read(SlurmConf(), "BlockName=b0 Nodes=a[1-2]\nBlockName=b1 Nodes=c[1-2]\nBlockSizes=2,4\n")
    assert found.document["fabric"]["switches"] == ["b[0-1]", "top"]
    assert any("one switch above all blocks is supposed" in note for note in found.notes)


def test_roots_without_a_common_switch_are_told() -> None:
    found = _read(SlurmConf(), "SwitchName=s0 Nodes=a1\nSwitchName=s1 Nodes=b1\nSwitchName=s2 Nodes=b1\n")
    assert any("nothing joins the 2 switches at the top (s0, s1)" in note for note in found.notes)
    assert any("listed more than once (b1)" in note for note in found.notes)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a", ["a"]),
        ("a[08-10],b", ["a08", "a09", "a10", "b"]),
        ("r[1-2]n[0,3]-x", ["r1n0-x", "r1n3-x", "r2n0-x", "r2n3-x"]),
        ("", []),
    ],
)
def test_host_lists(text: str, names: list[str]) -> None:
    assert expand_hostlist(text, where="x") == names


@pytest.mark.parametrize("text", ["a[1", "a]1", "a[2-1]", "a[x]", "a[0-999999999]", "a[0-999][0-999]"])
def test_host_lists_that_are_broken_or_huge(text: str) -> None:
    with pytest.raises(InputError):
        expand_hostlist(text, where="x:1")


@pytest.mark.parametrize(
    ("reader", "text", "message"),
    [
        (SlurmConf(), "SwitchName=s0 Nodes=a\nSwitchName=s0 Nodes=b", "described twice"),
        (SlurmConf(), "SwitchName=s0", "neither Switches nor Nodes"),
        (SlurmConf(), "SwitchName=s0 Switches=s9", "'s9' is not described"),
        (SlurmConf(), "SwitchName=a Switches=b\nSwitchName=b Switches=a Nodes=x", "above itself"),
        (SlurmConf(), "SwitchName=a Switches=c\nSwitchName=b Switches=c\nSwitchName=c Nodes=x", "under 'a' and 'b'"),
        (SlurmConf(), "SwitchName=s0 Nodes=a\nBlockName=b Nodes=c", "switches and blocks"),
        (SlurmConf(), "SwitchName=s0 Nodes=a rubbish", "cannot read 'rubbish'"),
        (SlurmConf(), "SwitchName=s0 Colour=red Nodes=a", "'colour' does not go"),
        (SlurmConf(), "BlockName=b", "has no Nodes"),
        (SlurmYaml(), "- topology: x\n  flat: true\n", "which tells no switches"),
        (SlurmYaml(), "- topology: x\n  tree: {switches: 3}\n", "needs a list 'switches'"),
        (SlurmYaml(), "- tree: {}\n", "'topology' is missing"),
        (SlurmYaml(), "- topology: x\n  block: {blocks: [{nodes: a}]}\n", "'block' is missing"),
        (TopographModel(), "switches: {a: {switches: [b]}}", "'b' is not described"),
        (TopographModel(), "switches: [1]", "expected a mapping"),
        (NodeLabels(), "kind: Topology\nspec: {levels: []}\n", "names the labels of levels"),
        (NodeLabels(), '{"items": [{"metadata": {"labels": {}}}]}', "none of 1 nodes has a label"),
        (NodeLabels(), "NAME STATUS\nx y\n", "no column LABELS"),
    ],
)
def test_trees_that_cannot_be_trusted_are_refused(reader: Reader, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        _read(reader, text)
    assert caught.value.where
