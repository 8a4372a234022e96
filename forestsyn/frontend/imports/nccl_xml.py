"""NCCL's and RCCL's topology XML: the reader."""

from __future__ import annotations

import re
from typing import Any

from forestsyn.errors import InputError
from forestsyn.frontend.imports.answers import nic_question
from forestsyn.frontend.imports.box import Box, box_found, header, machine_found, names_pattern
from forestsyn.frontend.imports.kinds import Found, Guess, Options, Question
from forestsyn.frontend.imports.nccl_links import GpuLinks, switch_rate
from forestsyn.frontend.imports.nccl_pcie import PcieSide
from forestsyn.frontend.imports.nccl_system import Cpu, Pci, System, read_system

_NO_GPUS = (
    "no GPU is listed, neither as <gpu> nor by a PCI class: this is a hint for NCCL, which finds the rest by itself"
)


class NcclXml:
    """What NCCL_TOPO_DUMP_FILE writes and NCCL_TOPO_FILE reads, of NCCL and RCCL, one host or several."""

    kind = "nccl-xml"
    title = "NCCL or RCCL topology XML"
    helps: str | None = None

    def recognizes(self, name: str, head: str) -> int:
        """How sure, 0 to 100."""
        if re.search(r"<system\b[^>]*\bversion=", head) or re.search(r"<graphs\b[^>]*\bversion=", head):
            return 95
        return 70 if re.search(r"<(nvlink|xgmi)\b[^>]*\btarget=", head) else 0

    def read(self, text: str, *, source: str, options: Options) -> Found:
        """The hosts that the XML describes. Raises InputError."""
        system = read_system(text, source=source)
        gpus = system.counts()["GPUs"]
        machine = machine_found(options, kind=self.kind, source=source, gpus=gpus or None)
        if machine is not None:
            return machine
        if gpus == 0:
            raise InputError(
                _NO_GPUS,
                where=source,
                hint="give --machine (forestsyn machines lists them), or dump a running job: NCCL_TOPO_DUMP_FILE",
            )
        hosts = system.hosts()
        if len(hosts) == 1:
            box = _read_host(hosts[0], options, alone=True)[0]
            return box_found(box, kind=self.kind, source=source, options=options)
        return _cluster(system, hosts, self.kind, source, options)


def _read_host(cpus: list[Cpu], options: Options, *, alone: bool) -> tuple[Box, GpuLinks]:
    """One host as a box. Only where it is `alone` is the NVSwitch a device of the box."""
    box = Box()
    gpus = _name_gpus(box, cpus)
    links = GpuLinks(box, gpus, options)
    sets = links.read()
    if links.to_switch and alone:
        switch = box.add("switches", "nvsw")
        for gpu, entry in links.to_switch.items():
            box.link(gpu, switch, switch_rate(entry))
    side = PcieSide(box, cpus, gpus, options)
    rails = side.add_nics()
    hint = not any(pci.gpu is not None and pci.gpu.stated for pci in gpus.values())
    if hint and rails and options.nic is None:
        box.ask(nic_question())
    if len(sets) == 1 and len(gpus) > 1:
        side.add_direct(rails)
        box.note("the PCIe paths between GPUs are left out, since NVLink or xGMI joins all of them")
    elif "--nvswitch" not in box.questions and (len(gpus) > 1 or not alone):
        side.add_tree(links.to_cpu)
    return box, links


def _name_gpus(box: Box, cpus: list[Cpu]) -> dict[str, Pci]:
    """The GPUs by name, in the order of their ranks (else of their device numbers, else of the file)."""
    found = [pci for cpu in cpus for top in cpu.pci for pci in top.everything() if pci.gpu is not None]
    devices = [pci.gpu.dev for pci in found if pci.gpu is not None]
    numbered = None not in devices and len(set(devices)) == len(devices)
    ranks = [pci.gpu.rank for pci in found if pci.gpu is not None]
    key = ranks if None not in ranks and len(set(ranks)) == len(ranks) else devices if numbered else None
    order = list(range(len(found)))
    if key is not None:
        values = [value if value is not None else 0 for value in key]
        order.sort(key=lambda place: values[place])
    result = {}
    for position, place in enumerate(order):
        number = devices[place] if numbered else position
        result[box.add("gpus", f"gpu{number}")] = found[place]
    return result


def _cluster(system: System, hosts: list[list[Cpu]], kind: str, source: str, options: Options) -> Found:
    """Several hosts that NVLink joins (MNNVL): a template for each different host, and a switch for all."""
    document = header(source, options)
    templates: dict[str, Any] = {}
    guesses: list[Guess] = []
    notes: list[str] = []
    questions: dict[str, Question] = {}
    links: list[dict[str, Any]] = []
    groups: list[dict[str, Any]] = []
    for number, cpus in enumerate(hosts):
        box, gpu_links = _read_host(cpus, options, alone=False)
        body, found = box.template()
        name = next((known for known, given in templates.items() if given == body), None)
        if name is None:
            name = f"host{len(templates)}"
            templates[name] = body
            guesses.extend(Guess(("templates", name, *guess.path), guess.text) for guess in found)
        groups.append({"template": name, "names": f"n{number}"})
        notes.extend(f"n{number}: {note}" for note in box.shown_notes())
        questions.update({option: question for option, question in box.questions.items() if option not in questions})
        links.extend(_switch_links(f"n{number}", gpu_links))
    if not links and not questions:
        raise InputError(
            f"the file has {len(hosts)} hosts, and no NVLink switch joins them",
            where=source,
            hint="dump each host alone, and describe the fabric between them",
        )
    document.update({"templates": templates, "hosts": groups, "fabric": {"switches": ["nvsw"], "links": links}})
    return Found(
        kind=kind,
        document=document,
        guesses=tuple(guesses),
        missing=tuple(questions.values()),
        notes=tuple(notes[:60]),
    )


def _switch_links(host: str, links: GpuLinks) -> list[dict[str, Any]]:
    """The links of a host's GPUs to the common switch, equal ones together."""
    groups: dict[tuple[tuple[str, Any], ...], list[str]] = {}
    for gpu, entry in links.to_switch.items():
        groups.setdefault(tuple(switch_rate(entry).items()), []).append(gpu)
    return [
        {"from": [f"{host}/{pattern}" for pattern in names_pattern(gpus)], "to": "nvsw", **dict(rate)}
        for rate, gpus in groups.items()
    ]
