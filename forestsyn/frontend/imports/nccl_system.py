"""NCCL's topology XML as values: hosts, CPUs, the PCIe tree, GPUs with their links, network ports.

Four dialects exist: full dumps of NCCL (version 1) and RCCL (version 2); static hints, whose GPUs and NICs are known
by their PCI class alone; and bare hints, which name bus addresses and nothing else.
"""

from __future__ import annotations

import re

from forestsyn.errors import InputError
from forestsyn.frontend.imports.nccl_speeds import PcieLink, pcie_link
from forestsyn.frontend.imports.xml_tree import Element, parse_xml

#: NCCL itself reads 256 elements.
MAXIMUM_ELEMENTS = 50_000
MAXIMUM_DEVICES = 1024

_SWITCH_CLASSES = ("0x068000",)
_CPU_CLASSES = ("0x068001",)
#: The address that stands for any NVSwitch.
_PART = re.compile(r"<(?:gpu|pci|cpu|nvlink|xgmi)\b[^<>]*>")
_RANK = re.compile(r'[^<>]{0,400}\brank="([0-9]{1,6})"')
_HEAD = 100_000
_ANY_SWITCH = re.compile(r"f{6,8}:ff:ff(\.[0-9a-f])?")


class Gpu:
    """A GPU: its place in the job, its architecture, its links by target."""

    def __init__(self, element: Element | None) -> None:
        given = element if element is not None else Element("gpu", {}, 0)
        self.stated = element is not None
        self.dev, self.rank = _number(given.get("dev")), _number(given.get("rank"))
        self.sm, self.gcn = _number(given.get("sm")), given.get("gcn")
        self.nvlinks = [_peer_link(child) for child in given.all("nvlink")]
        self.xgmi = [_peer_link(child) for child in given.all("xgmi")]
        self.c2c = [(_number(child.get("bw")) or 0, _number(child.get("count")) or 0) for child in given.all("c2c")]


class PeerLink:
    """So many links to a target; `kind` is switch, cpu or gpu."""

    def __init__(self, target: str, count: int, kind: str) -> None:
        self.target, self.count, self.kind = target, count, kind


class Pci:
    """A PCI device: a bridge with devices below, a GPU, or a NIC with its ports."""

    def __init__(self, element: Element, above: Pci | None) -> None:
        self.address = element.get("busid").lower()
        self.pci_class = element.get("class").lower()
        self.device = (element.get("vendor").lower(), element.get("device").lower())
        self.link: PcieLink | None = pcie_link(element)
        #: As written; "None" where the attribute is missing.
        self.speed_text = tuple(element.get(name, "None") for name in ("link_speed", "link_width"))
        self.line = element.line
        self.above = above
        self.below = [Pci(child, self) for child in element.all("pci")]
        self.side_links = len(element.all("pcilink"))
        gpus = element.all("gpu")
        self.ports = [port for nic in element.all("nic") for port in nic.all("net")] + element.all("net")
        self.gpu: Gpu | None = Gpu(gpus[0]) if gpus else None
        self.is_nic = bool(self.ports) or (not self.below and self.pci_class.startswith("0x02"))

    def everything(self) -> list[Pci]:
        """This device and all below it, in the order of the file."""
        found = [self]
        for child in self.below:
            found.extend(child.everything())
        return found


class Cpu:
    """A NUMA node: its PCI devices and the ports of NICs that have no PCI device."""

    def __init__(self, element: Element) -> None:
        self.element = element
        self.numa = _number(element.get("numaid"))
        self.host = element.get("host_hash")
        self.pci = [Pci(child, None) for child in element.all("pci")]
        self.ports = [port for nic in element.all("nic") for port in nic.all("net")] + element.all("net")


class System:
    """The whole file."""

    def __init__(self, root: Element) -> None:
        self.version = root.get("version")
        self.cpus = [Cpu(child) for child in root.all("cpu")]
        if not any(pci.gpu is not None for pci in self.pci()):
            for pci in self.pci():
                if not pci.below and pci.pci_class.startswith(("0x03", "0x12")):
                    pci.gpu = Gpu(None)

    def pci(self) -> list[Pci]:
        """All PCI devices."""
        return [pci for cpu in self.cpus for top in cpu.pci for pci in top.everything()]

    def counts(self) -> dict[str, int]:
        """How many GPUs and ports of NICs there are."""
        devices = self.pci()
        ports = sum(len(pci.ports) or pci.is_nic for pci in devices) + sum(len(cpu.ports) for cpu in self.cpus)
        return {"GPUs": sum(pci.gpu is not None for pci in devices), "ports of NICs": ports}

    def hosts(self) -> list[list[Cpu]]:
        """The CPUs of each host."""
        found: dict[str, list[Cpu]] = {}
        for cpu in self.cpus:
            found.setdefault(cpu.host, []).append(cpu)
        return list(found.values())


def read_system(text: str, *, source: str) -> System:
    """The system that `text` describes. Raises InputError."""
    if "<system" not in text and "<graphs" not in text and _PART.search(text[:_HEAD]) is not None:
        raise InputError(
            f"this is a part of a dump: its <system> is missing{_silent_gpus(text[:_HEAD])}",
            where=source,
            hint="give the whole file that NCCL_TOPO_DUMP_FILE writes",
        )
    root = parse_xml(text, source=source, maximum=MAXIMUM_ELEMENTS)
    if root.name == "graphs":
        raise InputError(
            "this is a graph file (NCCL_GRAPH_DUMP_FILE), which says what NCCL chose, not how the machine is built",
            where=source,
            hint="dump the topology instead: NCCL_TOPO_DUMP_FILE=system.xml",
        )
    if root.name != "system":
        raise InputError(f"the XML begins with <{root.name[:40]}>, expected <system>", where=source)
    if root.get("version") not in ("1", "2"):
        raise InputError(f"the version of the dump is '{root.get('version')[:20]}', expected 1 or 2", where=source)
    system = System(root)
    if not system.cpus:
        raise InputError("the system has no <cpu>", where=source, hint="the file may be cut short; dump it again")
    for what, count in system.counts().items():
        if count > MAXIMUM_DEVICES:
            raise InputError(f"the file has {count:,} {what}, expected at most {MAXIMUM_DEVICES:,}", where=source)
    return system


def _silent_gpus(text: str) -> str:
    """Which ranks of a part list no NVLink where others do, in words."""
    blocks: dict[str, bool] = {}
    for part in text.split("<gpu ")[1:]:
        body = part.partition("</gpu>")[0]
        if (match := _RANK.match(body)) is not None:
            blocks[match[1]] = "<nvlink" in body or "<xgmi" in body
    silent = [rank for rank, linked in blocks.items() if not linked]
    if not silent or len(silent) == len(blocks):
        return ""
    return f"; in it rank {', '.join(silent[:8])} lists no NVLink, and others do"


def _peer_link(element: Element) -> PeerLink:
    target, pci_class = element.get("target").lower(), element.get("tclass").lower()
    kind = "gpu"
    if pci_class in _SWITCH_CLASSES or _ANY_SWITCH.fullmatch(target):
        kind = "switch"
    elif pci_class in _CPU_CLASSES:
        kind = "cpu"
    return PeerLink(target, _number(element.get("count")) or 0, kind)


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else None
