"""Rings through all ranks that use the links evenly, as NCCL lays its channels.

Problem. Find c rings through all ranks such that c equal shares of the data, one on each, load the links
evenly. A ring passes each host once: it enters at one GPU, visits the others, and leaves at another one.

Method. One ring after the other. Ring r leaves the hosts at GPUs whose way out is the least loaded, the r-th of equal
ones, so that each NIC serves its own ring; inside a host it follows a Hamiltonian path (`hamiltonian`) between the
two. The first c rings have the rate c / (greatest load). Rings that are found one by one may leave no room for the
next, so several ways are tried: rings alone, or each with its reverse; with other preferences among equal steps. The
best set is kept.

References. NVIDIA/nccl, src/graph/search.cc, for the orders; edge-disjoint Hamiltonian cycles of tori: Bae and Bose,
IEEE Trans. Computers 52 (2003).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from random import Random
from typing import NamedTuple

from forestsyn.patterns.hamiltonian import Row, find_row
from forestsyn.patterns.network import Loads, Network, Path

#: Rings in a set: as many as channels are useful for on any machine.
RINGS_MAXIMUM = 16
#: Ways tried where the first does not reach what the links of every rank and host allow, and how many may in a row
#: be no better than the best before.
_TRIES_MAXIMUM = 24
_PATIENCE = 6


class Ring(NamedTuple):
    """order: the ranks, each followed by the next and the last by the first. paths: from each to its next."""

    order: tuple[int, ...]
    paths: tuple[Path, ...]


class RingSet(NamedTuple):
    """rates: GB/s of busbw, the rate of one rank, for the first 1, 2, … rings."""

    rings: tuple[Ring, ...]
    rates: tuple[Fraction, ...]


def find_rings(network: Network) -> RingSet | None:
    """The best set found of at most 16 rings; None when not even one was found."""
    best: RingSet | None = None
    ceiling = _ceiling(network)
    random = Random(0)
    order = list(range(network.rank_count))
    vain = 0
    for attempt in range(_TRIES_MAXIMUM):
        found = _lay_rings(network, order, paired=attempt % 2 > 0, careful=attempt % 4 > 1)
        vain += 1
        if found is not None and (best is None or max(found.rates) > max(best.rates)):
            best, vain = found, 0
        if vain > _PATIENCE or (best is not None and max(best.rates) >= ceiling):
            break
        if attempt >= 3:
            random.shuffle(order)
    return best


def _ceiling(network: Network) -> Fraction:
    """No rings are faster than the links of the poorest rank, or host, one way."""
    topology = network.topology
    hosts = {vertex: device.host for vertex, device in enumerate(topology.vertices)}
    groups: list[set[int]] = [{vertex} for vertex in topology.ranks]
    if len(network.hosts) > 1:
        for ranks in network.hosts:
            host = topology.rank_host(ranks[0])
            groups.append({vertex for vertex, name in hosts.items() if name == host})
    rates = []
    for group in groups:
        leaving = [link.bandwidth for link in topology.links if link.tail in group and link.head not in group]
        entering = [link.bandwidth for link in topology.links if link.head in group and link.tail not in group]
        rates += [sum(leaving, Fraction(0)), sum(entering, Fraction(0))]
    return min(rates)


def _lay_rings(network: Network, order: Sequence[int], *, paired: bool, careful: bool) -> RingSet | None:
    loads = Loads(network)
    rings: list[Ring] = []
    rates: list[Fraction] = []
    while len(rings) < RINGS_MAXIMUM:
        ring = _lay_ring(network, loads, len(rings), order, careful=careful)
        if ring is None:
            break
        pair = [ring]
        reverse = _reversed(network, loads, ring) if paired and len(rings) + 1 < RINGS_MAXIMUM else None
        if reverse is not None:
            pair.append(reverse)
        for _ in pair:
            rings.append(pair[len(rings) % len(pair)])
            rates.append(network.algbw(loads.costs, 1) * len(rings))
        if len(pair) == 2:
            rates[-2] = Fraction(0)  # counted with its reverse; half a pair is no set of its own
    return RingSet(tuple(rings), tuple(rates)) if rings else None


def _lay_ring(network: Network, loads: Loads, number: int, order: Sequence[int], *, careful: bool) -> Ring | None:
    """Ring `number`, host by host where that can be done; adds it to `loads`."""
    hosts = network.hosts
    if len(hosts) > 1:
        ring = _through_hosts(network, loads, number, order, careful=careful)
        if ring is not None:
            return ring
    row = find_row(network, loads, range(network.rank_count), 0, 0, order, careful=careful)
    return Ring(tuple(row.ranks), tuple(row.paths)) if row else None


def _through_hosts(
    network: Network, loads: Loads, number: int, order: Sequence[int], *, careful: bool
) -> Ring | None:
    hosts = network.hosts
    laid: list[Path] = []
    borders = _borders(network, loads, number)
    if borders is None:
        return None
    laid += [path for _, _, path in borders]
    ranks: list[int] = []
    paths: list[Path] = []
    for host, members in enumerate(hosts):
        entry, (leave, _, border) = borders[host - 1][1], borders[host]
        row: Row | None = Row([entry], [])
        if len(members) > 1:
            row = find_row(network, loads, members, entry, leave, order, careful=careful)
        if row is None:
            for path in laid:
                loads.add(path, -1)
            return None
        laid += row.paths
        ranks += row.ranks
        paths += [*row.paths, border]
    return Ring(tuple(ranks), tuple(paths))


def _borders(network: Network, loads: Loads, number: int) -> list[tuple[int, int, Path]] | None:
    """(leaving rank, entering rank of the next host, path) of each host; adds the paths to `loads`."""
    hosts = network.hosts
    borders: list[tuple[int, int, Path]] = []
    for host, members in enumerate(hosts):
        following = hosts[(host + 1) % len(hosts)]
        entered = borders[-1][1] if borders else None
        barred = borders[0][0] if host == len(hosts) - 1 else None
        choices = []
        for place, leave in enumerate(members):
            if leave == entered and len(members) > 1:
                continue
            for arrival, entry in enumerate(following):
                if entry == barred and len(following) > 1:
                    continue
                best = loads.best(leave, entry)
                if best is not None:
                    turn = (place - number) % len(members), (arrival - number - 1) % len(following)
                    choices.append((best[0], len(best[1].links), turn, leave, entry, best[1]))
        if not choices:
            for *_, path in borders:
                loads.add(path, -1)
            return None
        *_, leave, entry, path = min(choices, key=lambda choice: choice[:5])
        loads.add(path)
        borders.append((leave, entry, path))
    return borders


def _reversed(network: Network, loads: Loads, ring: Ring) -> Ring | None:
    """The ring walked backwards; adds it to `loads`."""
    order = (ring.order[0], *ring.order[:0:-1])
    paths: list[Path] = []
    for position, source in enumerate(order):
        best = loads.best(source, order[(position + 1) % len(order)])
        if best is None:
            for path in paths:
                loads.add(path, -1)
            return None
        loads.add(best[1])
        paths.append(best[1])
    return Ring(order, tuple(paths))
