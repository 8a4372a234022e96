"""The connections of a program on a topology: who is at their ends, which links they pass and what they cost."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
import numpy.typing as npt

from forestsyn.errors import InputError
from forestsyn.ir.profile import LinkClass, ProtocolCost
from forestsyn.ir.program import Program, Threadblock
from forestsyn.ir.topology import Topology
from forestsyn.simulate.routing import Router, link_class

#: (source rank, destination rank, channel)
Key = tuple[int, int, int]


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """path: its row in `Connections.paths`. rate: payload bytes per µs that one threadblock moves over it."""

    key: Key
    path: int
    latency_us: float
    rate: float


class Connections(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """All connections that carry something. paths: int64[P, W], links of each, padded with the number of links."""

    by_key: dict[Key, Connection]
    paths: npt.NDArray[np.int64]
    rerouted: tuple[tuple[int, int], ...]


def find_connections(program: Program, topology: Topology, cost: ProtocolCost, router: Router) -> Connections:
    """Routes everything that the steps of `program` send. Raises InputError where peers do not exist."""
    keys = sorted({key for rank, block in _blocks(program) for key in _used(program, rank, block)})
    routes = [router.links(*key) for key in keys]
    paths = sorted(set(routes))
    row = {path: number for number, path in enumerate(paths)}
    width = max(map(len, paths), default=1)
    padded = [(*path, *[len(topology.links)] * (width - len(path))) for path in paths]
    return Connections(
        by_key={
            key: _connection(topology, cost, key, path, row[path]) for key, path in zip(keys, routes, strict=True)
        },
        paths=np.array(padded, dtype=np.int64).reshape(-1, width),
        rerouted=tuple(sorted(router.rerouted)),
    )


def send_key(rank: int, block: Threadblock) -> Key:
    """The connection that threadblock `block` of `rank` sends on."""
    return rank, block.send_peer, block.channel


def receive_key(rank: int, block: Threadblock) -> Key:
    """The connection that threadblock `block` of `rank` receives on."""
    return block.receive_peer, rank, block.channel


def _connection(topology: Topology, cost: ProtocolCost, key: Key, path: tuple[int, ...], row: int) -> Connection:
    """A latency that the topology states is that of the cable; the profile's is what the runtime adds."""
    kind: LinkClass = link_class(topology, path)
    stated = sum(float(topology.links[link].latency or 0) for link in path)
    return Connection(
        key=key, path=row, latency_us=cost.latency_us[kind] + stated, rate=1e3 * cost.threadblock_GBps[kind]
    )


def _blocks(program: Program) -> Iterator[tuple[int, Threadblock]]:
    for rank, own in enumerate(program.ranks):
        for block in own.threadblocks:
            yield rank, block


def _used(program: Program, rank: int, block: Threadblock) -> Iterator[Key]:
    if any(step.operation.sends for step in block.steps):
        yield _checked(program, rank, block.send_peer, send_key(rank, block), "sends to")
    if any(step.operation.receives for step in block.steps):
        yield _checked(program, rank, block.receive_peer, receive_key(rank, block), "receives from")


def _checked(program: Program, rank: int, peer: int, key: Key, what: str) -> Key:
    if not 0 <= peer < len(program.ranks) or peer == rank:
        raise InputError(
            f"a threadblock of rank {rank} {what} rank {peer}, of {len(program.ranks)} ranks",
            where=program.name,
            hint="'forestsyn verify' lists all that is wrong with the program",
        )
    return key
