"""SimAI's topology text: `nodes gpus_per_server nvswitches switches links gpu_type`, switch ids, then the links.

GPUs come first, `gpus_per_server` to a server; NVSwitches are the first of the listed switches. The NIC of a GPU is
not drawn. The name of such a file does not bind: what counts is inside.
"""

from __future__ import annotations

import re

from forestsyn.errors import InputError
from forestsyn.frontend.imports.compose_network import Network
from forestsyn.frontend.imports.kinds import Found, Options
from forestsyn.frontend.imports.ns3_topology import Link, read_header, read_ids, read_links
from forestsyn.frontend.imports.text import split_lines

_HEAD = re.compile(r"\s*(?:[0-9]{1,7}\s+){5}[A-Za-z][A-Za-z0-9_-]*\s*\n[0-9 \t]*\n")


class SimAiTopology:
    """The reader."""

    kind = "simai-topology"
    title = "SimAI topology text"
    helps: str | None = None

    def recognizes(self, name: str, head: str) -> int:
        """How sure, 0 to 100."""
        return 95 if _HEAD.match(head) else 0

    def read(self, text: str, *, source: str, options: Options) -> Found:
        """The network, with a host for each server. Raises InputError with the line."""
        lines = split_lines(text, source=source)
        nodes, per_server, nvswitches, switches, declared = read_header(lines, 5, source)
        ids = read_ids(lines, nvswitches + switches, nodes, source)
        if nvswitches + switches > nodes or per_server < 1:
            raise InputError(f"{nodes} nodes and {per_server} GPUs a server do not fit", where=f"{source}:1")
        links = read_links(lines, nodes, declared, source)
        network = Network(source)
        names = _name_nodes(network, nodes, per_server, ids, nvswitches, links)
        for one, other, rate in links:
            network.link(names[one], names[other], rate)
        network.note("the NIC of each GPU is not drawn in such files: its link to a switch stands for it")
        linked = {end for one, other, _ in links for end in (one, other)}
        idle = sum(node not in linked for node in ids)
        if idle:
            network.note(f"{idle} switches have no link")
        return network.found(self.kind, options)


def _name_nodes(
    network: Network, nodes: int, per_server: int, ids: list[int], nvswitches: int, links: list[Link]
) -> list[str]:
    """Names by id: servers n0, n1, ... with their GPUs and the NVSwitches that only they use."""
    switch_ids = set(ids)
    gpus = [node for node in range(nodes) if node not in switch_ids]
    server = {node: place // per_server for place, node in enumerate(gpus)}
    near: dict[int, set[int | None]] = {}
    for one, other, _ in links:
        for end, far in ((one, other), (other, one)):
            if far in server:
                near.setdefault(end, set()).add(server[far])
    names = [""] * nodes
    hosts = {number: network.host(f"n{number}") for number in range(-(-len(gpus) // per_server))}
    for place, node in enumerate(gpus):
        names[node] = network.add("gpu", f"gpu{place % per_server}", hosts[place // per_server])
    for place, node in enumerate(ids):
        owners = near.get(node, set())
        owner = next(iter(owners)) if len(owners) == 1 else None
        if place < nvswitches and owner is not None:
            names[node] = network.add("switch", "nvsw", hosts[owner])
        else:
            names[node] = network.add("switch", f"{'nvsw' if place < nvswitches else 'sw'}{node}")
    return names
