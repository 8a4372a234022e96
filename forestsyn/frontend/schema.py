"""The shape of a native topology file, one struct for each kind of mapping. `docs/topology.md` explains each key.

Numbers stay as written (`int | str`): `quantity` and `expression` read them exactly.
"""

from __future__ import annotations

from typing import Any

import msgspec

from forestsyn.frontend.rates import Rates

Whole = int | str
Patterns = str | list[str]


class Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of all structs here: unknown keys are errors."""


class LinkRate(Strict, frozen=True, kw_only=True):
    """How fast a link is: exactly one of bw, nvlink, xgmi, c2c, pcie, socket, nic."""

    bw: Whole | None = None
    nvlink: Whole | None = None
    xgmi: Whole | None = None
    c2c: str | None = None
    pcie: str | None = None
    socket: str | None = None
    nic: Whole | None = None
    gen: Whole | None = None
    part: Whole | None = None
    times: Whole = 1
    latency: Whole | None = None


class LinkEntry(LinkRate, frozen=True, kw_only=True, rename={"from_": "from", "for_": "for"}):
    """Links between all that `from_` and `to` match."""

    from_: Patterns
    to: Patterns
    zip: bool = False
    dir: str = "both"
    for_: dict[str, Any] = {}
    optional: bool = False


class SwitchGroup(Strict, frozen=True, kw_only=True):
    """Devices named by one key of a mapping: `count` of them, or one that bears the key as its name."""

    count: Whole | None = None
    multicast: bool | None = None
    reduce: bool | None = None


Devices = Whole | list[str] | dict[str, Any]


class Template(Strict, frozen=True, kw_only=True):
    """One host: its devices and the links among them. `use` starts from the host of a catalog machine."""

    use: str | None = None
    gpus: Devices = 0
    switches: Devices = 0
    nics: Devices = 0
    cpus: Devices = 0
    links: list[LinkEntry] = []


class HostGroup(Strict, frozen=True, kw_only=True):
    """Hosts made from one template: `count` of them named by `prefix`, or those listed in `names`."""

    template: str
    count: Whole | None = None
    prefix: str | None = None
    names: Patterns | None = None


class Fabric(Strict, frozen=True, kw_only=True):
    """Switches outside hosts, and links between anything. Left out when there are fewer than `min_hosts` hosts."""

    switches: Devices = 0
    links: list[LinkEntry] = []
    min_hosts: Whole = 0


class Setting(LinkRate, frozen=True, kw_only=True):
    """A new bandwidth (or latency) for an existing link."""

    link: list[str]
    dir: str = "both"


class RemovedLink(Strict, frozen=True, kw_only=True):
    """A link that is down."""

    link: list[str]
    dir: str = "both"


class ExceptionEntry(Strict, frozen=True, kw_only=True):
    """What is broken or odd today, and why. Exactly one of remove, set."""

    reason: str
    remove: str | RemovedLink | None = None
    set: Setting | None = None


class SwitchDefaults(Strict, frozen=True, kw_only=True):
    """What a switch can do unless it says otherwise."""

    multicast: bool = False
    reduce: bool = False


class TorusShape(Strict, frozen=True, kw_only=True):
    """A torus; below `wrap_multiple` (a dimension that is no multiple of it) all of it is a mesh."""

    dimensions: list[Whole]
    wrap_multiple: Whole = 1


class FatTreeShape(Strict, frozen=True, kw_only=True):
    """Two tiers: `leaves` switches of `gpus` each under `spines`; uplinks carry 1/`oversubscription` of the GPUs."""

    leaves: Whole
    gpus: Whole
    spines: Whole = 1
    oversubscription: Whole = 1


class DragonflyShape(Strict, frozen=True, kw_only=True):
    """Groups of fully connected routers; each pair of groups shares one link."""

    groups: Whole
    routers: Whole
    gpus: Whole


class RailShape(Strict, frozen=True, kw_only=True):
    """Hosts of `gpus` GPUs on one switch each; GPU r of every host is on rail switch r; a spine joins the rails."""

    hosts: Whole
    gpus: Whole = 8
    host_link: LinkRate | None = None
    spine: bool = True
    oversubscription: Whole = 1


#: Words of the command line that a file says differently.
OTHER_SPELLINGS = {
    "leaf-spine": "write fat-tree: {leaves: 4, gpus: 8} with link: {bw: 50}, or use: leaf-spine:4x8",
}


class TopologyFile(
    Strict, frozen=True, kw_only=True, rename={"fat_tree": "fat-tree", "rail_optimized": "rail-optimized"}
):
    """The whole file."""

    forestsyn: int
    name: str | None = None
    title: str | None = None
    sources: list[str] = []
    unit: str = "GB/s"
    rates: Rates | None = None
    parameters: dict[str, int] = {}
    use: str | None = None
    gpus: Devices = 0
    switches: Devices = 0
    nics: Devices = 0
    cpus: Devices = 0
    links: list[LinkEntry] = []
    templates: dict[str, Any] = {}
    hosts: list[HostGroup] = []
    fabric: Fabric | list[Fabric] = []
    ring: Whole | None = None
    full: Whole | None = None
    switch: Whole | None = None
    hypercube: Whole | None = None
    mesh: list[Whole] | None = None
    torus: list[Whole] | TorusShape | None = None
    fat_tree: Whole | FatTreeShape | None = None
    dragonfly: DragonflyShape | None = None
    rail_optimized: RailShape | None = None
    link: LinkRate | None = None
    exceptions: list[ExceptionEntry] = []
    ranks: Patterns | None = None
    relay: bool = False
    switch_defaults: SwitchDefaults = SwitchDefaults()
