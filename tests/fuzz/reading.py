"""What a fuzzed text must do: be read, or be refused by an InputError with a place."""

from __future__ import annotations

import msgspec

from forestsyn.errors import ForestsynError, InputError
from forestsyn.frontend.imports.kinds import Options, Reader
from forestsyn.frontend.imports.text import decode_bytes
from forestsyn.frontend.imports.writing import document_text
from forestsyn.frontend.native import found_topology, parse_topology
from tests.importing import FABRIC_ANSWERS, USUAL_ANSWERS

#: Small pieces of every format, from which mutation starts.
SEEDS: dict[str, str] = {
    "ibnetdiscover": 'Switch 4 "S-1" # "MF0;leaf1:M/U1" base\n[1] "H-a"[1](a) # "n0 mlx5_0" lid 3 4xNDR\n[2] '
    '"H-b"[1](b) # "n1 mlx5_0" lid 3 4xHDR\n\nCa 1 "H-a" # "n0 mlx5_0"\n[1](a) "S-1"[1] # lid 1 4xNDR\n\n'
    'Ca 1 "H-b" # "n1 mlx5_0"\n',
    "slurm-topology": "SwitchName=s0 Nodes=a[1-2]\nSwitchName=s1 Nodes=b1\nSwitchName=t Switches=s[0-1]\n",
    "slurm-topology-yaml": '- topology: x\n  tree:\n    switches:\n      - {switch: s, nodes: "a[1-2]"}\n',
    "topograph-model": 'switches:\n  s: {nodes: ["a[1-2]"]}\nblocks:\n  - {switch: s, nodes: [b]}\n',
    "kubernetes-labels": '{"kind": "List", "items": [{"metadata": {"name": "a", "labels": '
    '{"fabric.topograph.run/tier-1": "s"}}}]}',
    "astra-network": "topology: [ Ring, Switch ]\nnpus_count: [ 2, 3 ]\nbandwidth: [ 50.5, 25 ]\n",
    "simai-topology": "3 2 1 0 2 H100\n2\n0 2 2400Gbps 0.0005ms 0\n1 2 2400Gbps 0.0005ms 0\n",
    "ns3-topology": "3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n",
    "htsim-topology": "Nodes 4\nTiers 2\nPodsize 4\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 2\nRadix_Up 2\n"
    "Tier 1\nDownlink_speed_Gbps 100\nRadix_Down 2\n",
    "taccl-topology": '{"name": "DGX2_1MB", "gpus_per_node": 4, "nics_per_node": 2, "alpha": 0.3, '
    '"node_betas_list": [8], "remote_beta": 105, "remote_alpha": 2.6}',
    "taccl-sketch": '{"intranode_sketch": {}}',
    "teccl-input": '{"TopologyParams": {"name": "Mesh", "side_length": 2, "chassis": 1}}',
    "graph-json": '{"directed": false, "multigraph": false, "graph": {}, "nodes": [{"id": 1, "t": "g"}, {"id": 2}], '
    '"links": [{"source": 1, "target": 2, "cap": 1.5}]}',
    "graph-gml": "graph [\n node [ id 1 ]\n node [ id 2 ]\n edge [ source 1 target 2 cap 12.5 ]\n]",
    "graph-graphml": '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="undirected">'
    '<node id="1"/><node id="2"/><edge source="1" target="2"/></graph></graphml>',
    "graph-dot": 'graph g {\n a [t="x"]; a -- b [cap="12.5"];\n}',
    "ibstat": "VM_hostname a\n0ff08c4321664e96\n",
    "host-list": "a\nb\n",
    "nvidia-smi-topo": "\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\t X \n",
    "nvidia-smi-nvlink": "GPU 0: A100 (UUID: GPU-1)\n\t Link 0: 25 GB/s\n",
    "rocm-smi-topo": "==== Link Type between two GPUs ====\n       GPU0  GPU1\nGPU0   0  XGMI\nGPU1   XGMI  0\n",
    "nccl-xml": '<system version="1"><cpu numaid="0"><pci busid="0000:01:00.0" class="0x030200" link_speed="16 GT/s" '
    'link_width="16"><gpu dev="0" sm="80" rank="0"/></pci></cpu></system>',
    "hwloc-xml": '<topology version="2.0"><object type="Machine" gp_index="1"/></topology>',
}


def check_bytes(reader: Reader, data: bytes) -> None:
    """Decode `data` and read it; answer what is asked; a complete document must expand, or be refused in words."""
    try:
        check_text(reader, decode_bytes(data, source="fuzz"))
    except ForestsynError:
        return


def check_text(reader: Reader, text: str) -> None:
    """Read `text` with every answer given."""
    assert 0 <= reader.recognizes("fuzz", text[:20_000]) <= 100
    options = Options()
    try:
        for _ in range(6):
            found = reader.read(text, source="fuzz", options=options)
            if not found.missing:
                break
            options = _answered(options, [question.option for question in found.missing])
        else:
            raise AssertionError("the reader keeps asking")
    except InputError as error:
        if not error.where:
            raise AssertionError(f"no place: {error}") from error
        return
    try:
        topology = found_topology(found.document, "fuzz")
    except ForestsynError:
        return
    assert parse_topology(document_text(found), source="fuzz") == topology


def _answered(options: Options, asked: list[str]) -> Options:
    for option in asked:
        if option in FABRIC_ANSWERS:
            field, value = FABRIC_ANSWERS[option]
        else:
            field, value = option.removeprefix("--"), USUAL_ANSWERS[option]
        options = msgspec.structs.replace(options, **{field: value})
    return options
