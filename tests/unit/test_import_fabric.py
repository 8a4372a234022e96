"""ibnetdiscover: records, cables, names; hosts and NICs composed with it."""

from __future__ import annotations

from fractions import Fraction

import pytest

from forestsyn.errors import InputError
from forestsyn.frontend.imports.compose import match_ports, usual_ports
from forestsyn.frontend.imports.compose_plain import machine_template
from forestsyn.frontend.imports.ibnetdiscover import IbNetDiscover, cables_of, read_records
from forestsyn.frontend.imports.kinds import Found, Guess, HostTemplate, Options
from forestsyn.frontend.native import load_topology
from tests.importing import topology_of

SWITCH = 'Switch 4 "S-01" # "MF0;leaf-{n}:MQM9700/U1" enhanced port 0 lid 1 lmc 0\n'


def _adapter(guid: str, host: str, device: str, switch: str, port: int, rate: str = "4xNDR") -> str:
    head = f'Ca 1 "H-{guid}" # "{host} {device}"\n'
    return head + f'[1]({guid}) \t"{switch}"[{port}] # lid 2 lmc 0 "MF0;leaf:MQM/U1" lid 1 {rate}\n\n'


def _fabric(rate: str = "4xNDR") -> str:
    text = 'vendid=0x2c9\nswitchguid=0x1(1)\nSwitch 65 "S-1" # "MF0;leaf1:MQM9701/U1" enhanced port 0 lid 1\n'
    text += f'[1] "H-a"[1](a) # "n0 mlx5_0" lid 3 {rate}\n[2] "H-c"[1](c) # "n1 mlx5_0" lid 4 {rate}\n'
    text += f'[9] "S-2"[9] # "MF0;leaf2:MQM9701/U1" lid 2 {rate}\n[8] "S-2"[8] # "x" lid 2 {rate}\n\n'
    text += 'Switch 65 "S-2" # "MF0;leaf2:MQM9701/U1" base port 0 lid 2\n'
    text += f'[1] "H-b"[1](b) # "n0 mlx5_1" lid 5 {rate}\n[9] "S-1"[9] # "leaf1" lid 1 {rate}\n\n'
    text += _adapter("a", "n0", "mlx5_0", "S-1", 1, rate) + _adapter("c", "n1", "mlx5_0", "S-1", 2, rate)
    return text + _adapter("b", "n0", "mlx5_1", "S-2", 1, rate)


def _box(*nics: str) -> HostTemplate:
    template = {
        "gpus": 2,
        "nics": list(nics),
        "links": [{"from": "gpu*", "to": list(nics), "bw": 50}, {"from": "gpu0", "to": "gpu1", "bw": 300}],
    }
    guess = Guess(("links", 0, "bw"), "guessed")
    return HostTemplate(pattern="*", name="box", template=template, ports=nics, guesses=(guess,))


def _read(text: str, *templates: HostTemplate, **answers: str | int) -> Found:
    return IbNetDiscover().read(text, source="ib.txt", options=Options(templates=templates, **answers))


def test_cables_listed_at_both_ends_or_one_count_once() -> None:
    records = read_records(_fabric(), source="ib.txt")
    assert len(cables_of(records, source="ib.txt")) == 5
    found = _read(_fabric(), _box("mlx5_0", "mlx5_1"))
    topology = topology_of(found)
    names = [vertex.name for vertex in topology.vertices]
    rates = {(names[link.tail], names[link.head]): link.bandwidth for link in topology.links}
    assert rates["leaf1", "leaf2"] == rates["leaf2", "leaf1"] == 100
    assert rates["n0/mlx5_1", "leaf2"] == 50
    assert ("n1/mlx5_1", "leaf2") not in rates


@pytest.mark.parametrize(
    ("rate", "expected"),
    [("4xEDR", "25/2"), ("4xHDR", "25"), ("4xFDR", "34/5"), ("4xXDR", "100"), ("1xSDR", "1/4"), ("2xNDR", "25")],
)
def test_rates_are_width_times_lane(rate: str, expected: str) -> None:
    topology = topology_of(_read(_fabric(rate), _box("mlx5_0", "mlx5_1")))
    fabric = {link.bandwidth for link in topology.links} - {50, 300}
    assert Fraction(expected) in fabric or Fraction(expected) == 50


def test_guesses_of_the_host_move_with_its_template() -> None:
    found = _read(_fabric(), _box("mlx5_0", "mlx5_1"))
    assert Guess(("templates", "box", "links", 0, "bw"), "guessed") in found.guesses


def test_a_host_that_misses_a_port_keeps_its_rails() -> None:
    found = _read(_fabric().replace('"n1 mlx5_0"', '"n1 mlx5_1"'), _box("ib0", "ib1"))
    links = {(str(entry["from"]), str(entry["to"])) for entry in found.document["fabric"]["links"]}
    assert any("n1/ib1" in tail and head == "leaf1" for tail, head in links)
    assert any("mlx5_0 is ib0, mlx5_1 is ib1" in note for note in found.notes)


def test_ports_without_a_nic_are_left_out_and_named() -> None:
    found = _read(_fabric(), _box("mlx5_0"))
    assert any(note.startswith("left out mlx5_1 (storage or management") for note in found.notes)


def test_hosts_without_a_kind_are_left_out_and_named() -> None:
    host = machine_template("dgx-h100", load_topology("dgx-h100:2"), pattern="n0")
    found = _read(_fabric(), host)
    assert found.document["hosts"] == [{"template": "dgx-h100", "count": 1}]
    assert any(note == "left out, for no --host is theirs: n1" for note in found.notes)


def test_what_hosts_hold_is_asked_for() -> None:
    found = _read(_fabric())
    assert [question.option for question in found.missing] == ["--host"]
    found = _read(_fabric(), gpus_per_host=2)
    assert [question.option for question in found.missing] == ["--gpu", "--nic"]
    found = _read(_fabric(), gpus_per_host=2, gpu="h100", nic="400G")
    assert topology_of(found).rank_count == 4


def test_aggregation_nodes_and_nameless_adapters_are_left_out() -> None:
    text = _fabric() + _adapter("e", "Mellanox Technologies", "Aggregation Node", "S-1", 65)
    text += _adapter("f", "MT4129 ConnectX7", "Mellanox Technologies", "S-1", 30)
    found = _read(text, _box("mlx5_0", "mlx5_1"))
    assert any("1 aggregation nodes" in note for note in found.notes)
    assert any("1 adapters that name no host, such as f" in note for note in found.notes)


def test_ports_are_matched_by_name_then_by_place() -> None:
    assert match_ports(["a", "b"], ["b", "a", "x"], []) == ({"b": "b", "a": "a"}, False)
    assert match_ports(["p", "q"], ["HCA-6"], ["HCA-1", "HCA-6"]) == ({"HCA-6": "q"}, True)
    ports = {"h0": ["m10", "m2"], "h1": ["m2", "m10", "m3"], "h2": ["eth"]}
    assert usual_ports(ports, 2) == {"m": ("m2", "m10"), "eth": ("eth",)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no switch and no adapter"),
        ('[1] "H-a"[1]\n', "before any switch"),
        ('Switch 4 "S"\n[1] "H-a"\n', "cannot read the port"),
        ('Switch 4 "S"\n[1] "S"[1]\n', "cabled to itself"),
        ('Switch 4 "S"\n[1] "H-a"[1]\n[2] "H-a"[1]\n', "cabled to two ports"),
        ('Switch 4 "S"\n\nSwitch 4 "S"\n', "described twice"),
        ('Ca 1 "H-a" # "n0 mlx5_0"\n', "no switch is listed"),
        ('Switch 4 "S"\n[1] "T"[1]\n', "no host"),
    ],
)
def test_text_that_cannot_be_trusted_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        _read(text, _box("mlx5_0"))
