"""hwloc's XML (`lstopo machine.xml`): the reader.

NVLink and xGMI come from the bandwidth matrices, in which hwloc also lists NVSwitch chips and CPUs; PCIe comes from
the tree of bridges. hwloc's matrix of xGMI hops is wrong in released versions and is not used.
"""

from __future__ import annotations

import re
from fractions import Fraction

from forestsyn.errors import InputError
from forestsyn.frontend.imports.answers import pcie_answer, pcie_question
from forestsyn.frontend.imports.box import Box, Rate, box_found, machine_found
from forestsyn.frontend.imports.hwloc_objects import Device, Topology, bandwidth_matrix, pcie_rate, read_hwloc
from forestsyn.frontend.imports.kinds import Found, Options
from forestsyn.frontend.imports.matrix_box import add_direct_nics, choose_rails, join_cpus, note_left_out
from forestsyn.frontend.imports.matrix_tree import SAME_CPU, SWITCHED, Classes, Distance
from forestsyn.frontend.imports.xml_tree import Element


class HwlocXml:
    """What `lstopo FILE.xml` writes, of hwloc 2 and 3."""

    kind = "hwloc-xml"
    title = "hwloc XML (lstopo)"
    helps: str | None = None

    def recognizes(self, name: str, head: str) -> int:
        """How sure, 0 to 100."""
        if re.search(r"<topology\b", head) is None:
            return 0
        return 95 if "hwloc" in head[:2000] or re.search(r'<object type="(Machine|System)"', head) else 30

    def read(self, text: str, *, source: str, options: Options) -> Found:
        """The box that the file describes. Raises InputError."""
        topology = read_hwloc(text, source=source)
        gpus = [device for device in topology.devices if device.is_gpu]
        machine = machine_found(options, kind=self.kind, source=source, gpus=len(gpus) or None)
        if machine is not None:
            return machine
        if not gpus:
            raise InputError(
                "no GPU is listed",
                where=source,
                hint="write the file with 'lstopo --whole-io', and hwloc built with the NVML or RSMI library",
            )
        return _BoxReader(topology, gpus, source, options).found(self.kind)


class _BoxReader:
    def __init__(self, topology: Topology, gpus: list[Device], source: str, options: Options) -> None:
        self.topology, self.source, self.options = topology, source, options
        self.box = Box()
        self.names: dict[int, str] = {id(gpu): self.box.add("gpus", f"gpu{place}") for place, gpu in enumerate(gpus)}
        self.gpus = {self.names[id(gpu)]: gpu for gpu in gpus}
        self.cpus: dict[int, str] = {}
        self.to_cpu: list[tuple[str, Element, Rate]] = []

    def found(self, kind: str) -> Found:
        """The whole box."""
        joined = self._add_links()
        models = sorted({model for gpu in self.gpus.values() if (model := gpu.model())})
        if models:
            self.box.note(f"the GPUs are {', '.join(models[:4])}")
        nics = {name: device for device in self.topology.devices if (name := device.rdma_name) is not None}
        rails, left = choose_rails(list(self.gpus), list(nics), self._nic_distance(nics), self.options)
        note_left_out(self.box, left)
        for name in rails:
            self.names[id(nics[name])] = self.box.add("nics", name)
        if joined and len(self.gpus) > 1:
            names = {**{gpu: gpu for gpu in self.gpus}, **{name: self.names[id(nics[name])] for name in rails}}
            add_direct_nics(self.box, rails, list(self.gpus), names, self.options)
            self.box.note("the PCIe paths between GPUs are left out, since NVLink or xGMI joins all of them")
        elif len(self.gpus) > 1:
            self._add_tree()
        return box_found(self.box, kind=kind, source=self.source, options=self.options)

    def _add_links(self) -> bool:
        """Links of the bandwidth matrices; whether they join all GPUs without a CPU."""
        vertices = dict(self.names)
        speeds: dict[tuple[str, str], int] = {}
        for element in self.topology.matrices:
            if element.get("name") in ("NVLinkBandwidth", "XGMIBandwidth"):
                self._read_matrix(element, vertices, speeds)
        classes = Classes(vertices.values())
        for (one, other), megabytes in speeds.items():
            classes.join(one, other)
            self.box.link(one, other, _gigabytes(megabytes))
        return len({classes.find(gpu) for gpu in self.gpus}) == 1

    def _read_matrix(self, element: Element, vertices: dict[int, str], speeds: dict[tuple[str, str], int]) -> None:
        """Add the MB/s of each pair of GPUs and switches to `speeds`; remember those of GPUs and CPUs."""
        indexes, values = bandwidth_matrix(element, self.source)
        objects = [self.topology.by_index.get(index) for index in indexes]
        if any(item is None for item in objects):
            raise InputError(
                f"the matrix {element.get('name')} names objects that the file lacks",
                where=f"{self.source}:{element.line}",
            )
        chips = [item for item in objects if isinstance(item, Device) and item.is_switch_chip]
        if chips:
            self.box.note(
                f"{len(chips)} NVSwitch chips count as one switch; hwloc does not list the links between them"
            )
            switch = self.box.new("switches", "nvsw")
            vertices.update({id(chip): switch for chip in chips})
        size = len(objects)
        for row in range(size):
            for column in range(row):
                forth, back = values[row * size + column], values[column * size + row]
                if forth != back:
                    self.box.note(f"the matrix {element.get('name')} is not symmetric; the smaller value counts")
                if min(forth, back) > 0:
                    self._add_pair(objects[column], objects[row], min(forth, back), vertices, speeds)

    def _add_pair(
        self,
        one: Element | Device | None,
        other: Element | Device | None,
        megabytes: int,
        vertices: dict[int, str],
        speeds: dict[tuple[str, str], int],
    ) -> None:
        first, second = vertices.get(id(one)), vertices.get(id(other))
        if first is not None and first == second:
            return
        if first is not None and second is not None:
            speeds[first, second] = speeds.get((first, second), 0) + megabytes
            return
        for gpu, place in ((first, other), (second, one)):
            # Power servers: NVLink from a GPU to its CPU, which is a package or the bridge in front of it.
            if gpu in self.gpus and place is not None and id(place) not in vertices:
                home = place.home if isinstance(place, Device) else place
                self.to_cpu.append((str(gpu), home, _gigabytes(megabytes)))
                return
        self.box.note("links of devices that are neither GPU, NVSwitch nor CPU are left out")

    def _nic_distance(self, nics: dict[str, Device]) -> Distance:
        def distance(nic: str, gpu: str) -> int | None:
            one, other = nics[nic], self.gpus[gpu]
            if one.home is not other.home:
                return SAME_CPU + 1
            above = {id(bridge) for bridge in _switches(one)}
            shared = sum(id(bridge) in above for bridge in _switches(other))
            return SWITCHED + 1 - shared if shared else SAME_CPU

        return distance

    def _add_tree(self) -> None:
        for device in self.topology.devices:
            if device.above is None and self._useful(device):
                self._attach(device, self._cpu(device.home), None)
        for gpu, element, rate in self.to_cpu:
            self.box.link(gpu, self._cpu(element), rate)
        join_cpus(self.box, list(self.cpus.values()), self.options)

    def _cpu(self, home: Element) -> str:
        if id(home) not in self.cpus:
            self.cpus[id(home)] = self.box.new("cpus", "cpu")
        return self.cpus[id(home)]

    def _useful(self, device: Device) -> bool:
        return id(device) in self.names or any(map(self._useful, device.below))

    def _attach(self, device: Device, above: str, speed: Fraction | None) -> None:
        """Attach what is below the bridge `device`; a bridge with one useful device is left out."""
        narrow = device.speed if speed is None else min(speed, device.speed or speed)
        below = [child for child in device.below if self._useful(child)]
        name = self.names.get(id(device))
        if name is not None:
            self.box.link(name, above, *self._rate(narrow))
        elif device.above is None:
            # A host bridge joins its ports faster than any of them.
            for child in below:
                self._attach(child, above, None)
        elif len(below) == 1:
            self._attach(below[0], above, narrow)
        else:
            switch = self.box.new("switches", "pcie")
            self.box.link(switch, above, *self._rate(narrow))
            for child in below:
                self._attach(child, switch, None)

    def _rate(self, speed: Fraction | None) -> tuple[Rate | None, str | None]:
        if speed is not None:
            return dict(pcie_rate(speed)), None
        answer = pcie_answer(self.options)
        if answer is None:
            self.box.ask(pcie_question())
        return answer, "the file does not state the link; given by --pcie"


def _switches(device: Device) -> list[Device]:
    """The PCI bridges above, the host bridge left out."""
    found = []
    while device.above is not None:
        device = device.above
        if device.above is not None:
            found.append(device)
    return found


def _gigabytes(value: int) -> Rate:
    gigabytes = Fraction(value, 1000)
    if gigabytes.denominator == 1:
        return {"bw": int(gigabytes)}
    return {"bw": f"{gigabytes.numerator}/{gigabytes.denominator}"}
