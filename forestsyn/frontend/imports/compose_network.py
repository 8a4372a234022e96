"""A whole network while a reader describes it: hosts, switches, GPUs and links, written as a native document.

`Network` is for files that draw every vertex. Hosts that are equal inside become one template; equal links become one
entry with ranges of names, so that a person can read and edit the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from forestsyn.errors import InputError
from forestsyn.frontend.builder import MAXIMUM_VERTICES
from forestsyn.frontend.imports.box import clean_name, header, names_pattern
from forestsyn.frontend.imports.kinds import DocumentPath, Found, Guess, Options, Question

_KINDS = {"gpu": "gpus", "switch": "switches", "nic": "nics", "cpu": "cpus"}
_MAXIMUM_LINKS = 400_000
_NOTES_SHOWN = 40
#: A pattern may be 200 characters long, a host and a device share it.
_PART = 90

Rate = dict[str, Any]


class NetworkLink:
    """A link between two full names; `why` tells that the rate is a guess."""

    __slots__ = ("head", "one_way", "rate", "tail", "why")

    def __init__(self, tail: str, head: str, rate: Rate, why: str | None, one_way: bool) -> None:
        self.tail, self.head, self.rate, self.why, self.one_way = tail, head, rate, why, one_way


class Network:
    """Vertices by full name (`n0/gpu0`, `spine0`) in order, links, notes, questions."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.vertices: dict[str, tuple[str, str | None]] = {}
        self.links: list[NetworkLink] = []
        self.notes: list[str] = []
        self.questions: dict[str, Question] = {}
        self._numbers: dict[tuple[str | None, str], int] = {}
        self._hosts: set[str] = set()

    def host(self, name: str) -> str:
        """Add a host; its name, made acceptable and unique."""
        clean = clean_name(name) or "host"
        unique, number = clean, 1
        while unique in self._hosts:
            unique = f"{clean[:56]}_{number}"
            number += 1
        self._hosts.add(unique)
        return unique

    def add(self, kind: str, name: str, host: str | None = None) -> str:
        """Add a vertex of kind gpu, switch, nic or cpu; its full name, made acceptable and unique."""
        if len(self.vertices) >= MAXIMUM_VERTICES:
            raise InputError(f"there are more than {MAXIMUM_VERTICES:,} devices", where=self.source)
        clean = clean_name(name) or kind
        prefix = f"{host}/" if host is not None else ""
        unique, number = clean, self._numbers.get((host, clean), 1)
        while prefix + unique in self.vertices:
            unique = f"{clean[:56]}_{number}"
            number += 1
        self._numbers[host, clean] = number
        self.vertices[prefix + unique] = (kind, host)
        return prefix + unique

    def link(self, tail: str, head: str, rate: Rate | None, why: str | None = None, *, one_way: bool = False) -> None:
        """Add a link between two full names. Without a rate it is left to a question; a loop is left out and told."""
        if tail == head:
            self.note(f"left out a link of {tail} with itself")
        elif rate is not None:
            if len(self.links) >= _MAXIMUM_LINKS:
                raise InputError(f"there are more than {_MAXIMUM_LINKS:,} links", where=self.source)
            self.links.append(NetworkLink(tail, head, rate, why, one_way))

    def ask(self, question: Question) -> None:
        """Remember a question, once for each option."""
        self.questions.setdefault(question.option, question)

    def note(self, text: str) -> None:
        """Remember a sentence for people, once."""
        if text not in self.notes[-_NOTES_SHOWN:]:
            self.notes.append(text)

    def found(self, kind: str, options: Options, *, guesses: Iterable[Guess] = ()) -> Found:
        """The network as what a reader found. Raises InputError when it holds fewer than two GPUs."""
        gpus = sum(vertex_kind == "gpu" for vertex_kind, _ in self.vertices.values())
        if gpus < 2:
            raise InputError(
                f"the file describes {gpus} GPU{'s' * (gpus != 1)}; a collective needs at least 2", where=self.source
            )
        if all(host is None for _, host in self.vertices.values()):
            self.note("no hosts are named, so that all devices count as one host")
        writer = _Writer(self)
        document = {**header(self.source, options), **writer.body()}
        return Found(
            kind=kind,
            document=document,
            guesses=(*guesses, *writer.guesses),
            missing=tuple(self.questions.values()),
            notes=shown_notes(self.notes),
        )


def shown_notes(notes: Sequence[str]) -> tuple[str, ...]:
    """The notes, cut when there are very many."""
    if len(notes) <= _NOTES_SHOWN:
        return tuple(notes)
    return (*notes[:_NOTES_SHOWN], f"and {len(notes) - _NOTES_SHOWN} more such remarks")


def link_entries(links: Iterable[NetworkLink], base: DocumentPath, guesses: list[Guess]) -> list[dict[str, Any]]:
    """`links` as entries of a native document: all tails of one head and rate together, then all heads of one tail.

    Parallel links stay apart, since entries with equal ends add up. `base` is the path of the list.
    """
    by_head: dict[tuple[Any, ...], list[str]] = {}
    seen: dict[tuple[str, str], int] = {}
    for link in links:
        copy = seen.get((link.tail, link.head), 0)
        seen[link.tail, link.head] = copy + 1
        key = (link.head, tuple(link.rate.items()), link.why, link.one_way, copy)
        by_head.setdefault(key, []).append(link.tail)
    grouped: dict[tuple[Any, ...], list[str]] = {}
    for (head, rate, why, one_way, copy), tails in by_head.items():
        grouped.setdefault((tuple(tails), rate, why, one_way, copy), []).append(head)
    entries: list[dict[str, Any]] = []
    for (tails, rate, why, one_way, _), heads in grouped.items():
        if why is not None:
            guesses.append(Guess((*base, len(entries), rate[0][0]), why))
        entry = {"from": one_or_list(full_patterns(tails)), "to": one_or_list(full_patterns(heads)), **dict(rate)}
        entries.append({**entry, "dir": "one-way"} if one_way else entry)
    return entries


def full_patterns(names: Sequence[str]) -> list[str]:
    """Patterns that stand for exactly the full `names`: `n[0-3]/gpu[0-7]`, `spine[0-1]`."""
    hosts_of: dict[str, list[str]] = {}
    for name in names:
        host, _, device = name.rpartition("/")
        hosts_of.setdefault(device, []).append(host)
    devices_of: dict[tuple[str, ...], list[str]] = {}
    for device, hosts in hosts_of.items():
        devices_of.setdefault(tuple(hosts), []).append(device)
    patterns: list[str] = []
    for members, devices in devices_of.items():
        host_patterns = [f"{part}/" for part in short_patterns(members)] if members[0] else [""]
        patterns.extend(host + device for host in host_patterns for device in short_patterns(devices))
    return patterns


def short_patterns(names: Sequence[str]) -> list[str]:
    """`names_pattern`, where a pattern that would grow too long is written name by name."""
    patterns = names_pattern(names)
    return patterns if all(len(pattern) <= _PART for pattern in patterns) else list(names)


def one_or_list(patterns: list[str]) -> str | list[str]:
    """A single pattern stands alone."""
    return patterns[0] if len(patterns) == 1 else patterns


def device_lists(devices: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """(kind, name) pairs in order as `gpus`, `switches`, ... of a native document."""
    names: dict[str, list[str]] = {}
    for kind, name in devices:
        names.setdefault(kind, []).append(name)
    return {_KINDS[kind]: _device_value(kind, names[kind]) for kind in _KINDS if kind in names}


def _device_value(kind: str, names: list[str]) -> int | list[str]:
    if names == [f"{kind}{number}" for number in range(len(names))]:
        return len(names)
    patterns: list[str] = []
    start = 0
    for stop in range(1, len(names) + 1):
        if stop == len(names) or not _counts_up(names[stop - 1], names[stop]):
            patterns.extend(short_patterns(names[start:stop]))
            start = stop
    return patterns


def _counts_up(one: str, other: str) -> bool:
    """Whether `other` is `one` with the next number, so that a range keeps their order."""
    prefix = one.rstrip("0123456789")
    digits = one[len(prefix) :]
    return bool(digits) and len(digits) < 9 and other == f"{prefix}{int(digits) + 1}"


class _Writer:
    """A network on its way to a document."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.guesses: list[Guess] = []

    def body(self) -> dict[str, Any]:
        """The keys behind the header."""
        hosts: dict[str, list[str]] = {}
        loose: list[tuple[str, str]] = []
        for name, (kind, host) in self.network.vertices.items():
            if host is None:
                loose.append((kind, name))
            else:
                hosts.setdefault(host, []).append(name)
        if not hosts or any(kind != "switch" for kind, _ in loose):
            return self._flat()
        inside, outside = self._split_links()
        templates, groups = self._templates(hosts, inside)
        fabric: dict[str, Any] = device_lists(loose)
        entries = link_entries(outside, ("fabric", "links"), self.guesses)
        if entries:
            fabric["links"] = entries
        body: dict[str, Any] = {"templates": templates, "hosts": groups}
        return {**body, "fabric": fabric} if fabric else body

    def _flat(self) -> dict[str, Any]:
        """All devices in one box; a device of a host keeps its host in its name."""
        plain = {name: name.replace("/", ".") for name in self.network.vertices}
        if len(set(plain.values())) < len(plain):
            raise InputError("two devices would have the same name", where=self.network.source)
        for link in self.network.links:
            link.tail, link.head = plain[link.tail], plain[link.head]
        body = device_lists((kind, plain[name]) for name, (kind, _) in self.network.vertices.items())
        entries = link_entries(self.network.links, ("links",), self.guesses)
        return {**body, "links": entries} if entries else body

    def _split_links(self) -> tuple[dict[str, list[NetworkLink]], list[NetworkLink]]:
        inside: dict[str, list[NetworkLink]] = {}
        outside: list[NetworkLink] = []
        for link in self.network.links:
            host = self.network.vertices[link.tail][1]
            if host is not None and host == self.network.vertices[link.head][1]:
                inside.setdefault(host, []).append(link)
            else:
                outside.append(link)
        return inside, outside

    def _templates(
        self, hosts: dict[str, list[str]], inside: dict[str, list[NetworkLink]]
    ) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Hosts grouped by what is inside; groups of hosts in the order of the file."""
        names: dict[str, str] = {}
        templates: dict[str, Any] = {}
        groups: list[tuple[str, list[str]]] = []
        for host, devices in hosts.items():
            start = len(host) + 1
            local = [(self.network.vertices[name][0], name[start:]) for name in devices]
            links = [
                NetworkLink(link.tail[start:], link.head[start:], link.rate, link.why, link.one_way)
                for link in inside.get(host, ())
            ]
            signature = repr((local, sorted((k.tail, k.head, str(k.rate), k.one_way) for k in links)))
            if signature not in names:
                names[signature] = f"host{len(names)}" if names else "host"
                templates[names[signature]] = self._template(names[signature], local, links)
            if not groups or groups[-1][0] != names[signature]:
                groups.append((names[signature], []))
            groups[-1][1].append(host)
        return templates, [host_group(template, members) for template, members in groups]

    def _template(self, name: str, devices: list[tuple[str, str]], links: list[NetworkLink]) -> dict[str, Any]:
        template: dict[str, Any] = device_lists(devices)
        entries = link_entries(links, ("templates", name, "links"), self.guesses)
        return {**template, "links": entries} if entries else template


def host_group(template: str, members: list[str]) -> dict[str, Any]:
    """An entry of `hosts`."""
    if members == [f"n{number}" for number in range(len(members))]:
        return {"template": template, "count": len(members)}
    patterns: list[str] = []
    start = 0
    for stop in range(1, len(members) + 1):
        if stop == len(members) or not _counts_up(members[stop - 1], members[stop]):
            patterns.extend(short_patterns(members[start:stop]))
            start = stop
    return {"template": template, "names": one_or_list(patterns)}
