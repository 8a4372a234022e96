"""`ibnetdiscover`, and the net files of ibsim in the same layout.

Records are parted by blank lines: a header `Switch 65 "S-guid" # "name" ...` or `Ca 1 "H-guid" # "host mlx5_0"`, then
a line for each connected port. Most cables are listed at both ends: a cable is the pair of its (record, port) ends.
"""

from __future__ import annotations

import re
from fractions import Fraction

import msgspec

from forestsyn.errors import InputError
from forestsyn.frontend.imports.box import clean_name
from forestsyn.frontend.imports.compose import Cable, FabricMap, compose, host_name
from forestsyn.frontend.imports.compose_network import Rate
from forestsyn.frontend.imports.kinds import Found, Options
from forestsyn.frontend.imports.simai_rates import decimal, link_answer, link_question
from forestsyn.frontend.imports.text import split_lines

_HEADER = re.compile(r'(Switch|Ca|Hca|Rt)\s+([0-9]{1,4})\s+"([^"]{1,200})"(?:.*?#\s*"([^"]*)")?', re.IGNORECASE)
_PORT = re.compile(r'\[([0-9]{1,4})\](?:\([0-9a-fA-F]+\))?\s*"([^"]{1,200})"\s*\[([0-9]{1,4})\](.*)')
_SPEED = re.compile(r"\b(1|2|4|8|12)x(SDR|DDR|QDR|FDR10|FDR|EDR|HDR|NDR|XDR)\b")
_WIDTH = re.compile(r"\bw=(1|4|12)\b")
_AGGREGATION = "Aggregation Node"
_NAMELESS = re.compile(r"Mellanox Technologies|ConnectX|^MT[0-9]{3,}|^$")
#: Gb/s of data on one lane.
_LANE = {
    name: Fraction(rate)
    for name, rate in (
        *(("SDR", "2"), ("DDR", "4"), ("QDR", "8"), ("FDR10", "10"), ("FDR", "13.6")),
        *(("EDR", "25"), ("HDR", "50"), ("NDR", "100"), ("XDR", "200")),
    )
}


class Record(msgspec.Struct, kw_only=True):
    """A switch or channel adapter: its identity, the name for people, and its cabled ports."""

    kind: str
    identity: str
    name: str
    line: int
    ports: list[tuple[int, str, int, str]]


class IbNetDiscover:
    """The reader. `ibstat` and a host list may stand beside the file."""

    kind = "ibnetdiscover"
    title = "ibnetdiscover"
    helps: str | None = None

    def recognizes(self, name: str, head: str) -> int:
        """How sure, 0 to 100."""
        lines = head.splitlines()
        headers = sum(_HEADER.match(line.strip()) is not None for line in lines)
        ports = sum(_PORT.match(line.strip()) is not None for line in lines)
        if headers and (ports or "guid=" in head):
            return 95
        return 0

    def read(self, text: str, *, source: str, options: Options) -> Found:
        """The fabric with its hosts. Raises InputError when the text is cut or contradicts itself."""
        records = read_records(text, source=source)
        return compose(_map(records, source, options), kind=self.kind, source=source, options=options)


def read_records(text: str, *, source: str) -> dict[str, Record]:
    """All records by identity, those of aggregation nodes included. Raises InputError."""
    records: dict[str, Record] = {}
    current: Record | None = None
    for number, line in enumerate(split_lines(text, source=source), start=1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        where = f"{source}:{number}"
        header = _HEADER.match(stripped)
        port = _PORT.match(stripped)
        if header is not None:
            kind = "switch" if header[1].lower() == "switch" else "router" if header[1].lower() == "rt" else "ca"
            if header[3] in records:
                raise InputError(f"'{header[3]}' is described twice", where=where, hint="give one run of the tool")
            current = Record(kind=kind, identity=header[3], name=(header[4] or "").strip(), line=number, ports=[])
            records[header[3]] = current
        elif port is not None:
            if current is None:
                raise InputError("a port stands before any switch or adapter", where=where)
            current.ports.append((int(port[1]), port[2], int(port[3]), _rate_text(port[4])))
        elif stripped.startswith("["):
            raise InputError(f"cannot read the port '{stripped[:60]}'", where=where, hint="the line may be cut")
    if not records:
        raise InputError("no switch and no adapter is listed", where=source)
    return records


def _rate_text(rest: str) -> str:
    """`4xNDR`, `4x` (ibsim) or nothing."""
    speed = _SPEED.search(rest)
    if speed is not None:
        return speed[0]
    width = _WIDTH.search(rest)
    return f"{width[1]}x" if width is not None and "#" not in rest else ""


def cables_of(records: dict[str, Record], *, source: str) -> dict[tuple[tuple[str, int], tuple[str, int]], str]:
    """Each cable once: its two (identity, port) ends, and its rate as written. Raises InputError."""
    cables: dict[tuple[tuple[str, int], tuple[str, int]], str] = {}
    partner: dict[tuple[str, int], tuple[str, int]] = {}
    for record in records.values():
        for port, remote, remote_port, rate in record.ports:
            one, other = (record.identity, port), (remote, remote_port)
            if one == other:
                raise InputError(f"port {port} is cabled to itself", where=f"{source}:{record.line}")
            for end, far in ((one, other), (other, one)):
                if partner.setdefault(end, far) != far:
                    raise InputError(
                        f"port {end[1]} of '{end[0]}' is cabled to two ports, of '{far[0]}' and '{partner[end][0]}'",
                        where=f"{source}:{record.line}",
                        hint="give one run of the tool",
                    )
            key = (min(one, other), max(one, other))
            cables[key] = cables.get(key) or rate
    return cables


def _map(records: dict[str, Record], source: str, options: Options) -> FabricMap:
    """Names instead of identities; aggregation nodes and adapters without a host are left out."""
    if not any(record.kind == "switch" for record in records.values()):
        raise InputError(
            f"no switch is listed, only {len(records)} adapter{'s' * (len(records) > 1)}",
            where=source,
            hint="its link is down, or the text is cut; run ibnetdiscover again",
        )
    fabric = FabricMap(switches=[], ports={}, cables=[], notes=[], guesses=[], questions=[])
    names = _Names(records, _helper_hosts(options), fabric)
    unknown = 0
    for ends, rate in cables_of(records, source=source).items():
        if any(identity not in records for identity, _ in ends):
            unknown += 1
            continue
        tail, head = (names.end(*end) for end in ends)
        value, why = _rate(rate, options, fabric)
        if tail is not None and head is not None and value is not None:
            fabric.cables.append(Cable(tail, head, value, why))
    if unknown:
        fabric.notes.append(f"left out, for the file does not describe their far end: {unknown} cable(s)")
    names.tell()
    return fabric


def _rate(text: str, options: Options, fabric: FabricMap) -> tuple[Rate | None, str | None]:
    match = _SPEED.fullmatch(text)
    if match is not None:
        gigabits = int(match[1]) * _LANE[match[2]]
        return {"bw": f"{decimal(gigabits)}Gb/s"}, None
    rate, why = link_answer(options)
    question = link_question("how fast its cables are")
    if rate is None and question not in fabric.questions:
        fabric.questions.append(question)
    return rate, why


class _Names:
    """From (identity, port) to the names of the document."""

    def __init__(self, records: dict[str, Record], hosts: dict[str, str], fabric: FabricMap) -> None:
        self.records, self.fabric, self.hosts = records, fabric, hosts
        self.nameless: list[str] = []
        self.aggregation = 0
        self._switches: dict[str, str] = {}
        self._adapters: dict[str, tuple[str, str]] = {}
        self._known: dict[str, str] = {}
        self._ports: dict[tuple[str, int], str] = {}
        taken: dict[str, str] = {}
        for record in records.values():
            if record.kind != "ca":
                name = host_name(_switch_name(record), taken)
                taken[name] = name
                self._switches[record.identity] = name
                fabric.switches.append(name)
            elif _AGGREGATION in record.name:
                self.aggregation += 1
            else:
                self._add_adapter(record)

    def _add_adapter(self, record: Record) -> None:
        guid = record.identity.removeprefix("H-").lower()
        host, _, device = record.name.rpartition(" ")
        if guid in self.hosts:
            host, device = self.hosts[guid], device if not _NAMELESS.search(record.name) else "nic"
        elif record.name == "" and not record.identity.startswith("H-"):
            host, device = record.identity, "nic"
        elif _NAMELESS.search(record.name):
            self.nameless.append(guid)
            return
        elif not host:
            host, device = record.name, "nic"
        known = self._known.get(host)
        if known is None:
            known = self._known[host] = host_name(host, self.fabric.ports)
            self.fabric.ports[known] = []
        self._adapters[record.identity] = (known, clean_name(device) or "nic")
        for port in sorted({port for port, *_ in record.ports} or {1}):
            self._port(record.identity, port)

    def _port(self, identity: str, port: int) -> str:
        host, device = self._adapters[identity]
        if (identity, port) not in self._ports:
            several = len({number for number, *_ in self.records[identity].ports}) > 1
            name = f"{device[:58]}_{port}" if several else device
            unique = host_name(name, dict.fromkeys(self.fabric.ports[host]))
            self.fabric.ports[host].append(unique)
            self._ports[identity, port] = f"{host}/{unique}"
        return self._ports[identity, port]

    def end(self, identity: str, port: int) -> str | None:
        """A switch, `host/port`, or None for what is left out."""
        if identity in self._switches:
            return self._switches[identity]
        return self._port(identity, port) if identity in self._adapters else None

    def tell(self) -> None:
        """Notes about what is left out."""
        if self.aggregation:
            self.fabric.notes.append(f"left out {self.aggregation} aggregation nodes (SHARP): they are no hosts")
        if self.nameless:
            self.fabric.notes.append(
                f"left out {len(self.nameless)} adapters that name no host, such as {', '.join(self.nameless[:4])}; "
                "their hosts had not set a node description"
            )


def _switch_name(record: Record) -> str:
    """`MF0;rack1-ib0:MQM8700/U1` is rack1-ib0; chips of one chassis keep their part: rack1-ib1-L01-U1."""
    text = record.name.rpartition(";")[2]
    name, _, part = text.partition(":")
    _, _, place = part.partition("/")
    if place.count("/") >= 1:
        name = f"{name}-{place}"
    return name or record.identity


def _helper_hosts(options: Options) -> dict[str, str]:
    """Hosts by the GUID of an adapter, from ibstat output beside the file."""
    hosts: dict[str, str] = {}
    for helper in options.helpers:
        host = None
        for line in split_lines(helper.text, source=helper.source):
            words = line.split()
            if len(words) == 2 and words[0] == "VM_hostname":
                host = words[1]
            elif len(words) == 1 and host is not None and re.fullmatch(r"(0x)?[0-9a-fA-F]{16}", words[0]):
                hosts[words[0].removeprefix("0x").lower()] = host
    return hosts
