"""Hosts under a tree of switches, as schedulers describe a fabric: who is under whom, and nothing about cables.

A tree tells locality. What carries the data is asked for: the speed of a NIC's cable (`--link`) and how much of the
bandwidth below a switch goes up from it (`--oversubscription`). Switches above that stand for several are one here.
"""

from __future__ import annotations

import re
from fractions import Fraction

import msgspec

from forestsyn.errors import InputError
from forestsyn.frontend.imports.compose import Cable, FabricMap, choose_template, compose, host_name, host_templates
from forestsyn.frontend.imports.compose_network import Rate
from forestsyn.frontend.imports.kinds import Found, Guess, Options, Question
from forestsyn.frontend.imports.simai_rates import decimal, link_answer, link_question
from forestsyn.frontend.quantity import parse_bandwidth

_RATIO = re.compile(r"[0-9]{1,4}(?:\.[0-9]{1,4})?(?::1)?")
_OVERSUBSCRIPTION = ("1", "2", "4", "or one for each level from the leaves up, such as 1,2")


class Tree(msgspec.Struct, kw_only=True):
    """`parent` of each switch, None for a root, in the order of the file; `leaf` of each host."""

    parent: dict[str, str | None]
    leaf: dict[str, str]
    notes: list[str] = []
    guesses: list[Guess] = []


def compose_tree(tree: Tree, *, kind: str, source: str, options: Options) -> Found:
    """The cluster of the tree. Raises InputError for a tree with a cycle or without hosts."""
    if not tree.leaf:
        raise InputError("no host is listed", where=source, hint="a schedule needs the hosts under each switch")
    levels = _levels(tree, source)
    fabric = FabricMap(switches=[], ports={}, cables=[], notes=list(tree.notes), guesses=list(tree.guesses))
    names = _switch_names(tree, fabric)
    _note_roots(tree, fabric)
    rate, why = link_answer(options)
    if rate is None:
        fabric.questions.append(link_question("how fast the cable of a NIC is"))
    ratios = _ratios(options)
    if ratios is None and len(tree.parent) > 1:
        fabric.questions.append(
            Question("--oversubscription", "how much more bandwidth goes down than up", _OVERSUBSCRIPTION)
        )
    below = _add_hosts(tree, names, fabric, rate, why, options)
    if below is not None and rate is not None and ratios is not None:
        _add_uplinks(tree, names, fabric, (below, levels, ratios), rate)
    return compose(fabric, kind=kind, source=source, options=options)


def _levels(tree: Tree, source: str) -> dict[str, int]:
    """Height of each switch over the hosts, leaves 0; walks up from each switch, so that a cycle is met."""
    levels: dict[str, int] = dict.fromkeys(tree.parent, 0)
    for switch in tree.parent:
        above, height = tree.parent[switch], 1
        while above is not None:
            if above == switch or height > len(tree.parent):
                raise InputError(f"the switch '{switch[:60]}' is above itself", where=source)
            if levels[above] >= height:
                break
            levels[above] = height
            above, height = tree.parent[above], height + 1
    return levels


def _switch_names(tree: Tree, fabric: FabricMap) -> dict[str, str]:
    names: dict[str, str] = {}
    taken: dict[str, str] = {}
    for switch in tree.parent:
        names[switch] = host_name(switch, taken)
        taken[names[switch]] = switch
        fabric.switches.append(names[switch])
    return names


def _note_roots(tree: Tree, fabric: FabricMap) -> None:
    holding = set(tree.leaf.values())
    waiting = list(holding)
    while waiting:
        above = tree.parent[waiting.pop()]
        if above is not None and above not in holding:
            holding.add(above)
            waiting.append(above)
    roots = [switch for switch, above in tree.parent.items() if above is None and switch in holding]
    if len(roots) > 1:
        shown = ", ".join(roots[:6]) + (", ..." if len(roots) > 6 else "")
        fabric.notes.append(f"nothing joins the {len(roots)} switches at the top ({shown}): their hosts are apart")
    empty = [switch for switch in tree.parent if switch not in holding]
    if empty:
        fabric.notes.append(f"no host is under {len(empty)} switches, such as {', '.join(empty[:4])}")


def _ratios(options: Options) -> list[Fraction] | None:
    if options.oversubscription is None:
        return None
    ratios = []
    for part in options.oversubscription.split(","):
        text = part.strip()
        value = Fraction(text.removesuffix(":1")) if _RATIO.fullmatch(text) else Fraction(0)
        if value <= 0:
            raise InputError(
                f"'{text[:40]}' is no oversubscription", where="--oversubscription", hint="write 1, 2 or 1,2"
            )
        ratios.append(value)
    return ratios


def _add_hosts(
    tree: Tree, names: dict[str, str], fabric: FabricMap, rate: Rate | None, why: str | None, options: Options
) -> dict[str, int] | None:
    """Hosts and their cables; NICs under each leaf, or None while it is not known how many a host has."""
    templates, questions = host_templates(_port_names(options), options)
    hosts = {host: host_name(host, fabric.ports) for host in tree.leaf}
    if not templates or any(question.option == "--nics-per-host" for question in questions):
        fabric.ports.update({name: [] for name in hosts.values()})
        return None
    below: dict[str, int] = dict.fromkeys(tree.parent, 0)
    for host, leaf in tree.leaf.items():
        name = host_name(host, fabric.ports)
        template = choose_template(templates, name)
        fabric.ports[name] = list(template.ports) if template is not None else []
        if template is None:
            continue
        below[leaf] += len(template.ports)
        if rate is not None:
            fabric.cables.extend(Cable(f"{name}/{port}", names[leaf], rate, why) for port in template.ports)
    return below


def _port_names(options: Options) -> list[str] | None:
    if options.nics_per_host is None:
        return None
    if not 1 <= options.nics_per_host <= 1024:
        raise InputError(f"{options.nics_per_host} NICs a host, expected 1 to 1,024", where="--nics-per-host")
    return [f"nic{number}" for number in range(options.nics_per_host)]


def _add_uplinks(
    tree: Tree,
    names: dict[str, str],
    fabric: FabricMap,
    sizes: tuple[dict[str, int], dict[str, int], list[Fraction]],
    rate: Rate,
) -> None:
    """From the leaves up: what is below a switch, over its oversubscription."""
    direct, levels, ratios = sizes
    below = {switch: Fraction(count) for switch, count in direct.items()}
    why = "a scheduler's tree does not tell uplinks; computed from --oversubscription"
    for switch in sorted(tree.parent, key=lambda name: levels[name]):
        above = tree.parent[switch]
        if above is None or not below[switch]:
            continue
        up = below[switch] / ratios[min(levels[switch], len(ratios) - 1)]
        below[above] += up
        if up.denominator == 1:
            uplink = {**rate, "times": int(up)} if up > 1 else dict(rate)
        else:
            uplink = {"bw": decimal(parse_bandwidth(rate["bw"], "Gb/s") * up)}
        fabric.cables.append(Cable(names[switch], names[above], uplink, why))
