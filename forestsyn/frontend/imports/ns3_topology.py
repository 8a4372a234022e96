"""ns-3's topology text: `nodes switches links`, the ids of the switches, then `src dst rate delay error`.

Links are full duplex and written once. Nodes that are no switches are hosts, and each is taken to be one GPU.
"""

from __future__ import annotations

import re

from forestsyn.errors import InputError
from forestsyn.frontend.imports.compose_network import Network, Rate
from forestsyn.frontend.imports.kinds import Found, Options
from forestsyn.frontend.imports.simai_rates import checked_rate
from forestsyn.frontend.imports.text import split_lines

MAXIMUM_NODES = 100_000
_HEAD = re.compile(
    r"\s*[0-9]{1,7}\s+[0-9]{1,7}\s+[0-9]{1,8}\s*\n[0-9 \t]*\n\s*[0-9]+\s+[0-9]+\s+[0-9.]+\s*[A-Za-z/]+\s"
)

Link = tuple[int, int, Rate]


class Ns3Topology:
    """The reader."""

    kind = "ns3-topology"
    title = "ns-3 topology text"
    helps: str | None = None

    def recognizes(self, name: str, head: str) -> int:
        """How sure, 0 to 100."""
        return 85 if _HEAD.match(head) else 0

    def read(self, text: str, *, source: str, options: Options) -> Found:
        """The network. Raises InputError with the line."""
        lines = split_lines(text, source=source)
        nodes, count, declared = read_header(lines, 3, source)[:3]
        switches = read_ids(lines, count, nodes, source)
        network = Network(source)
        names = []
        gpus = 0
        for node in range(nodes):
            if node in switches:
                names.append(network.add("switch", f"sw{node}"))
            else:
                names.append(network.add("gpu", f"gpu{gpus}"))
                gpus += 1
        for one, other, rate in read_links(lines, nodes, declared, source):
            network.link(names[one], names[other], rate)
        network.note("each node that is no switch counts as one GPU; its NIC is not drawn in such files")
        return network.found(self.kind, options)


def read_header(lines: list[str], numbers: int, source: str) -> list[int]:
    """The whole numbers at the beginning of the first line. Raises InputError."""
    words = lines[0].split() if lines else []
    if len(words) < numbers or not all(re.fullmatch(r"[0-9]{1,9}", word) for word in words[:numbers]):
        raise InputError(f"the first line needs {numbers} whole numbers", where=f"{source}:1")
    values = [int(word) for word in words[:numbers]]
    if values[0] > MAXIMUM_NODES:
        raise InputError(
            f"the file asks for {values[0]:,} nodes, the limit is {MAXIMUM_NODES:,}", where=f"{source}:1"
        )
    return values


def read_ids(lines: list[str], count: int, nodes: int, source: str) -> list[int]:
    """The ids of the switches, on the second line. Raises InputError."""
    words = lines[1].split() if len(lines) > 1 else []
    where = f"{source}:2"
    if len(words) != count:
        raise InputError(f"{len(words)} switches are listed, the first line says {count}", where=where)
    ids = [int(word) for word in words if re.fullmatch(r"[0-9]{1,9}", word)]
    if len(ids) != count or len(set(ids)) != count or any(node >= nodes for node in ids):
        raise InputError(f"the ids of switches must differ and be below {nodes}", where=where)
    return ids


def read_links(lines: list[str], nodes: int, declared: int, source: str) -> list[Link]:
    """The links, in order. Raises InputError with the line; their number must be what the first line says."""
    links: list[Link] = []
    rates: dict[tuple[str, str | None], Rate] = {}
    for number, line in enumerate(lines[2:], start=3):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        where = f"{source}:{number}"
        ends = [int(word) for word in words[:2] if re.fullmatch(r"[0-9]{1,9}", word)]
        if len(words) < 3 or len(ends) != 2:
            raise InputError(f"cannot read the link '{line[:60]}'", where=where, hint="expected: src dst rate delay")
        if max(ends) >= nodes:
            raise InputError(f"there is no node {max(ends)} among {nodes} (ids start at 0)", where=where)
        key = (words[2], words[3] if len(words) > 3 else None)
        if key not in rates:
            if not words[2][-1:].isalpha():
                raise InputError(f"the rate '{words[2][:40]}' has no unit", where=where, hint="write 400Gbps")
            rates[key] = checked_rate(*key, where=where)
        links.append((ends[0], ends[1], rates[key]))
    if len(links) != declared:
        raise InputError(
            f"{len(links)} links are listed, the first line says {declared}", where=source, hint="the file may be cut"
        )
    return links
