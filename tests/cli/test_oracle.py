"""`bound --json` against exact bounds of real machines that were computed elsewhere."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.cli.conftest import Run

pytestmark = pytest.mark.shared


def _mesh(gpus: int, bandwidth: int) -> str:
    return f"forestsyn: 1\ngpus: {gpus}\nlinks:\n  - {{from: 'gpu*', to: 'gpu*', bw: {bandwidth}}}\n"


def _rails(box: str, hosts: int, rail: int, uplink: int | None) -> str:
    """`hosts` boxes whose GPU r is on rail switch r; every rail has `uplink` GB/s to one spine."""
    spine = "" if uplink is None else f"    - {{from: 'rail*', to: spine0, bw: {uplink}}}\n"
    return (
        f"forestsyn: 1\ntemplates:\n  box: {{use: {box}}}\n"
        f"hosts:\n  - {{template: box, count: {hosts}, prefix: n}}\n"
        f"fabric:\n  switches: {{rail: 8{'' if uplink is None else ', spine: 1'}}}\n  links:\n"
        f"    - {{from: 'n*/gpu{{r}}', to: 'rail{{r}}', bw: {rail}, for: {{r: 0..7}}}}\n{spine}"
    )


UNLIKE_HOSTS = """
forestsyn: 1
templates:
  a100: {use: hgx-a100}
  h100: {use: hgx-h100}
hosts:
  - {template: a100, names: a}
  - {template: h100, names: h}
fabric:
  switches: [bond-a, bond-h, net]
  links:
    - {from: "a/gpu*", to: bond-a, bw: 25}
    - {from: "h/gpu*", to: bond-h, bw: 25}
    - {from: "bond-*", to: net, bw: 25}
"""
ONE_SLOW_SLOT = """
forestsyn: 1
rates: nccl
gpus: 4
cpus: 1
links:
  - {from: "gpu[0-2]", to: cpu0, pcie: gen4x16}
  - {from: gpu3, to: cpu0, pcie: gen4x4}
"""

#: A catalog name, or the text of a file.
MACHINES = {
    "dgx1v (NVLink2 x 25)": "dgx1v",
    "dgx1v GPUs 0-3": "forestsyn: 1\nuse: dgx1v\nranks: 'n0/gpu[0-3]'\n",
    "dgx2 16xV100 switch": "dgx2",
    "hgx a100 switch": "hgx-a100",
    "hgx h100 switch": "hgx-h100",
    "nvl72 switch": "gb200-nvl72",
    **{f"mi300x {count} of 8 (64/link)": _mesh(count, 64) for count in range(2, 8)},
    "mi300x 8 of 8 (64/link)": "mi300x",
    "mi350x 8 (76 per link; 76.5 rounded down)": _mesh(8, 76),
    "gaudi2 box internal (3x12.5=37.5 -> unit 0.5: 75)": _mesh(8, 75),
    "gaudi3 box internal (3x25=75)": "gaudi3",
    "4xH100 NV6 mesh": "4xh100-nv6",
    "mi250 16 GCD (50/link)": "mi250",
    "a100 2 nodes, 8 rails x25, full spine": _rails("hgx-a100", 2, 25, 50),
    "a100 4 nodes": "dgx-a100:4",
    "h100 2 nodes, 8 rails x50": "dgx-h100:2",
    "h100 4 nodes": "dgx-h100:4",
    "a100 2 nodes, 8 rails, NO spine (rail-only)": _rails("hgx-a100", 2, 25, None),
    "h100 4 nodes, leaf uplink 1/4 (4:1 oversubscribed)": _rails("hgx-h100", 4, 50, 50),
    "forestcoll a100 x2 (2 IB planes)": "dgx-a100:2",
    "dgxA100+dgxH100 over one 2x100GbE bond": UNLIKE_HOSTS,
    "4x3090 PCIe gen4 x16, one host bridge": "4x3090",
    "4x3090, one at x4": ONE_SLOW_SLOT,
    "4x3090 two NV4 pairs over AMD sockets (16)": "4x3090-nvlink",
    "tpu v4 4x4x4 torus (50/link)": "tpu-v4:4x4x4",
    "2 sites, WAN 80 Gb/s (10 GB/s)": "cross-dc",
}


def _rows(shared: Path) -> dict[str, dict[str, str]]:
    with open(shared / "data" / "oracles" / "allgather_bounds.tsv", encoding="utf-8") as stream:
        return {row["name"]: row for row in csv.DictReader(stream, delimiter="\t")}


def test_no_row_is_left_out(shared: Path) -> None:
    assert set(_rows(shared)) == set(MACHINES)


@pytest.mark.parametrize("name", MACHINES)
def test_the_bound_is_the_oracle_s(run: Run, shared: Path, tmp_path: Path, name: str) -> None:
    row = _rows(shared)[name]
    spec: str | Path = MACHINES[name]
    if "\n" in str(spec):
        (tmp_path / "machine.yaml").write_text(str(spec))
        spec = tmp_path / "machine.yaml"
    data = run("bound", spec, "--json").data
    assert data["ranks"] == int(row["ranks"])
    assert data["inverse_rate"] == row["inverse_rate (s per GB of shard)"]
    assert f"{data['algbw_GBps']:.2f}" == row["allgather_algbw_GBps"]
