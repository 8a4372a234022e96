"""The PCIe side of one host of NCCL's XML: NICs near GPUs, and the tree where GPUs need it to reach each other.

A bridge with one device below only passes data on and is left out, its link merged with the device's (the narrower
counts). Two levels of one Broadcom switch are one switch, as NCCL flattens them.
"""

from __future__ import annotations

from fractions import Fraction

from forestsyn.frontend.imports.answers import (
    nic_answer,
    pcie_answer,
    pcie_question,
    socket_answer,
    socket_choices,
    socket_question,
)
from forestsyn.frontend.imports.box import Box, Rate
from forestsyn.frontend.imports.kinds import Options
from forestsyn.frontend.imports.matrix_box import choose_rails, note_left_out
from forestsyn.frontend.imports.matrix_tree import SAME_CPU, SWITCHED
from forestsyn.frontend.imports.nccl_speeds import PcieLink, megabits_text, port_megabits, socket_part
from forestsyn.frontend.imports.nccl_system import Cpu, Pci
from forestsyn.frontend.imports.xml_tree import Element
from forestsyn.frontend.rates import Rates, find_rate

#: Slower ports serve management, unless all are.
_SLOWEST_RAIL = 10_000
_BROADCOM = (("0x1000", "0xc010"), ("0x1000", "0xc030"))


class Port:
    """A port of a NIC: where it sits and its speed, if any is usable."""

    def __init__(self, name: str, cpu: Cpu, pci: Pci | None, element: Element | None) -> None:
        self.name, self.cpu, self.pci = name, cpu, pci
        self.megabits = port_megabits(element) if element is not None else None
        self.claimed = element.get("speed") if element is not None else ""


class PcieSide:
    """NICs and PCIe of one host; `gpus` are the devices of the GPUs by name."""

    def __init__(self, box: Box, cpus: list[Cpu], gpus: dict[str, Pci], options: Options) -> None:
        self.box, self.cpus, self.gpus, self.options = box, cpus, gpus, options
        self._cpu_of = {id(pci): cpu for cpu in cpus for top in cpu.pci for pci in top.everything()}
        self._names = {id(pci): name for name, pci in gpus.items()}
        self._ports = self._find_ports()
        self._by_name = {port.name: port for port in self._ports}
        self._above: dict[int, list[int]] = {}
        self._serving: dict[int, list[Port]] = {}
        self._useful: set[int] = set()

    def add_nics(self) -> dict[str, list[str]]:
        """Add the NICs that serve GPUs; each with its nearest GPUs. The others are named in the notes."""
        slow = [port for port in self._ports if port.megabits is not None and port.megabits <= _SLOWEST_RAIL]
        left = {} if self.options.all_nics else {port.name: "10 Gb/s or less: management" for port in slow}
        wanted = [port for port in self._ports if port.name not in left]
        rails, far = choose_rails(list(self.gpus), [port.name for port in wanted], self._distance, self.options)
        note_left_out(self.box, {**left, **far})
        result = {}
        for port in wanted:
            if port.name in rails:
                name = self.box.add("nics", port.name)
                result[name], port.name = rails[port.name], name
        self._ports = [port for port in self._ports if port.name in result]
        for port in self._ports:
            if port.pci is not None:
                self._serving.setdefault(id(port.pci), []).append(port)
        devices = [*self.gpus.values(), *(port.pci for port in self._ports if port.pci is not None)]
        self._useful = {id(one) for device in devices for one in (device, *_bridges(device))}
        return result

    def add_direct(self, rails: dict[str, list[str]]) -> None:
        """Link the NICs with their nearest GPUs."""
        silent = []
        for port in self._ports:
            rate = self._port_rate(port)
            if rate is None:
                silent.append(port)
                continue
            for gpu in rails[port.name]:
                self.box.link(gpu, port.name, rate)
        if silent:
            claims = sorted({port.claimed for port in silent if port.claimed})
            claim = f" (the file claims {', '.join(claims[:4])} Mb/s)" if claims else ""
            listed = ", ".join(port.name for port in silent[:16])
            self.box.note(f"the speed of the NICs is not known{claim}, so they have no links: {listed}; give --nic")

    def add_tree(self, to_cpu: dict[str, list[Rate]]) -> None:
        """Add CPUs and PCIe switches, with GPUs and NICs on them."""
        used: list[str] = []
        for cpu in self.cpus:
            useful = [top for top in cpu.pci if id(top) in self._useful]
            loose = [port for port in self._ports if port.cpu is cpu and port.pci is None]
            if not useful and not loose:
                continue
            name = self.box.add("cpus", f"cpu{cpu.numa}" if cpu.numa is not None else "cpu")
            used.append(name)
            for top in useful:
                self._attach(top, name, None, None)
            for port in loose:
                self.box.link(port.name, name, self._port_rate(port))
            for gpu, rates in to_cpu.items():
                if self._cpu_of[id(self.gpus[gpu])] is cpu:
                    for rate in rates:
                        self.box.link(gpu, name, rate)
        if any(pci.side_links for cpu in self.cpus for top in cpu.pci for pci in top.everything()):
            self.box.note("links between PCIe switches (pcilink) are left out; data between them goes over the CPU")
        self._join_cpus(used)

    def _find_ports(self) -> list[Port]:
        found: list[Port] = []
        for cpu in self.cpus:
            devices = [pci for top in cpu.pci for pci in top.everything() if pci.is_nic]
            for pci in devices:
                elements: list[Element | None] = [*pci.ports] or [None]
                found.extend(Port("", cpu, pci, element) for element in elements)
                for port, element in zip(found[-len(elements) :], elements, strict=True):
                    port.name = (element.get("name") if element is not None else "") or f"nic{len(found) - 1}"
            found.extend(Port(element.get("name") or f"nic{len(found)}", cpu, None, element) for element in cpu.ports)
        seen: dict[str, int] = {}
        for port in found:
            seen[port.name] = seen.get(port.name, 0) + 1
            if seen[port.name] > 1:
                port.name = f"{port.name}.{seen[port.name]}"
        return found

    def _distance(self, nic: str, gpu: str) -> int | None:
        """At most 2 below common bridges (the deeper the nearer), 4 on one CPU, 5 otherwise."""
        port = self._by_name[nic]
        device = self.gpus[gpu]
        if port.cpu is not self._cpu_of[id(device)]:
            return SAME_CPU + 1
        one, other = self._path(port.pci), self._path(device)
        shared = sum(first == second for first, second in zip(one, other, strict=False))
        return SWITCHED + 1 - shared if shared else SAME_CPU

    def _path(self, pci: Pci | None) -> list[int]:
        """The bridges above a device, from the CPU down."""
        if id(pci) not in self._above:
            self._above[id(pci)] = [id(bridge) for bridge in reversed(_bridges(pci))]
        return self._above[id(pci)]

    def _port_rate(self, port: Port) -> Rate | None:
        """The speed of a port, or of its PCIe link where that is narrower."""
        if port.megabits is None:
            return nic_answer(self.options)
        link = port.pci.link if port.pci is not None else None
        if link is not None:
            lane = find_rate("pcie", f"gen{link.generation}", Rates.SPEC)
            if lane * link.lanes < Fraction(port.megabits, 8000):
                self.box.note(f"{port.name}: its PCIe link ({link.text}) is slower than its port")
                return {"pcie": link.text}
        return {"nic": megabits_text(port.megabits)}

    def _attach(self, pci: Pci, above: str, link: PcieLink | None, chain: Pci | None) -> None:
        """Attach `pci` to the vertex `above`; `link` is the narrowest of the bridges that were left out between."""
        link = _narrower(link, pci.link)
        below = self._flat(pci)
        ports = self._serving.get(id(pci), [])
        name = self._names.get(id(pci))
        if name is not None:
            self.box.link(name, above, *self._pcie_rate(link, name))
        elif len(ports) == 1:
            self.box.link(ports[0].name, above, *self._pcie_rate(link, ports[0].name))
        elif len(below) == 1 and not ports:
            self._attach(below[0], above, link, pci)
        elif below or ports:
            switch = self.box.new("switches", "pcie")
            self.box.link(switch, above, *self._pcie_rate(link, switch))
            for port in ports:
                self.box.link(port.name, switch, self._port_rate(port))
            for child in below:
                self._attach(child, switch, None, None)

    def _flat(self, pci: Pci) -> list[Pci]:
        """The useful devices below, those of the second level of one Broadcom switch included."""
        found: list[Pci] = []
        for child in pci.below:
            if child.below and child.device == pci.device and pci.device in _BROADCOM:
                found.extend(self._flat(child))
            elif id(child) in self._useful:
                found.append(child)
        return found

    def _pcie_rate(self, link: PcieLink | None, name: str) -> tuple[Rate | None, str | None]:
        if link is None:
            answer = pcie_answer(self.options)
            if answer is None:
                self.box.ask(pcie_question())
            return answer, "the file does not state the link; given by --pcie"
        if link.doubt is not None:
            self.box.note(f"PCIe links: {link.doubt}")
        if link.generation * link.lanes <= 4:
            self.box.note(f"{name} hangs on a PCIe link of only {link.text}; suspicious for a path to a GPU")
        return {"pcie": link.text}, link.doubt

    def _join_cpus(self, names: list[str]) -> None:
        if len(names) < 2:
            return
        rate, why = socket_answer(self.options), None
        if rate is None:
            part = socket_part(self.cpus[0].element)
            if part is None or part[0] not in socket_choices(self.options):
                self.box.ask(socket_question(self.options))
                return
            rate, why = {"socket": part[0]}, f"{part[1]}; --socket gives another"
        for position, one in enumerate(names):
            for other in names[position + 1 :]:
                self.box.link(one, other, rate, why)


def _bridges(pci: Pci | None) -> list[Pci]:
    found = []
    while pci is not None and pci.above is not None:
        pci = pci.above
        found.append(pci)
    return found


def _narrower(one: PcieLink | None, other: PcieLink | None) -> PcieLink | None:
    if one is None or other is None:
        return one or other
    return min(one, other, key=lambda link: link.weight)
