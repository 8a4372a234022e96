"""Numbers of NCCL's topology XML: PCIe links, network ports, CPU links, and what the compute capability tells.

Source: NCCL src/graph/topo.cc and topo.h, RCCL topo.h.
"""

from __future__ import annotations

import re
from fractions import Fraction

import msgspec

from forestsyn.frontend.imports.xml_tree import Element

#: GT/s of a lane: generation.
_GENERATIONS = {"2.5": 1, "5": 2, "8": 3, "16": 4, "32": 5, "64": 6}
_GIGATRANSFERS = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,2})?)\s*GT/s(?P<rest>.*)")
_LANES = (1, 2, 4, 8, 16, 32)
#: More is a slip: no port has 100 Tb/s.
_MAXIMUM_MEGABITS = 100_000_000


class PcieLink(msgspec.Struct, frozen=True):
    """Generation and lanes of a PCIe link; `doubt` says what had to be supposed."""

    generation: int
    lanes: int
    doubt: str | None = None

    @property
    def weight(self) -> Fraction:
        """For comparison: lanes times the relative speed of a lane."""
        return Fraction(self.lanes * 2**self.generation)

    @property
    def text(self) -> str:
        """As a native file writes it."""
        return f"gen{self.generation}x{self.lanes}"


def pcie_link(element: Element) -> PcieLink | None:
    """The link of a `pci` element to its parent, or None when it is not stated."""
    speed, width = element.get("link_speed"), element.get("link_width")
    lanes = int(width) if re.fullmatch(r"[0-9]{1,3}", width) else 0
    match = _GIGATRANSFERS.fullmatch(speed)
    number = (
        match[1].rstrip("0").rstrip(".") if match is not None and "." in match[1] else (match[1] if match else "")
    )
    if number not in _GENERATIONS or (lanes and lanes not in _LANES):
        return None
    doubt = None
    if match is not None and match["rest"].strip() not in ("", "PCIe"):
        doubt = f"NCCL does not know the speed '{speed[:30]}' and counts it as gen3"
    if lanes == 0:
        doubt = "the width is not stated; NCCL counts 16 lanes"
    return PcieLink(_GENERATIONS[number], lanes or 16, doubt)


def port_megabits(element: Element) -> int | None:
    """Mb/s of a `net` element, or None when it is missing, not positive, or beyond all ports there are."""
    text = element.get("speed")
    if not re.fullmatch(r"[0-9]{1,12}", text) or int(text) == 0 or int(text) >= _MAXIMUM_MEGABITS:
        return None
    return int(text)


def megabits_text(megabits: int) -> str:
    """As a native file writes the speed of a NIC."""
    gigabits = Fraction(megabits, 1000)
    return f"{gigabits}Gb/s" if gigabits.denominator == 1 else f"{megabits}Mb/s"


def nvlink_generation(sm: int) -> dict[str, int | str] | None:
    """The rate of an NVLink of a GPU with the compute capability `sm`, as keys of a link entry."""
    if sm in (86, 87):
        return {"part": "3090"}
    for lowest, generation in ((100, 5), (90, 4), (80, 3), (70, 2), (60, 1)):
        if sm >= lowest and not (86 <= sm < 90):
            return {"gen": generation}
    return None


def nvlink_maximum(sm: int) -> int:
    """The most NVLinks that NCCL looks for."""
    for lowest, links in ((90, 18), (80, 12), (70, 6), (60, 4)):
        if sm >= lowest:
            return links
    return 0


def may_have_switch(sm: int) -> bool:
    """Whether parts of this compute capability are sold on boards with NVSwitch."""
    return sm in (70, 80, 90, 100, 103)


def xgmi_part(gcn: str) -> str | None:
    """The part whose xGMI rate holds for a GPU of the architecture `gcn` (906, 910, gfx942, gfx90a, ...)."""
    short = gcn.strip().lower().removeprefix("gfx")
    families = (
        ("906", "mi50"),
        ("908", "mi100"),
        ("910", "mi250"),
        ("90a", "mi250"),
        ("94", "mi300x"),
        ("95", "mi350x"),
    )
    return next((part for prefix, part in families if short.startswith(prefix)), None)


def socket_part(cpu: Element) -> tuple[str, str] | None:
    """The name of the socket link of a `cpu` element in the table of rates, and why; None when unknown."""
    arch, vendor = cpu.get("arch"), cpu.get("vendor")
    family, model = _number(cpu.get("familyid")), _number(cpu.get("modelid"))
    if arch == "ppc64":
        return "power9", "arch ppc64"
    if arch == "arm64":
        return "arm", "arch arm64"
    if vendor == "GenuineIntel":
        for lowest, part in ((0xCF, "upi-emerald-rapids"), (0x8F, "upi-sapphire-rapids"), (0x6A, "upi-icelake")):
            if model >= lowest:
                return part, f"Intel model {model}"
        return ("upi-skylake" if model >= 0x55 else "qpi-broadwell"), f"Intel model {model}"
    if vendor == "AuthenticAMD":
        # Families of the CPUs as the processor counts them (23, 25) and as NCCL adds up its fields (143, 175).
        if family in (23, 143):
            return "xgmi-rome", f"AMD family {family} model {model}"
        genoa = family in (25, 175) and model >= 16 and model not in (48, 49)
        return ("xgmi-genoa" if genoa else "xgmi-milan"), f"AMD family {family} model {model}"
    return None


def _number(text: str) -> int:
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else 0
