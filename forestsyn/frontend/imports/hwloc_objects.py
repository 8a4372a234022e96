"""hwloc's XML as values: PCI devices with their bridges, what they are, and matrices of bandwidth."""

from __future__ import annotations

import re
from fractions import Fraction

from forestsyn.errors import InputError
from forestsyn.frontend.imports.xml_tree import Element, parse_xml

MAXIMUM_OBJECTS = 512
MAXIMUM_ELEMENTS = 100_000

_PCI_TYPE = re.compile(r"([0-9a-fA-F]{4})(?: \[([0-9a-fA-F]{4}):([0-9a-fA-F]{4})\])?.*")
_SPEED = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,9})?")
_RDMA = re.compile(r"(mlx[0-9]+_|hfi|qib|opa|cxi|hsn|bnxt_re|irdma|rdmap|efa|rocep|ibp|bxi|usnic)")
_COMPUTE = re.compile(r"(cuda|nvml|rsmi|opencl|ze)[0-9]")
_GPU_VENDORS = ("10de", "1002")
#: GB/s of one lane, as hwloc computes them.
_LANES = ((1, "0.25"), (2, "0.5"), (3, "0.984615"), (4, "1.969231"), (5, "3.938462"), (6, "7.562500"))


class Device:
    """A PCI device or bridge; `above` is the bridge over it, `home` the CPU-side object that holds it."""

    def __init__(self, element: Element, above: Device | None, home: Element) -> None:
        self.element, self.above, self.home = element, above, home
        self.below: list[Device] = []
        match = _PCI_TYPE.fullmatch(element.get("pci_type"))
        self.pci_class = match[1].lower() if match is not None else ""
        self.vendor = (match[2] or "").lower() if match is not None else ""
        self.os_names = [child.get("name") for child in element.all("object") if child.get("type") == "OSDev"]
        self.speed = _speed(element.get("pci_link_speed"))

    @property
    def is_gpu(self) -> bool:
        """A GPU for computing: of a vendor of such, or with a device of CUDA, ROCm or OpenCL."""
        compute = any(_COMPUTE.match(name) for name in self.os_names)
        return self.pci_class[:2] in ("03", "12") and (compute or self.vendor in _GPU_VENDORS)

    @property
    def is_switch_chip(self) -> bool:
        """An NVSwitch."""
        return self.element.get("subtype") == "NVSwitch" or (self.pci_class == "0680" and self.vendor == "10de")

    @property
    def rdma_name(self) -> str | None:
        """The name of a NIC that GPUs can use; None for other devices."""
        if not self.pci_class.startswith("02"):
            return None
        return next((name for name in self.os_names if _RDMA.match(name)), None)

    def model(self) -> str | None:
        """What the driver calls the GPU."""
        for child in self.element.all("object"):
            for info in child.all("info"):
                if info.get("name") == "GPUModel":
                    return info.get("value")
        return None


class Topology:
    """All devices in the order of the file, and the matrices by name."""

    def __init__(self, root: Element) -> None:
        self.devices: list[Device] = []
        self.by_index: dict[str, Element | Device] = {}
        for child in root.all("object"):
            self._walk(child, None, child)
        self.matrices = [child for child in root.children if child.name in ("distances2", "distances2hetero")]

    def _walk(self, element: Element, bridge: Device | None, home: Element) -> None:
        kind = element.get("type")
        if kind in ("Bridge", "PCIDev"):
            device = Device(element, bridge, home)
            self.devices.append(device)
            if bridge is not None:
                bridge.below.append(device)
            self.by_index[element.get("gp_index")] = device
            bridge = device
        elif kind == "OSDev" and bridge is not None:
            self.by_index[element.get("gp_index")] = bridge
        else:
            self.by_index[element.get("gp_index")] = element
            home = element if kind in ("Machine", "Package", "NUMANode", "Group") else home
        for child in element.all("object"):
            self._walk(child, bridge, home)


def read_hwloc(text: str, *, source: str) -> Topology:
    """The topology that `lstopo file.xml` wrote. Raises InputError."""
    root = parse_xml(text, source=source, maximum=MAXIMUM_ELEMENTS)
    if root.name != "topology":
        raise InputError(f"the XML begins with <{root.name[:40]}>, expected <topology>", where=source)
    topology = Topology(root)
    for what, count in (
        ("GPUs", sum(device.is_gpu for device in topology.devices)),
        ("NICs", sum(device.rdma_name is not None for device in topology.devices)),
    ):
        if count > MAXIMUM_OBJECTS:
            raise InputError(f"the file has {count:,} {what}, expected at most {MAXIMUM_OBJECTS:,}", where=source)
    return topology


def bandwidth_matrix(element: Element, source: str) -> tuple[list[str], list[int]]:
    """The indexes (without their types) and the values, row by row, of a matrix. Raises InputError."""
    indexes = [token.rpartition(":")[2] for part in element.all("indexes") for token in part.text.split()]
    values = [token for part in element.all("u64values") for token in part.text.split()]
    where = f"{source}:{element.line}"
    if len(indexes) > MAXIMUM_OBJECTS:
        raise InputError(f"a matrix has {len(indexes):,} objects, at most {MAXIMUM_OBJECTS:,} are read", where=where)
    if len(values) != len(indexes) ** 2 or not all(re.fullmatch(r"[0-9]{1,18}", value) for value in values):
        raise InputError(
            f"the matrix {element.get('name')[:40]} has {len(values)} numbers, expected {len(indexes) ** 2}",
            where=where,
            hint="the file is cut short; write it again with lstopo",
        )
    return indexes, [int(value) for value in values]


def pcie_rate(speed: Fraction) -> dict[str, str]:
    """A PCIe link of `speed` GB/s, as generation and lanes where they fit, else as a bandwidth."""
    for generation, lane in _LANES:
        for lanes in (1, 2, 4, 8, 16):
            full = Fraction(lane) * lanes
            if abs(full - speed) * 200 < full:
                return {"pcie": f"gen{generation}x{lanes}"}
    return {"bw": f"{float(speed):.6f} GB/s"}


def _speed(text: str) -> Fraction | None:
    if not _SPEED.fullmatch(text) or Fraction(text) == 0:
        return None
    return Fraction(text)
