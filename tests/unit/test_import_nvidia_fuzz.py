"""Whatever the readers of GPU boxes are given: a valid document, questions, or a deliberate error, and soon."""

from __future__ import annotations

import contextlib
import json
import random
import time
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forestsyn.errors import InputError
from forestsyn.frontend.imports.amd_smi import AmdSmi, RocmSmi
from forestsyn.frontend.imports.hwloc_xml import HwlocXml
from forestsyn.frontend.imports.kinds import Options, Reader
from forestsyn.frontend.imports.nccl_xml import NcclXml
from forestsyn.frontend.imports.nvidia_topo import NvidiaHelper, NvidiaTopo
from forestsyn.frontend.imports.nvidia_words import WordsOnly
from forestsyn.frontend.imports.text import decode_bytes
from tests.importing import topology_of

SMI = """\
	GPU0	GPU1	GPU2	NIC0	NIC1	CPU Affinity	NUMA Affinity
GPU0	 X 	NV4	SYS	PIX	SYS	0-15,32-47	0
GPU1	NV4	 X 	PXB	PHB	SYS	0-15,32-47	0
GPU2	SYS	PXB	 X 	SYS	NODE	16-31,48-63	1
NIC0	PIX	PHB	SYS	 X 	SYS
NIC1	SYS	SYS	NODE	SYS	 X

NIC Legend:
  NIC0: mlx5_0
"""
NVLINK = """\
GPU 0: NVIDIA A100 (UUID: x)
 Link 0: 25 GB/s
 Link 1: <inactive>
 Link 2: Remote Device 0000:01:00.0: Link 1
"""
ROCM = """\
=== Weight between two GPUs ===
       GPU0         GPU1
GPU0   0            15
GPU1   15           0
=== Link Type between two GPUs ===
       GPU0         GPU1
GPU0   0            XGMI
GPU1   XGMI         0
GPU[0]  : (Topology) Numa Node: 0
GPU[1]  : (Topology) Numa Node: 1
"""
AMD = """\
LINK TYPE TABLE:
             0000:0c:00.0 0000:22:00.0
0000:0c:00.0 SELF         XGMI
0000:22:00.0 XGMI         SELF
NUMA BW TABLE:
             0000:0c:00.0 0000:22:00.0
0000:0c:00.0 N/A          50000-50000
0000:22:00.0 50000-50000  N/A
"""
AMD_JSON = json.dumps(
    [
        {"gpu": one, "links": [{"gpu": other, "link_type": "XGMI", "weight": 15, "num_hops": 1, "bandwidth": "N/A"}]}
        for one, other in ((0, 1), (1, 0))
    ]
)
XGMI = """\
LINK METRIC TABLE:
GPU0 0000:0c:00.0 32 Gb/s 512 Gb/s XGMI
 Read N/A 2 KB
GPU1 0000:22:00.0 32 Gb/s 512 Gb/s XGMI
 Read 0 KB N/A
"""
NCCL = """<system version="1">
<cpu numaid="0" host_hash="0x1" arch="x86_64" vendor="AuthenticAMD" familyid="25" modelid="1">
<pci busid="0000:01:00.0" class="0x060400" link_speed="16 GT/s" link_width="16">
<pci busid="0000:02:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"><gpu dev="0" sm="80" rank="0" gdr="1">
<nvlink target="fffffff:ffff:ff" count="12" tclass="0x068000"/></gpu></pci>
<pci busid="0000:03:00.0" class="0x020700" link_speed="" link_width="0"><nic>
<net name="mlx5_0" speed="200000"/></nic></pci>
</pci></cpu>
<cpu numaid="1" host_hash="0x1"><pci busid="0000:04:00.0" class="0x030200"><gpu dev="1" sm="80" rank="1">
<nvlink target="0000:02:00.0" count="4" tclass="0x030200"/><c2c bw="44712" count="5"/></gpu></pci></cpu>
</system>"""
HWLOC = """<topology version="2.0"><object type="Machine" gp_index="1"><object type="Package" gp_index="2">
<object type="Bridge" gp_index="3" bridge_type="0-1">
<object type="PCIDev" gp_index="4" pci_type="0302 [10de:20b0] [0:0] a1" pci_link_speed="31.507692"/>
<object type="PCIDev" gp_index="5" pci_type="0302 [10de:20b0] [0:0] a1" pci_link_speed="15.75"/>
<object type="PCIDev" gp_index="6" pci_type="0207 [15b3:1] [0:0] a1">
<object type="OSDev" gp_index="7" name="mlx5_0"/></object>
</object></object></object>
<distances2hetero name="NVLinkBandwidth"><indexes length="9">PCIDev:4 PCIDev:5 Package:2 </indexes>
<u64values length="9">9 25000 0 25000 9 40000 0 40000 9 </u64values></distances2hetero></topology>"""

CASES: dict[str, tuple[Reader, tuple[str, ...]]] = {
    "nvidia-smi-topo": (NvidiaTopo(), (SMI, SMI + NVLINK)),
    "nvidia-smi-nvlink": (NvidiaHelper(), (NVLINK,)),
    "rocm-smi-topo": (RocmSmi(), (ROCM,)),
    "amd-smi-topology": (AmdSmi(), (AMD, AMD_JSON, XGMI)),
    "nccl-xml": (NcclXml(), (NCCL, NCCL.replace("0x1", "0x2", 1))),
    "hwloc-xml": (HwlocXml(), (HWLOC,)),
    "words": (WordsOnly(), ("4x A100, one NIC\n", "=== System : maxBw 48.0 ===\n+ PCI[0.2] - PCI/0-65000 (1)\n")),
}
ANSWERS = Options(gpu="a100", pcie="gen4x16", nic="200G", socket="16GB/s", nvswitch=True)
PIECES = (
    *(
        "GPU1",
        "GPU99",
        "NIC0",
        "NV4",
        "NV999",
        "NVNV",
        "PIX",
        "X",
        "SYS",
        "\t",
        "\n",
        "N/A",
        "0-3",
        "-1",
        "999999999999",
        "|",
    ),
    *(
        "<",
        ">",
        "/>",
        '"',
        "&a;",
        "<gpu",
        "</pci>",
        "<pci>",
        "<!--",
        "0x068000",
        "count=",
        "gp_index=",
        "1e9",
        "\0",
        "\x1b[4m",
    ),
    *(
        "{",
        "[",
        "]",
        "null",
        "GPU 1: A100 (UUID: 1)",
        "Link 3: 99 GB/s",
        "0000:02:00.0",
        "XGMI",
        "PCIE",
        "50000-0",
        "é",
        "\ud800",
    ),
)
EDITS = st.lists(
    st.tuples(st.integers(0, 5000), st.integers(0, 20), st.sampled_from(PIECES) | st.text(max_size=3)),
    min_size=1,
    max_size=6,
)


def _survives(reader: Reader, text: str) -> None:
    """Only deliberate errors; and a document without open questions is valid."""
    assert 0 <= reader.recognizes("file", text[:2000]) <= 100
    for options in (Options(), ANSWERS):
        with contextlib.suppress(InputError):
            found = reader.read(text, source="fuzz", options=options)
            if not found.missing:
                assert topology_of(found).rank_count >= 2


@pytest.mark.parametrize("kind", CASES)
@settings(max_examples=200)
@given(data=st.data(), edits=EDITS)
def test_edited_files(kind: str, data: st.DataObject, edits: list[tuple[int, int, str]]) -> None:
    reader, samples = CASES[kind]
    text = data.draw(st.sampled_from(samples))
    for start, length, piece in edits:
        start %= len(text) + 1
        text = text[:start] + piece + text[start + length :]
    _survives(reader, text)


@pytest.mark.parametrize("kind", CASES)
@settings(max_examples=40)
@given(text=st.text(max_size=300) | st.lists(st.sampled_from(PIECES), max_size=60).map(" ".join))
def test_any_text(kind: str, text: str) -> None:
    _survives(CASES[kind][0], text)


@pytest.mark.parametrize("kind", CASES)
def test_the_wrong_kind_of_file(kind: str) -> None:
    for _, samples in CASES.values():
        for sample in samples:
            _survives(CASES[kind][0], sample)


@pytest.mark.parametrize("kind", CASES)
def test_characters_that_no_encoding_has(kind: str) -> None:
    reader, samples = CASES[kind]
    for sample in samples:
        for place in range(0, len(sample), max(1, len(sample) // 40)):
            _survives(reader, sample[:place] + "\ud800" + sample[place:])


@given(st.binary(max_size=400))
def test_any_bytes(data: bytes) -> None:
    with contextlib.suppress(InputError):
        decode_bytes(data, source="fuzz")


def _large(shape: str) -> str:
    if shape == "lines":
        return "GPU0\tX\n" * 5_000_000
    if shape == "rows":
        return SMI + "GPU0\tX\tNV4\tSYS\tPIX\tSYS\n" * 900_000
    if shape == "one line":
        return "\tGPU0 " + "GPU1 " * 1_500_000
    if shape == "columns":
        return "\t" + "\t".join(f"GPU{number}" for number in range(1000)) + "\n" + "GPU0\tX\tPIX\n" * 3
    if shape == "headers":
        return "\tGPU0\tGPU1\nGPU0\tX\tPIX\nGPU1\tPIX\tX\n\n" * 200_000
    if shape == "angles":
        return "<" * 3_000_000
    if shape == "gpus":
        return "<gpu " * 600_000
    if shape == "attributes":
        attributes = " ".join(f'a{number}="1"' for number in range(200_000))
        return f'<system version="1"><cpu {attributes}/></system>'
    if shape == "ports":
        ports = "".join(f'<net name="n{number}" speed="100000"/>' for number in range(30_000))
        return NCCL.replace('<net name="mlx5_0" speed="200000"/>', ports)
    if shape == "blanks":
        return " " * 20_000_000
    return "[" + "{}," * 3_000_000 + "{}]"


@pytest.mark.parametrize(
    "shape",
    ["lines", "rows", "one line", "columns", "headers", "angles", "gpus", "attributes", "ports", "blanks", "json"],
)
def test_huge_files_end_soon(shape: str) -> None:
    text = _large(shape)
    for reader, _ in CASES.values():
        start = time.process_time()
        with contextlib.suppress(InputError):
            reader.recognizes("file", text[:20_000])
            reader.read(text, source="huge", options=ANSWERS)
        assert time.process_time() - start < 6, reader.kind


def test_memory_stays_bounded() -> None:
    random.seed(0)
    tracemalloc.start()
    with contextlib.suppress(InputError):
        NvidiaTopo().read(_large("rows"), source="huge", options=ANSWERS)
    with contextlib.suppress(InputError):
        NcclXml().read("<system>" + "<pci/>" * 290_000 + "</system>", source="huge", options=ANSWERS)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**30
