"""The links between GPUs of one host of NCCL's XML: NVLink, xGMI, C2C, and what looks odd about them."""

from __future__ import annotations

from fractions import Fraction

from forestsyn.frontend.imports.box import Box, Rate
from forestsyn.frontend.imports.kinds import Options, Question
from forestsyn.frontend.imports.models import find_model, model_names
from forestsyn.frontend.imports.nccl_speeds import may_have_switch, nvlink_generation, nvlink_maximum, xgmi_part
from forestsyn.frontend.imports.nccl_system import Gpu, Pci, PeerLink
from forestsyn.frontend.imports.pair_links import joined_sets
from forestsyn.units import format_count

#: What the PCI id says of boards with NVSwitch.
_DEVICES = {
    "0x20b0": "a100",
    "0x20b2": "a100",
    "0x2330": "h100",
    "0x2335": "h200",
    "0x2324": "h800",
    "0x2901": "b200",
    "0x2941": "gb200",
    "0x1db1": "v100",
    "0x1db5": "v100",
}
_NVSWITCH = Question(
    "--nvswitch",
    "whether the GPUs are joined by an NVSwitch",
    ("--nvswitch", "--no-nvswitch (PCIe only)", "--machine NAME (for direct NVLinks, which the file does not list)"),
)


class GpuLinks:
    """The GPUs of a host with their names, and how their own links join them."""

    def __init__(self, box: Box, gpus: dict[str, Pci], options: Options) -> None:
        self.box, self.gpus, self.options = box, gpus, options
        self.by_address = {pci.address: name for name, pci in gpus.items()}
        #: GPU name: links to the switch, with their rate.
        self.to_switch: dict[str, tuple[int, Rate]] = {}
        #: GPU name: rates of links to its CPU.
        self.to_cpu: dict[str, list[Rate]] = {}
        self._pairs: dict[frozenset[str], dict[str, int]] = {}

    def read(self) -> list[list[str]]:
        """Add the links between GPUs; the sets of GPUs that links (those to a switch too) join."""
        for name, pci in self.gpus.items():
            assert pci.gpu is not None, "these are the GPUs"
            self._read_gpu(name, pci.gpu)
        self._add_pairs()
        if not self._pairs and not self.to_switch:
            self._ask_for_switch()
        self._note_odd()
        counts = dict.fromkeys(self._pairs, 1)
        switched = list(self.to_switch)
        counts.update({frozenset((switched[0], other)): 1 for other in switched[1:]})
        return joined_sets(list(self.gpus), counts)

    def _read_gpu(self, name: str, gpu: Gpu) -> None:
        for link in gpu.nvlinks:
            if link.count > 0:
                self._read_link(name, link, self._nvlink_rate(gpu))
        for link in gpu.xgmi:
            if link.count > 0:
                self._read_link(name, link, self._xgmi_rate(gpu))
        for megabytes, count in gpu.c2c:
            if megabytes * count > 0:
                value = Fraction(megabytes * count, 1000)
                self.to_cpu.setdefault(name, []).append({"bw": f"{value}" if value.denominator > 1 else int(value)})

    def _read_link(self, name: str, link: PeerLink, rate: Rate | None) -> None:
        if rate is None:
            return
        if link.kind == "switch":
            count = self.to_switch.get(name, (0, rate))[0]
            self.to_switch[name] = (count + link.count, rate)
        elif link.kind == "cpu":
            self.to_cpu.setdefault(name, []).append(_counted(rate, link.count))
        elif link.target == self.gpus[name].address:
            links = format_count(link.count, "link to itself; it is", "links to itself; they are")
            self.box.note(f"{name} claims {links} left out")
        elif link.target not in self.by_address:
            links = format_count(link.count, "link")
            self.box.note(f"{name} has {links} to {link.target[:20]}, which is no GPU of the file")
        else:
            ends = self._pairs.setdefault(frozenset((name, self.by_address[link.target])), {})
            ends[name] = ends.get(name, 0) + link.count

    def _add_pairs(self) -> None:
        place = {gpu: number for number, gpu in enumerate(self.gpus)}
        for pair, ends in self._pairs.items():
            one, other = sorted(pair, key=lambda gpu: place[gpu])
            if len(ends) == 1:
                self.box.note(
                    f"only {next(iter(ends))} lists the links of {one} and {other}; {other} may have lost them"
                )
            elif ends[one] != ends[other]:
                self.box.note(f"{one} lists {ends[one]} links to {other}, and {other} {ends[other]}; the fewer count")
            gpu = self.gpus[one].gpu
            assert gpu is not None, "these are the GPUs"
            rate = self._xgmi_rate(gpu) if gpu.xgmi else self._nvlink_rate(gpu)
            if rate is not None:
                self.box.link(one, other, _counted(rate, min(ends.values())))

    def _nvlink_rate(self, gpu: Gpu) -> Rate | None:
        if self.options.gpu is not None:
            model = find_model(self.options.gpu)
            if model.link == "nvlink":
                return {"nvlink": 1, **dict(model.rate)}
        found = nvlink_generation(gpu.sm) if gpu.sm is not None else None
        if found is None:
            self.box.ask(Question("--gpu", "which model the GPUs are", model_names("nvlink")))
            return None
        return {"nvlink": 1, **found}

    def _xgmi_rate(self, gpu: Gpu) -> Rate | None:
        if self.options.gpu is not None:
            model = find_model(self.options.gpu)
            if model.link == "xgmi":
                return {"xgmi": 1, **dict(model.rate)}
        part = xgmi_part(gpu.gcn)
        if part is None:
            self.box.ask(Question("--gpu", "which model the GPUs are", model_names("xgmi")))
            return None
        return {"xgmi": 1, "part": part}

    def _ask_for_switch(self) -> None:
        """No GPU lists links: a hint leaves that to NCCL, so the user must say whether there is a switch."""
        first = next(iter(self.gpus.values()))
        assert first.gpu is not None, "these are the GPUs"
        if first.gpu.gcn or (first.gpu.stated and first.gpu.sm is not None and not may_have_switch(first.gpu.sm)):
            return
        name = self.options.gpu or _DEVICES.get(first.device[1])
        if self.options.nvswitch is False:
            return
        if name is None and first.gpu.sm is None:
            self.box.ask(Question("--gpu", "which model the GPUs are", model_names()))
            self.box.ask(_NVSWITCH)
            return
        model = find_model(name) if name is not None else None
        links = model.links if model is not None else nvlink_maximum(first.gpu.sm or 0)
        if links == 0:
            return
        if self.options.nvswitch is None:
            self.box.ask(_NVSWITCH)
            return
        rate = {"nvlink": 1, **dict(model.rate)} if model is not None else self._nvlink_rate(first.gpu)
        if model is not None and self.options.gpu is None:
            self.box.note(f"the GPUs are {model.name}, by their PCI id {first.device[1]}")
        if rate is not None:
            self.to_switch = dict.fromkeys(self.gpus, (links, rate))
            self.box.note(f"each GPU is taken to have all its {links} NVLinks to the switch; the file lists none")

    def _note_odd(self) -> None:
        totals = {name: self.to_switch.get(name, (0, {}))[0] for name in self.gpus}
        for pair, ends in self._pairs.items():
            for name in pair:
                totals[name] += min(ends.values())
        usual = max(totals.values(), default=0)
        for name, count in totals.items():
            if count < usual and (count == 0 or name in self.to_switch):
                rank = self.gpus[name].gpu
                which = f"{name} (rank {rank.rank})" if rank is not None and rank.rank is not None else name
                self.box.note(f"{which} has {count or 'no'} NVLink or xGMI links where its siblings have {usual}")


def _counted(rate: Rate, count: int) -> Rate:
    return {key: (value * count if key in ("nvlink", "xgmi") else value) for key, value in rate.items()}


def switch_rate(entry: tuple[int, Rate]) -> Rate:
    """The rate of a GPU's links to the switch."""
    return _counted(entry[1], entry[0])
