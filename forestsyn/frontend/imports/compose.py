"""Hosts on a fabric: what a fabric's file says of cables, joined to what each host holds.

A fabric names its hosts and the ports by which they hang on switches; a host template (`HostTemplate`) has NICs of
its own. Ports and NICs are matched by name, else by number, which is a guess and is said; ports that no NIC takes
are left out and named, for they carry storage or management.
"""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from forestsyn.errors import InputError
from forestsyn.frontend.imports.box import clean_name, header
from forestsyn.frontend.imports.compose_network import (
    NetworkLink,
    Rate,
    device_lists,
    host_group,
    link_entries,
    shown_notes,
)
from forestsyn.frontend.imports.compose_plain import plain_template
from forestsyn.frontend.imports.kinds import DocumentPath, Found, Guess, HostTemplate, Options, Question

_LISTED = 8


class Cable(msgspec.Struct, frozen=True):
    """A cable between two ends, each a switch or `host/port`; `why` tells that the rate is a guess."""

    tail: str
    head: str
    rate: Rate
    why: str | None = None


class FabricMap(msgspec.Struct, kw_only=True):
    """What a fabric's file says. `ports` lists the ports of each host, in order; `cables` may have parallels."""

    switches: list[str]
    ports: dict[str, list[str]]
    cables: list[Cable]
    notes: list[str] = []
    guesses: list[Guess] = []
    questions: list[Question] = []


def compose(fabric: FabricMap, *, kind: str, source: str, options: Options) -> Found:
    """The cluster: a template for each kind of host, and the cables between their NICs and the switches.

    Raises InputError when hosts cannot be joined to the fabric. Asks for `--host` when nothing tells what they hold.
    """
    if not fabric.ports:
        raise InputError(
            "the fabric has no host; a collective needs GPUs on hosts",
            where=source,
            hint="give the whole output of the tool",
        )
    names = list(dict.fromkeys(port for ports in fabric.ports.values() for port in ports))
    templates, missing = host_templates(names or None, options)
    questions = tuple(dict.fromkeys((*fabric.questions, *missing)))
    if questions:
        return Found(kind=kind, document=header(source, options), missing=questions)
    work = _Composer(fabric, templates, source)
    work.match()
    document = {**header(source, options), **work.body()}
    notes = [*fabric.notes, *work.notes, *(note for template in templates for note in template.notes)]
    return Found(
        kind=kind,
        document=document,
        guesses=(*fabric.guesses, *work.guesses),
        missing=questions,
        notes=shown_notes(list(dict.fromkeys(notes))),
    )


def match_ports(nics: Sequence[str], ports: Sequence[str], usual: Sequence[str]) -> tuple[dict[str, str], bool]:
    """port → NIC, and whether that is a guess: by name where all of one side are found, else by place in `usual`.

    `usual` are the port names of all hosts that name them alike, in order: so a host that misses one keeps its rails.
    """
    common = [port for port in ports if port in nics]
    if common and len(common) == min(len(nics), len(ports)):
        return {port: port for port in common}, False
    places = {port: place for place, port in enumerate(usual)}
    return {port: nics[places[port]] for port in ports if places.get(port, len(nics)) < len(nics)}, True


def usual_ports(ports: dict[str, list[str]], count: int) -> dict[str, tuple[str, ...]]:
    """For each spelling of ports, the `count` names that most hosts have, in natural order."""
    seen: dict[str, Counter[str]] = {}
    for names in ports.values():
        for name in names:
            seen.setdefault(_spelling(name), Counter())[name] += 1
    return {
        spelling: tuple(sorted(sorted(names, key=lambda name: (-names[name], _natural(name)))[:count], key=_natural))
        for spelling, names in seen.items()
    }


def _spelling(name: str) -> str:
    return name.rstrip("0123456789")


class _Composer:
    """A fabric and templates on their way to a document."""

    def __init__(self, fabric: FabricMap, templates: Sequence[HostTemplate], source: str) -> None:
        self.fabric, self.templates, self.source = fabric, templates, source
        self.notes: list[str] = []
        self.guesses: list[Guess] = []
        self._nic_of: dict[str, str] = {}
        self._template_of: dict[str, HostTemplate] = {}

    def match(self) -> None:
        """Choose the template of each host and the NIC of each of its ports."""
        told: dict[str, list[str]] = {}
        usual: dict[str, dict[str, tuple[str, ...]]] = {}
        for host, ports in self.fabric.ports.items():
            template = choose_template(self.templates, host)
            if template is None:
                told.setdefault("left out, for no --host is theirs", []).append(host)
                continue
            if not template.ports:
                raise InputError(
                    f"the hosts of '{template.name}' have no NIC, so nothing joins them to the fabric",
                    where=self.source,
                    hint="give a host file that lists NICs, or --nic with it",
                )
            if template.name not in usual:
                usual[template.name] = usual_ports(self.fabric.ports, len(template.ports))
            self._match_host(host, ports, template, usual[template.name], told)
        if not self._template_of:
            raise InputError(
                f"no host of the fabric matches a pattern of --host; the first is '{next(iter(self.fabric.ports))}'",
                where="--host",
                hint="give --host FILE for all, or --host 'PATTERN=FILE' for each kind",
            )
        for text, hosts in told.items():
            self.notes.append(f"{text}: {_some(hosts, len(self.fabric.ports))}")

    def _match_host(
        self,
        host: str,
        ports: list[str],
        template: HostTemplate,
        usual: dict[str, tuple[str, ...]],
        told: dict[str, list[str]],
    ) -> None:
        self._template_of[host] = template
        known = [name for spelling in dict.fromkeys(map(_spelling, ports)) for name in usual[spelling]]
        matched, guessed = match_ports(template.ports, ports, known)
        self._nic_of.update({f"{host}/{port}": f"{host}/{nic}" for port, nic in matched.items()})
        left = [port for port in ports if port not in matched]
        idle = [nic for nic in template.ports if nic not in matched.values()]
        if guessed and known:
            pairs = zip(known, template.ports, strict=False)
            shown = ", ".join(f"{port} is {nic}" for port, nic in list(pairs)[:_LISTED])
            told.setdefault(f"ports are matched to NICs in order ({shown})", []).append(host)
        if left:
            text = f"left out {', '.join(left[:_LISTED])} (storage or management: no NIC of the host is theirs)"
            told.setdefault(text, []).append(host)
        if idle:
            told.setdefault(f"nothing in the fabric is cabled to {', '.join(idle[:_LISTED])}", []).append(host)

    def body(self) -> dict[str, Any]:
        """The keys behind the header."""
        templates: dict[str, Any] = {}
        groups: list[tuple[str, list[str]]] = []
        for host, template in self._template_of.items():
            if template.name not in templates:
                templates[template.name] = template.template
                base: DocumentPath = ("templates", template.name)
                self.guesses.extend(Guess((*base, *guess.path), guess.text) for guess in template.guesses)
            if not groups or groups[-1][0] != template.name:
                groups.append((template.name, []))
            groups[-1][1].append(host)
        fabric: dict[str, Any] = device_lists(("switch", name) for name in self.fabric.switches)
        entries = link_entries(self._links(), ("fabric", "links"), self.guesses)
        if entries:
            fabric["links"] = entries
        hosts = [host_group(name, members) for name, members in groups]
        body: dict[str, Any] = {"templates": templates, "hosts": hosts}
        return {**body, "fabric": fabric} if fabric else body

    def _links(self) -> list[NetworkLink]:
        links = []
        for cable in self.fabric.cables:
            tail, head = self._end(cable.tail), self._end(cable.head)
            if tail is not None and head is not None:
                links.append(NetworkLink(tail, head, cable.rate, cable.why, False))
        return links

    def _end(self, end: str) -> str | None:
        return self._nic_of.get(end) if "/" in end else end


def choose_template(templates: Sequence[HostTemplate], host: str) -> HostTemplate | None:
    """The first template whose pattern matches `host`."""
    return next((one for one in templates if fnmatch.fnmatchcase(host, one.pattern)), None)


def host_templates(
    ports: Sequence[str] | None, options: Options
) -> tuple[Sequence[HostTemplate], tuple[Question, ...]]:
    """The kinds of host: those given by --host, or plain ones by --gpus-per-host with `ports`, or a question.

    `ports` None: the fabric does not tell them, and they are asked for.
    """
    if options.templates:
        return options.templates, ()
    if options.gpus_per_host is not None:
        template, missing = plain_template(sorted(ports or ("nic0",), key=_natural), options)
        if ports is None:
            missing.append(Question("--nics-per-host", "how many NICs a host has", ("1", "4", "8")))
        return (template,), tuple(missing)
    choices = ("a file about one host, such as smi.txt", "a machine of the catalog, such as dgx-h100")
    return (), (Question("--host", "what GPUs the hosts hold", (*choices, "or give --gpus-per-host N")),)


def _natural(name: str) -> list[tuple[int, int | str]]:
    return [(0, int(part)) if part.isdigit() else (1, part) for part in re.findall(r"[0-9]{1,18}|[^0-9]+", name)]


def _some(hosts: list[str], total: int) -> str:
    if len(hosts) == total:
        return "all hosts" if total > 1 else hosts[0]
    more = f" and {len(hosts) - 4} more hosts" if len(hosts) > 4 else ""
    return ", ".join(hosts[:4]) + more


def host_name(name: str, taken: dict[str, Any]) -> str:
    """`name` as a host may be called, and unlike those `taken`."""
    clean = clean_name(name) or "host"
    unique, number = clean, 1
    while unique in taken:
        unique = f"{clean[:56]}_{number}"
        number += 1
    return unique
