"""`rocm-smi --showtopo`, `amd-smi topology` and `amd-smi xgmi`."""

from __future__ import annotations

import json

import pytest

from forestsyn.errors import InputError
from forestsyn.frontend.imports.amd_smi import AmdSmi, RocmSmi
from forestsyn.frontend.imports.kinds import Options
from tests.importing import ask_until_complete, topology_of

TITLES = {
    "weight": "========= Weight between two GPUs =========",
    "hops": "========= Hops between two GPUs =========",
    "type": "========= Link Type between two GPUs =========",
}


def _table(title: str, rows: list[list[str]], labels: list[str] | None = None) -> str:
    labels = labels or [f"GPU{number}" for number in range(len(rows))]
    lines = [title, "       " + "         ".join(labels)]
    lines += [f"{label}   " + "            ".join(row) for label, row in zip(labels, rows, strict=True)]
    return "\n".join(lines) + "\n\n"


def _full(size: int, diagonal: str, word: str) -> list[list[str]]:
    return [[diagonal if row == column else word for column in range(size)] for row in range(size)]


def _rocm(size: int, kind: str, weight: str, hops: str) -> str:
    return (
        _table(TITLES["weight"], _full(size, "0", weight))
        + _table(TITLES["hops"], _full(size, "0", hops))
        + _table(TITLES["type"], _full(size, "0", kind))
    )


def _hives() -> str:
    inside = [[row // 4 == column // 4 for column in range(8)] for row in range(8)]
    weights = [["15" if near else "72" for near in row] for row in inside]
    types = [["XGMI" if near else "PCIE" for near in row] for row in inside]
    for number in range(8):
        weights[number][number] = types[number][number] = "0"
    return _table(TITLES["weight"], weights) + _table(TITLES["type"], types)


def _json(size: int, kind: str, bandwidth: str) -> list[dict[str, object]]:
    return [
        {
            "gpu": one,
            "links": [
                {
                    "gpu": other,
                    "link_type": "SELF" if one == other else kind,
                    "num_hops": int(one != other),
                    "weight": 0 if one == other else 15,
                    "bandwidth": "N/A" if one == other else bandwidth,
                }
                for other in range(size)
            ],
        }
        for one in range(size)
    ]


def test_direct_links_take_the_rate_of_the_part() -> None:
    found, asked = ask_until_complete(RocmSmi(), _rocm(8, "XGMI", "15", "1"), source="r", gpu="mi300x")
    assert asked == ["--gpu"]
    assert len(topology_of(found).links) == 56
    assert found.document["links"][0]["part"] == "mi300x"
    assert all("1 link between two GPUs" in guess.text for guess in found.guesses)


def test_relayed_pairs_have_no_link() -> None:
    ring = [["15" if (row - column) % 4 in (1, 3) else "30" for column in range(4)] for row in range(4)]
    for number in range(4):
        ring[number][number] = "0"
    text = _table(TITLES["weight"], ring) + _table(TITLES["type"], _full(4, "0", "XGMI"))
    found, _ = ask_until_complete(RocmSmi(), text, source="r", gpu="mi50")
    assert len(topology_of(found).links) == 8
    assert any("2 pairs reach each other over xGMI through another GPU" in note for note in found.notes)


def test_two_hives_are_joined_by_pcie() -> None:
    found, asked = ask_until_complete(RocmSmi(), _hives(), source="r", gpu="mi100")
    assert asked == ["--gpu", "--pcie", "--socket"]
    assert found.document["cpus"] == 2
    assert topology_of(found).rank_count == 8


@pytest.mark.parametrize(("weight", "hops", "cpus"), [("40", "2", 1), ("52", "3", 4)])
def test_pcie_only(weight: str, hops: str, cpus: int) -> None:
    found, _ = ask_until_complete(RocmSmi(), _rocm(4, "PCIE", weight, hops), source="r")
    assert found.document["cpus"] == cpus


def test_numa_nodes_place_gpus() -> None:
    numa = "".join(f"GPU[{gpu}]\t\t: (Topology) Numa Node: {gpu // 2}\n" for gpu in range(4))
    found, _ = ask_until_complete(RocmSmi(), _rocm(4, "PCIE", "52", "3") + numa, source="r")
    assert found.document["cpus"] == 2


def test_mi250_needs_a_machine() -> None:
    text = _rocm(8, "XGMI", "15", "1")
    with pytest.raises(
        InputError, match="does not tell how many xGMI links join two GPUs, and that differs on mi250"
    ):
        ask_until_complete(RocmSmi(), text, source="r", gpu="mi250")
    found = RocmSmi().read(text, source="r", options=Options(machine="mi250x-8gcd"))
    assert topology_of(found).rank_count == 8


def test_more_links_than_the_part_has_are_refused() -> None:
    with pytest.raises(InputError, match="GPU0 would need 7 xGMI links, and mi100 has 3"):
        ask_until_complete(RocmSmi(), _rocm(8, "XGMI", "15", "1"), source="r", gpu="mi100")


def test_amd_smi_states_bandwidth() -> None:
    labels = [f"0000:{place:02x}:00.0" for place in range(4)]
    text = _table("LINK TYPE TABLE:", _full(4, "SELF", "XGMI"), labels)
    text += _table("NUMA BW TABLE:", _full(4, "N/A", "50000-100000"), labels)
    found, asked = ask_until_complete(AmdSmi(), text, source="a")
    assert asked == []
    assert {link.bandwidth for link in topology_of(found).links} == {100}


@pytest.mark.parametrize("trailing", [False, True])
def test_amd_smi_json(trailing: bool) -> None:
    text = "$ amd-smi topology --json\n" + json.dumps(_json(4, "XGMI", "76500-76500"), indent=2)
    if trailing:
        text = text.replace("}", "},").replace("},,", "},").rstrip(",")
    found, asked = ask_until_complete(AmdSmi(), text, source="a")
    assert asked == []
    assert {float(link.bandwidth) for link in topology_of(found).links} == {76.5}


def test_amd_smi_json_of_maps() -> None:
    names = ["gpu_0", "gpu_1"]
    value = [
        {
            "gpu": one,
            "weight": {name: 0 if place == one else 40 for place, name in enumerate(names)},
            "link_type": {name: "SELF" if place == one else "PCIE" for place, name in enumerate(names)},
        }
        for one in range(2)
    ]
    found, asked = ask_until_complete(AmdSmi(), json.dumps(value), source="a")
    assert asked == ["--pcie"]
    assert topology_of(found).rank_count == 2


def test_amd_smi_xgmi() -> None:
    text = "LINK METRIC TABLE:\n bdf bit_rate max_bandwidth link_type 0000:0c:00.0 0000:22:00.0\n"
    text += "GPU0   0000:0c:00.0 32 Gb/s  512 Gb/s  XGMI\n Read  N/A  2 KB\n Write N/A 1 KB\n"
    text += "GPU1   0000:22:00.0 32 Gb/s  512 Gb/s  XGMI\n Read  0 KB  N/A\n Write 0 KB N/A\n"
    found, asked = ask_until_complete(AmdSmi(), text, source="a")
    assert asked == []
    assert {link.bandwidth for link in topology_of(found).links} == {64}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (_table(TITLES["type"], _full(1, "0", "")), "1 GPU; a collective needs at least 2"),
        (_table(TITLES["weight"], _full(2, "0", "15")), "no table of link types"),
        (_table(TITLES["type"], _full(3, "0", "XXXX")), "is 'XXXX', expected XGMI or PCIE"),
        (
            _table(TITLES["weight"], _full(2, "0", "XGMI")) + _table(TITLES["type"], _full(2, "0", "XGMI")),
            "is 'XGMI', ",
        ),
        (_rocm(4, "XGMI", "15", "1").rpartition("GPU3")[0], "has 3 rows, expected 4"),
        (_rocm(2, "XGMI", "15", "1").replace("GPU1   XGMI            0", "GPU1   PCIE            0"), "back is PCIE"),
        ("ERROR: GPU[1]   : Cannot read Link Weight\n" + _rocm(2, "XGMI", "15", "1"), "reports a failure"),
        (TITLES["type"] + "\n GPU0 GPU1\nGPU0 0\n", "has 1 cells, expected 2"),
    ],
)
def test_tables_that_cannot_be_trusted_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        ask_until_complete(RocmSmi(), text, source="rocm.txt", gpu="mi300x")
    assert (caught.value.where or "").startswith("rocm.txt")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "not JSON"),
        ("[]", "0 GPUs"),
        ('[{"gpu": 0, "links": []}, {"gpu": 0, "links": []}]', "number of its own"),
        ('[{"gpu": 0, "links": []}, {"gpu": 1, "links": []}]', "no 'link_type'"),
        ("[\n...\n]", "abbreviated"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_json_that_cannot_be_trusted_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        AmdSmi().read(text, source="amd.json", options=Options())
