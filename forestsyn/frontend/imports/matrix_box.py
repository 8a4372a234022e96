"""The PCIe side of a box: trees of switches and CPUs as devices and links, and which NICs are rails."""

from __future__ import annotations

from collections.abc import Sequence

from forestsyn.frontend.imports.answers import (
    nic_answer,
    pcie_answer,
    pcie_question,
    socket_answer,
    socket_question,
)
from forestsyn.frontend.imports.box import Box, Rate
from forestsyn.frontend.imports.kinds import Options
from forestsyn.frontend.imports.matrix_tree import SWITCHED, CpuGroup, Distance, SwitchGroup

Pairs = frozenset[frozenset[str]]

_NEAR_WORDS = {1: "PIX", 2: "PXB", 3: "PHB", 4: "NODE", 5: "SYS"}
_UPLINK = "the uplink of a PCIe switch is taken to be as wide as a device"


def add_pcie_tree(
    box: Box, cpus: Sequence[CpuGroup], names: dict[str, str], options: Options, apart: Pairs = frozenset()
) -> None:
    """Add CPUs, PCIe switches and their links; `names` are those of the devices, which `box` has already.

    `apart` are pairs without peer access. A switch none of whose pairs has it is written as two, one up and one
    down, so that all data takes the way over host memory, both ways over the uplink.
    """
    pcie = pcie_answer(options)
    if pcie is None:
        box.ask(pcie_question())
    hosts = [box.new("cpus", "cpu") for _ in cpus]
    for cpu, group in zip(hosts, cpus, strict=True):
        for device in group.devices:
            box.link(names[device], cpu, pcie)
        for switch in group.switches:
            (_add_staged if _all_apart(switch, apart) else _add_switch)(box, switch, cpu, names, pcie)
    join_cpus(box, hosts, options)


def join_cpus(box: Box, cpus: Sequence[str], options: Options) -> None:
    """Link every two CPUs, as NCCL supposes."""
    if len(cpus) < 2:
        return
    socket = socket_answer(options)
    if socket is None:
        box.ask(socket_question(options))
    if len(cpus) > 2:
        box.note(f"the {len(cpus)} NUMA nodes are taken to be fully linked; the file does not say how they are")
    for position, one in enumerate(cpus):
        for other in cpus[position + 1 :]:
            box.link(one, other, socket)


def _add_switch(box: Box, group: SwitchGroup, above: str, names: dict[str, str], pcie: Rate | None) -> None:
    switch = box.new("switches", "pcie")
    box.link(switch, above, pcie, _UPLINK)
    for device in group.devices:
        box.link(names[device], switch, pcie)
    for below in group.below:
        _add_switch(box, below, switch, names, pcie)


def _add_staged(box: Box, group: SwitchGroup, above: str, names: dict[str, str], pcie: Rate | None) -> None:
    """All devices below `group` on one switch up and one switch down."""
    up = box.new("switches", "up")
    down = box.new("switches", "down")
    box.link(up, above, pcie, _UPLINK, one_way=True)
    box.link(above, down, pcie, _UPLINK, one_way=True)
    for device in group.all_devices():
        box.link(names[device], up, pcie, one_way=True)
        box.link(down, names[device], pcie, one_way=True)


def _all_apart(group: SwitchGroup, apart: Pairs) -> bool:
    gpus = [device for device in group.all_devices() if device.startswith("GPU")]
    pairs = [frozenset((one, other)) for place, one in enumerate(gpus) for other in gpus[:place]]
    return bool(pairs) and all(pair in apart for pair in pairs)


def choose_rails(
    gpus: Sequence[str], nics: Sequence[str], distance: Distance, options: Options
) -> tuple[dict[str, list[str]], dict[str, str]]:
    """NICs that serve GPUs, with their nearest GPUs; and NICs to leave out, with the reason.

    A rail has a GPU on its PCIe switch. Where no NIC has, all that are nearest to some GPU count as rails.
    """
    nearest: dict[str, int] = {}
    peers: dict[str, list[str]] = {}
    for nic in nics:
        known = {gpu: level for gpu in gpus if (level := distance(nic, gpu)) is not None}
        if known:
            nearest[nic] = min(known.values())
            peers[nic] = [gpu for gpu, level in known.items() if level == nearest[nic]]
    limit = SWITCHED
    if nearest and min(nearest.values()) > SWITCHED:
        limit = min(nearest.values())
    rails: dict[str, list[str]] = {}
    left: dict[str, str] = {}
    for nic in nics:
        if nic not in nearest:
            left[nic] = "its distance to the GPUs is not given"
        elif nearest[nic] <= limit or options.all_nics:
            rails[nic] = peers[nic]
        else:
            left[nic] = f"{_NEAR_WORDS[nearest[nic]]} from every GPU: storage or management"
    return rails, left


def note_left_out(box: Box, left: dict[str, str]) -> None:
    """Say which NICs are not used, and why."""
    reasons: dict[str, list[str]] = {}
    for nic, reason in left.items():
        reasons.setdefault(reason, []).append(nic)
    for reason, nics in reasons.items():
        box.note(f"left out {', '.join(nics[:40])}: {reason}")


def add_direct_nics(
    box: Box, rails: dict[str, list[str]], gpus: Sequence[str], names: dict[str, str], options: Options
) -> None:
    """Link NICs with their nearest GPUs where GPUs do not need PCIe to reach each other.

    The PCIe paths between GPUs are left out: communication libraries take NVLink or xGMI wherever it leads.
    """
    rate = nic_answer(options)
    if not rails:
        return
    if rate is None:
        listed = ", ".join(list(rails)[:16])
        box.note(f"the speed of the NICs is not known, so they have no links: {listed}; give --nic to use them")
        return
    everywhere = all(len(near) == len(gpus) > 1 for near in rails.values())
    if everywhere and len(rails) == len(gpus):
        for nic, gpu in zip(rails, gpus, strict=True):
            box.link(names[nic], names[gpu], rate, "the file does not say which NIC is near which GPU; by number")
        return
    for nic, near in rails.items():
        for gpu in near:
            box.link(names[gpu], names[nic], rate)
