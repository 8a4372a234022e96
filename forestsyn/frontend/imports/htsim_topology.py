"""htsim's `.topo`: a fat tree of two or three tiers by its parameters.

Tier 0 are the switches next to the hosts. `Radix_Down` and `Radix_Up` count cables of one switch; `Bundle` says how
many parallel cables join two switches; `Downlink_speed_Gbps` is the speed of the cables below a tier.
"""

from __future__ import annotations

import re

import msgspec

from forestsyn.errors import InputError
from forestsyn.frontend.imports.compose_network import Network, Rate
from forestsyn.frontend.imports.kinds import Found, Options
from forestsyn.frontend.imports.simai_rates import checked_rate
from forestsyn.frontend.imports.text import split_lines

_SPEED = re.compile(r"^\s*Downlink_speed_Gbps\s", re.IGNORECASE | re.MULTILINE)
_LINE = re.compile(r"([A-Za-z_]+)\s+([0-9]{1,9}(?:\.[0-9]{1,6})?)")
_IGNORED = ("queue_up", "queue_down", "switch_latency_ns", "oversubscribed", "podsize")
_MAXIMUM_NODES = 50_000


class Tier(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of one tier; `rate` is that of a cable below it."""

    down: int
    up: int
    bundle: int
    rate: Rate


class HtsimTopology:
    """The reader."""

    kind = "htsim-topology"
    title = "htsim .topo"
    helps: str | None = None

    def recognizes(self, name: str, head: str) -> int:
        """How sure, 0 to 100."""
        return 95 if _SPEED.search(head) and re.search(r"^\s*Nodes\s", head, re.IGNORECASE | re.MULTILINE) else 0

    def read(self, text: str, *, source: str, options: Options) -> Found:
        """The fat tree, each host one GPU. Raises InputError where the numbers do not fit together."""
        top, sections = _sections(text, source)
        nodes, pod = _whole(top, "nodes", source), _whole(top, "podsize", source, default=0)
        count = _whole(top, "tiers", source, default=len(sections))
        if count not in (2, 3) or count != len(sections):
            raise InputError(f"{len(sections)} of {count} tiers are described, expected 2 or 3", where=source)
        if nodes > _MAXIMUM_NODES:
            raise InputError(f"the file asks for {nodes:,} hosts, the limit is {_MAXIMUM_NODES:,}", where=source)
        tiers = [_tier(section, place, count, source) for place, section in enumerate(sections)]
        network = Network(source)
        _expand(network, nodes, pod or nodes, tiers, source)
        network.note("each host counts as one GPU")
        return network.found(self.kind, options)


def _sections(text: str, source: str) -> tuple[dict[str, str], list[dict[str, str]]]:
    """Key → value before the first `Tier`, and for each tier."""
    top: dict[str, str] = {}
    sections: list[dict[str, str]] = []
    current = top
    for number, line in enumerate(split_lines(text, source=source), start=1):
        plain = line.partition("#")[0].strip()
        if not plain:
            continue
        match = _LINE.fullmatch(plain)
        if match is None:
            raise InputError(f"cannot read '{plain[:60]}'", where=f"{source}:{number}", hint="expected: Key number")
        key = match[1].lower()
        if key == "tier":
            if match[2] != str(len(sections)):
                raise InputError(f"found tier {match[2]}, expected {len(sections)}", where=f"{source}:{number}")
            current = {}
            sections.append(current)
        elif key in current:
            raise InputError(f"'{match[1]}' is given twice", where=f"{source}:{number}")
        else:
            current[key] = match[2]
    return top, sections


def _whole(section: dict[str, str], key: str, source: str, default: int | None = None) -> int:
    text = section.get(key)
    if text is None:
        if default is None:
            raise InputError(f"'{key}' is missing", where=source)
        return default
    if not text.isdigit() or int(text) < 1:
        raise InputError(f"'{key}' is {text}, expected a whole number of at least 1", where=source)
    return int(text)


def _tier(section: dict[str, str], place: int, count: int, source: str) -> Tier:
    where = f"{source}, tier {place}"
    known = ("downlink_speed_gbps", "radix_down", "radix_up", "downlink_latency_ns", "bundle", *_IGNORED)
    unknown = [key for key in section if key not in known]
    if unknown:
        raise InputError(f"'{unknown[0]}' is not known", where=where)
    if "downlink_speed_gbps" not in section:
        raise InputError("'downlink_speed_gbps' is missing", where=where)
    latency = section.get("downlink_latency_ns")
    return Tier(
        down=_whole(section, "radix_down", where),
        up=_whole(section, "radix_up", where, default=None if place < count - 1 else 1),
        bundle=_whole(section, "bundle", where, default=1),
        rate=checked_rate(
            section["downlink_speed_gbps"], f"{latency} ns" if latency is not None else None, where=where
        ),
    )


def _expand(network: Network, nodes: int, pod: int, tiers: list[Tier], source: str) -> None:
    leaf, middle = tiers[0], tiers[1]
    if nodes % leaf.down or nodes % pod or pod % leaf.down:
        raise InputError(
            f"{nodes} hosts, {pod} a pod and {leaf.down} a leaf switch do not divide evenly", where=source
        )
    pods, leaves = nodes // pod, pod // leaf.down
    if len(tiers) == 2 and pods > 1:
        raise InputError(f"two tiers are one pod, found {pods}", where=source, hint="Podsize must be Nodes")
    uppers = leaves * leaf.up // middle.down
    if uppers < 1 or uppers * middle.bundle != leaf.up or uppers * middle.down != leaves * leaf.up:
        raise InputError(
            f"{leaves} leaf switches with {leaf.up} cables up do not fit switches with {middle.down} cables down "
            f"in bundles of {middle.bundle}",
            where=source,
        )
    middles: list[list[str]] = []
    for number in range(pods):
        group = [network.add("switch", f"agg{number * uppers + place}") for place in range(uppers)]
        middles.append(group)
        for place in range(leaves):
            name = network.add("switch", f"tor{number * leaves + place}")
            first = number * pod + place * leaf.down
            for host in range(first, first + leaf.down):
                network.link(network.add("gpu", f"gpu{host}"), name, leaf.rate)
            for switch in group:
                network.link(name, switch, _bundled(middle))
    if len(tiers) == 3:
        _join_pods(network, middles, middle, tiers[2], source)


def _join_pods(network: Network, middles: list[list[str]], middle: Tier, top: Tier, source: str) -> None:
    """Switch j of every pod on the cores j, j + (switches a pod), ..."""
    per_pod = len(middles[0])
    cores = len(middles) * per_pod * middle.up // top.down
    steps = middle.up // top.bundle
    if cores < 1 or middle.up % top.bundle or per_pod * steps != cores:
        raise InputError(
            f"{per_pod} switches a pod with {middle.up} cables up do not fit {cores} core switches with {top.down} "
            f"cables down in bundles of {top.bundle}",
            where=source,
        )
    names = [network.add("switch", f"core{number}") for number in range(cores)]
    for group in middles:
        for place, switch in enumerate(group):
            for step in range(steps):
                network.link(switch, names[place + per_pod * step], _bundled(top))


def _bundled(tier: Tier) -> Rate:
    return {**tier.rate, "times": tier.bundle} if tier.bundle > 1 else tier.rate
