"""From distances between devices to the least tree of PCIe switches and CPUs that explains them.

Problem. Each pair of devices has a word: PIX (one PCIe bridge between them), PXB (several), PHB (a host bridge),
NODE (host bridges of one NUMA node), SYS (between NUMA nodes). NVLink words hide the distance of a pair.

Method. The words order like an ultrametric, so the classes of "at most PIX", "at most PXB", "at most NODE" nest:
devices at PIX share a switch, switches at PXB share a switch above them, what is left hangs on its CPU. A switch
with one device below only passes data on and is left out. PHB and NODE come out alike: what joins the host
bridges of one NUMA node is faster than any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

#: From near to far.
LEVELS = {"PIX": 1, "PXB": 2, "PHB": 3, "NODE": 4, "SYS": 5, "SOC": 5}
SWITCHED = 2
SAME_CPU = 4

Distance = Callable[[str, str], "int | None"]


class SwitchGroup(msgspec.Struct, frozen=True):
    """A PCIe switch: the devices on it and the switches below it."""

    devices: tuple[str, ...]
    below: tuple[SwitchGroup, ...]

    def all_devices(self) -> list[str]:
        """The devices on this switch and on those below."""
        return [*self.devices, *(device for group in self.below for device in group.all_devices())]


class CpuGroup(msgspec.Struct, frozen=True):
    """A NUMA node: the devices on its own ports and its PCIe switches."""

    devices: tuple[str, ...]
    switches: tuple[SwitchGroup, ...]

    def all_devices(self) -> list[str]:
        """The devices on this CPU."""
        return [*self.devices, *(device for group in self.switches for device in group.all_devices())]


class Classes:
    """Union-find over names; the classes come out in the order of their first members."""

    def __init__(self, names: Iterable[str]) -> None:
        self._parents = {name: name for name in names}

    def find(self, name: str) -> str:
        """The representative of the class of `name`."""
        while self._parents[name] != name:
            self._parents[name] = self._parents[self._parents[name]]
            name = self._parents[name]
        return name

    def join(self, one: str, other: str) -> None:
        """Make one class of two."""
        self._parents[self.find(other)] = self.find(one)

    def groups(self) -> list[list[str]]:
        """All classes, each in the order of the names."""
        found: dict[str, list[str]] = {}
        for name in self._parents:
            found.setdefault(self.find(name), []).append(name)
        return list(found.values())


def build_tree(names: Sequence[str], distance: Distance, same_cpu: Sequence[tuple[str, str]]) -> list[CpuGroup]:
    """The CPUs with what hangs on them. `same_cpu` joins devices whose affinity is equal. Quadratic in `names`."""
    cpus = classes_at(names, distance, SAME_CPU)
    for one, other in same_cpu:
        cpus.join(one, other)
    return [_cpu_group(members, distance) for members in cpus.groups()]


def classes_at(names: Sequence[str], distance: Distance, level: int) -> Classes:
    """The classes of devices that a chain of distances up to `level` joins."""
    classes = Classes(names)
    for position, one in enumerate(names):
        for other in names[:position]:
            found = distance(one, other)
            if found is not None and found <= level:
                classes.join(other, one)
    return classes


def _cpu_group(members: list[str], distance: Distance) -> CpuGroup:
    devices: list[str] = []
    switches: list[SwitchGroup] = []
    for group in classes_at(members, distance, SWITCHED).groups():
        if len(group) == 1:
            devices.extend(group)
        else:
            switches.append(_switch_group(group, distance))
    return CpuGroup(tuple(devices), tuple(switches))


def _switch_group(members: list[str], distance: Distance) -> SwitchGroup:
    inner = classes_at(members, distance, 1).groups()
    if len(inner) == 1:
        return SwitchGroup(tuple(members), ())
    alone = tuple(group[0] for group in inner if len(group) == 1)
    return SwitchGroup(alone, tuple(SwitchGroup(tuple(group), ()) for group in inner if len(group) > 1))
