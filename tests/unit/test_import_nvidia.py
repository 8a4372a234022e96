"""`nvidia-smi topo -m`: layouts that people paste, the switch rule, PCIe trees, rails, helpers, refusals."""

from __future__ import annotations

from fractions import Fraction

import pytest

from forestsyn.errors import InputError
from forestsyn.frontend.imports.box import names_pattern
from forestsyn.frontend.imports.kinds import Found, Helper, Options, Question, require_answers
from forestsyn.frontend.imports.matrix import find_matrices
from forestsyn.frontend.imports.models import guess_model
from forestsyn.frontend.imports.nvidia_topo import NvidiaHelper, NvidiaTopo
from forestsyn.frontend.imports.text import decode_bytes, split_lines
from forestsyn.ir.topology import Topology
from tests.importing import ask_until_complete, topology_of

READER = NvidiaTopo()

PAIR = """\
        GPU0    GPU1    NIC0    NIC1    CPU Affinity    NUMA Affinity   GPU NUMA ID
GPU0     X      NV4     PIX     SYS     0-15,32-47      0               N/A
GPU1    NV4      X      SYS     PIX     16-31,48-63     1               N/A
NIC0    PIX     SYS      X      SYS
NIC1    SYS     PIX     SYS      X

NIC Legend:

  NIC0: mlx5_0
  NIC1: mlx5_3
"""
FOUR = """\
        GPU0    GPU1    GPU2    GPU3
GPU0     X      PIX     PXB     SYS
GPU1    PIX      X      PXB     SYS
GPU2    PXB     PXB      X      SYS
GPU3    SYS     SYS     SYS      X
"""


def _matrix(words: list[list[str]]) -> str:
    size = len(words)
    head = "\t".join(["", *(f"GPU{number}" for number in range(size))])
    rows = ["\t".join([f"GPU{row}", *words[row]]) for row in range(size)]
    return "\n".join([head, *rows]) + "\n"


def _full(size: int, word: str) -> str:
    return _matrix([[" X " if row == column else word for column in range(size)] for row in range(size)])


def _read(text: str, **options: object) -> Found:
    found = READER.read(text, source="smi.txt", options=Options(**options))
    require_answers(found, source="smi.txt")
    return found


def _links(topology: Topology) -> dict[tuple[str, str], Fraction]:
    names = [vertex.name for vertex in topology.vertices]
    return {(names[link.tail], names[link.head]): link.bandwidth for link in topology.links}


def _same(text: str, other: str) -> None:
    options = Options(gpu="3090", nic="200G", pcie="gen4x16", socket="16GB/s")
    first = READER.read(text, source="smi.txt", options=options)
    second = READER.read(other, source="smi.txt", options=options)
    assert first.document == second.document


LAYOUTS = {
    "tabs": lambda text: "\n".join("\t".join(line.split()) for line in text.splitlines()),
    "carriage returns": lambda text: text.replace("\n", "\r\n"),
    "colours": lambda text: "\x1b[4m" + text.replace("\n", "\x1b[0m\n", 1),
    "indented": lambda text: "\n".join("      " + line for line in text.splitlines()),
    "quoted": lambda text: "\n".join("> " + line for line in text.splitlines()),
    "fenced": lambda text: f"Here it is:\n```\n{text}```\nThanks\n",
    "prompt": lambda text: f"root@node:~# nvidia-smi topo -m\n{text}root@node:~#\n",
    "byte order mark": lambda text: "\ufeff" + text,
    "hard blanks": lambda text: text.replace(" ", "\u00a0"),
    "markdown": lambda text: "\n".join(
        "| " + " | ".join(line.split()) + " |" + ("\n|---|---|" if number == 0 else "")
        for number, line in enumerate(text.splitlines())
    ),
    "rows reversed": lambda text: "\n".join([text.splitlines()[0], *reversed(text.splitlines()[1:5])]),
    "lower case words": lambda text: text.replace("PIX", "pix").replace("NV4", "nv4"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_one_matrix_read_alike(layout: str) -> None:
    text = "\n".join(PAIR.splitlines()[:5])
    _same(text, LAYOUTS[layout](text))


def test_rows_that_the_terminal_wrapped_read_alike() -> None:
    wrapped = PAIR.replace("NV4     PIX     SYS     0-15,32-47", "NV4     PIX\n        SYS     0-15,32-47")
    _same(PAIR, wrapped)


def test_encodings() -> None:
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"):
        text = decode_bytes(PAIR.encode(encoding), source="smi.txt")
        _same(PAIR, text)
    for junk in (b"\x7fELF\x02\x01\x01\x00\x00\x00\x00", b"\xff\xfe\x00", b"\x80abc", b"\x1f\x8b\x08" + bytes(40)):
        with pytest.raises(InputError):
            decode_bytes(junk, source="smi.bin")


def test_legend_names_nics_and_affinity_parts_sockets() -> None:
    found = _read(PAIR, gpu="3090", nic="200G")
    assert found.document["nics"] == ["mlx5_0", "mlx5_3"]
    assert ("gpu1", "mlx5_3") in {(entry["from"], entry["to"]) for entry in found.document["links"]}
    (matrix,) = find_matrices(split_lines(PAIR, source="x"), source="x")
    assert matrix.numa_affinity == {"GPU0": "0", "GPU1": "1"}
    assert matrix.cpu_affinity["GPU1"] == "16-31,48-63"


@pytest.mark.parametrize(
    ("size", "word", "model", "switched"),
    [
        (8, "NV12", "a100", True),
        (4, "NV4", "a100", False),
        (4, "NV6", "h100", False),
        (8, "NV18", "b200", True),
        (16, "NV6", "v100", True),
        (8, "NV8", "h800", True),
        (2, "NV18", "h100", False),
        (3, "NV18", "h100", True),
    ],
)
def test_links_lead_to_a_switch_exactly_when_they_cannot_be_direct(
    size: int, word: str, model: str, switched: bool
) -> None:
    found = _read(_full(size, word), gpu=model)
    assert ("nvsw" in found.document.get("switches", [])) == switched
    assert topology_of(found).rank_count == size


def test_the_user_decides_about_the_switch() -> None:
    assert "switches" in _read(_full(2, "NV4"), gpu="a100", nvswitch=True).document
    with pytest.raises(InputError, match=r"gpu0 would need 84 links from GPU to GPU, and a100 has 12"):
        _read(_full(8, "NV12"), gpu="a100", nvswitch=False)


def test_remote_devices_tell_a_switch() -> None:
    remote = "".join(
        f"GPU {gpu}: NVIDIA A100-SXM4-80GB (UUID: GPU-{gpu})\n"
        + "".join(f"\t Link {link}: Remote Device 00000000:C{link % 2}:00.0: Link {gpu}\n" for link in range(4))
        for gpu in range(2)
    )
    found = _read(_full(2, "NV4"), helpers=(Helper("r.txt", remote),))
    assert found.document["switches"] == ["nvsw"]


def test_a_gpu_with_fewer_links_is_named() -> None:
    words = [["NV12"] * 8 for _ in range(8)]
    for peer in range(8):
        words[3][peer] = words[peer][3] = "NV11"
        words[peer][peer] = "X"
    found = _read(_matrix(words), gpu="a100")
    assert any("gpu3 has 11 links to the switch, its siblings 12" in note for note in found.notes)
    speeds = _links(topology_of(found))
    assert speeds["gpu3", "nvsw"] == 275
    assert speeds["gpu0", "nvsw"] == 300


@pytest.mark.parametrize(
    ("text", "model", "message"),
    [
        (_full(8, "NV12"), "v100", "gpu0 would need 12 links in any way, and v100 has 6"),
        (_full(2, "NV4"), "4090", "4090 has none"),
        (_full(2, "NV4"), "b99", "no GPU model 'b99' is known"),
        (_full(4, "NV4"), "a100,a100", "2 models are given for 4 GPUs"),
    ],
)
def test_models_that_do_not_fit_are_refused(text: str, model: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        _read(text, gpu=model)


def test_the_least_tree_of_switches() -> None:
    found = _read(FOUR, pcie="gen4x16", socket="16GB/s")
    speeds = _links(topology_of(found))
    pairs = {frozenset(pair) for pair in speeds}
    expected = ("gpu0 pcie1", "gpu1 pcie1", "pcie1 pcie0", "gpu2 pcie0", "pcie0 cpu0", "gpu3 cpu1", "cpu0 cpu1")
    assert pairs == {frozenset(pair.split()) for pair in expected}
    assert speeds["cpu0", "cpu1"] == 16
    assert any("uplink" in guess.text for guess in found.guesses)


def test_only_what_is_needed_is_asked() -> None:
    asked = {text: ask_until_complete(READER, text, source="smi.txt")[1] for text in (FOUR, _full(8, "NV12"))}
    assert asked[FOUR] == ["--pcie", "--socket"]
    assert asked[_full(8, "NV12")] == ["--gpu"]
    assert ask_until_complete(READER, _full(2, "PHB"), source="smi.txt")[1] == ["--pcie"]
    text = "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-0)\nGPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-1)\n"
    assert ask_until_complete(READER, text + _full(2, "NV12"), source="smi.txt")[1] == []


def test_questions_name_options_and_choices() -> None:
    with pytest.raises(InputError) as caught:
        _read(_full(8, "NV12"))
    assert "--gpu" in caught.value.message
    assert "a100" in (caught.value.hint or "")
    question = Question("--pcie", "which PCIe it is", ())
    with pytest.raises(InputError, match=r"which PCIe it is \(--pcie\)"):
        require_answers(Found(kind="x", document={}, missing=(question,)), source="x")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pcie": "gen9x16"}, "--pcie"),
        ({"pcie": "gen4x16", "socket": "a wire"}, "--socket"),
        ({"pcie": "gen4x16", "socket": "16GB/s", "rates": "guess"}, "--rates"),
    ],
)
def test_bad_answers_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        _read(FOUR, **options)
    assert caught.value.where == message


def test_answers_in_several_spellings() -> None:
    for pcie in ("gen4x16", "Gen4 x16", "gen4", "4x16", "PCIe 4.0 x16"):
        assert "pcie" in _read(FOUR, pcie=pcie, socket="xgmi-milan").document["links"][0]
    for nic in ("200G", "200", "200Gb/s", "200 Gbps", "25 GB/s"):
        speeds = _links(topology_of(_read(PAIR, gpu="3090", nic=nic)))
        assert speeds["gpu0", "gpu1"] == Fraction("56.25")


def test_storage_nics_are_left_out() -> None:
    text = PAIR.replace("GPU0     X      NV4     PIX", "GPU0     X      NV4     SYS").replace(
        "NIC0    PIX ", "NIC0    SYS "
    )
    found = _read(text, gpu="3090", nic="200G")
    assert "nic0" not in str(found.document)
    assert any("left out NIC0: SYS from every GPU" in note for note in found.notes)
    assert "mlx5_0" in str(_read(text, gpu="3090", nic="200G", all_nics=True).document)


def test_nics_far_from_all_gpus_are_paired_by_number_as_a_guess() -> None:
    text = _full(2, "NV18").replace("GPU1\n", "GPU1\tNIC0\tNIC1\n").replace("NV18\n", "NV18\tSYS\tSYS\n")
    text = text.replace(" X \n", " X \tSYS\tSYS\n")
    found = _read(text, gpu="gb200", nic="400G")
    assert any("by number" in guess.text for guess in found.guesses)


def test_peer_access_switches_links_off() -> None:
    blocked = _full(2, "CNS")
    found = _read(_full(2, "NV4"), gpu="3090", pcie="gen4x16", helpers=(Helper("p2p.txt", blocked),))
    assert "nvlink" not in str(found.document)
    staged = _read(_full(2, "PIX"), pcie="gen4x16", helpers=(Helper("p2p.txt", blocked),))
    assert topology_of(staged).rank_count == 2
    assert [entry.get("dir") for entry in staged.document["links"]] == ["one-way"] * 4
    open_ = _read(_full(2, "PIX"), pcie="gen4x16", helpers=(Helper("p2p.txt", _full(2, "OK")),))
    assert "one-way" not in str(open_.document)


def test_inactive_links_are_told() -> None:
    status = "GPU 0: Tesla V100-SXM2-32GB (UUID: 1)\n  Link 0: 25.781 GB/s\n  Link 1: <inactive>\n"
    status += "GPU 1: Tesla V100-SXM2-32GB (UUID: 2)\n  Link 0: 25.781 GB/s\n"
    found = _read(_full(2, "NV1"), helpers=(Helper("s.txt", status),))
    assert "GPU0 (Tesla V100-SXM2-32GB): 1 of 2 NVLinks inactive: 1" in found.notes
    assert found.document["links"][0]["part"] == "v100"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no matrix"),
        ("hello\nworld\n", "no matrix"),
        (_full(1, "X"), "1 GPU; a collective needs at least 2"),
        (_full(2, "MPB"), "the word 'MPB', which nvidia-smi does not print"),
        (_full(2, "NV4").replace("GPU1\tNV4", "GPU1\tNV3"), "is NV4 and GPU1 to GPU0 is NV3"),
        (_full(3, "PHB").replace("GPU1\tPHB\t X ", "GPU1\t X \tPHB"), "self mark X of the row GPU1 is under GPU0"),
        (_full(2, "PHB").replace("GPU1\tPHB\t X ", "GPU1\tPHB\tPHB"), "self mark X of the row GPU1 is missing"),
        (_full(2, "PHB").replace(" X \n", " X \tPHB\n"), "has 3 cells, expected 2"),
        (_full(2, "PHB") + "GPU1\tPHB\t X \n", "GPU1 is given twice"),
        (_full(2, "PHB") + "\n" + _full(2, "SYS"), "2 different matrices"),
        ("\tGPU0\tGPU0\nGPU0\tX\tPHB\n", "stands twice"),
        ("".join(_full(4, "PHB").splitlines(keepends=True)[:3]), "rows of GPU3 are missing"),
    ],
)
def test_what_cannot_be_trusted_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        _read(text, pcie="gen4x16", socket="16GB/s", gpu="a100")
    assert caught.value.where
    assert caught.value.where.startswith("smi.txt")


def test_two_equal_matrices_are_one() -> None:
    assert _read(_full(2, "PHB") * 2, pcie="gen4x16").document["gpus"] == 2


def test_a_machine_of_the_catalog_instead() -> None:
    found = _read(_full(8, "NV12"), machine="dgx-a100")
    assert found.document["use"] == "dgx-a100"
    assert topology_of(found).rank_count == 8


def test_helpers_alone_are_refused_with_what_they_tell() -> None:
    text = "GPU 3: Tesla V100-SXM2-32GB (UUID: x)\n Link 0: 25.781 GB/s\n Link 1: <inactive>\n"
    with pytest.raises(InputError, match=r"1 active NVLinks at 25.781 GB/s, 1 inactive \(1\)"):
        NvidiaHelper().read(text, source="s.txt", options=Options())
    assert NvidiaHelper().recognizes("s.txt", text) > READER.recognizes("s.txt", text)
    assert NvidiaHelper().helps == READER.kind


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("Tesla V100-SXM2-32GB", "v100"),
        ("NVIDIA GeForce RTX 3090", "3090"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA GB200", "gb200"),
        ("NVIDIA RTX A6000", "a6000"),
        ("AMD Instinct MI300X OAM", "mi300x"),
        ("NVIDIA L40S", "l40s"),
        ("Matrox G200", None),
    ],
)
def test_names_of_gpus(text: str, name: str | None) -> None:
    model = guess_model(text)
    assert (model.name if model is not None else None) == name


def test_patterns_of_names() -> None:
    assert names_pattern(["gpu0", "gpu1", "gpu2", "nvsw", "gpu5", "mlx5_1"]) == ["gpu[0-2,5]", "nvsw", "mlx5_1"]


def test_the_shared_sizes_are_limited() -> None:
    with pytest.raises(InputError, match="more than 100,000 lines"):
        _read("\n" * 3_000_000)
    with pytest.raises(InputError, match="more than 512 devices"):
        _read(_full(2, "PHB").replace("GPU1\n", "GPU1\t" + "\t".join(f"GPU{n}" for n in range(2, 2000)) + "\n", 1))
