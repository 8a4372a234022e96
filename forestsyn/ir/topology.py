"""The physical network: ranks, hosts, switches and links with exact bandwidth.

The one topology model of the project. Every front end ends here, and everything later reads only this.
Vertices are identified by their position in `Topology.vertices`; names are for people and never computed with.
"""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction

import msgspec

from forestsyn.errors import InputError


class VertexKind(StrEnum):
    """What a vertex is. Only a GPU can be a rank; everything else forwards and holds no data."""

    GPU = "gpu"
    SWITCH = "switch"
    NIC = "nic"
    CPU = "cpu"


class Vertex(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One device. `host` is the name of the machine that holds it, None for fabric switches.

    `multicast` / `reduce`: the switch can replicate one incoming copy, or combine several (NVLS, SHARP).
    """

    name: str
    kind: VertexKind
    host: str | None = None
    multicast: bool = False
    reduce: bool = False


class Link(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A physical directed link. Parallel links are merged: at most one `Link` per (tail, head).

    tail, head: indices into `Topology.vertices`. bandwidth: GB/s, exact. latency: µs, None where not stated.
    """

    tail: int
    head: int
    bandwidth: Fraction
    latency: Fraction | None = None


class Topology(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A cluster, ready to be scheduled.

    vertices: every device, in the order of the file. links: sorted by (tail, head).
    ranks: indices into `vertices`, in rank order: rank r is `vertices[ranks[r]]`. A GPU that is present but not
    a rank is a relay: it forwards like a switch.
    rates: which column of the rate table the bandwidths come from (spec, nccl or measured).
    notes: what a reader should know, e.g. the exceptions that were applied and their reasons.

    Raises InputError when names clash, an endpoint does not exist, a bandwidth is not positive, a link is a
    loop, a link is given twice, or fewer than two ranks remain.
    """

    name: str
    vertices: tuple[Vertex, ...]
    links: tuple[Link, ...]
    ranks: tuple[int, ...]
    rates: str = "spec"
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        count = len(self.vertices)
        names = [vertex.name for vertex in self.vertices]
        if len(set(names)) != count:
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"two vertices are both named '{twice}'", where=self.name, hint="rename one of them")
        if len(self.ranks) < 2:
            raise InputError(
                f"a collective needs at least 2 ranks, found {len(self.ranks)}",
                where=self.name,
                hint="add GPUs or list more of them under 'ranks'",
            )
        if len(set(self.ranks)) != len(self.ranks):
            raise InputError("the same GPU is listed twice as a rank", where=self.name)
        for rank in self.ranks:
            if not 0 <= rank < count or self.vertices[rank].kind is not VertexKind.GPU:
                raise InputError(f"rank vertex {rank} is not a GPU of this topology", where=self.name)
        previous = (-1, -1)
        for link in self.links:
            self._check_link(link, previous)
            previous = (link.tail, link.head)

    def _check_link(self, link: Link, previous: tuple[int, int]) -> None:
        count = len(self.vertices)
        if not (0 <= link.tail < count and 0 <= link.head < count):
            raise InputError(f"a link joins vertices {link.tail} and {link.head}, of {count}", where=self.name)
        text = f"link {self.vertices[link.tail].name} -> {self.vertices[link.head].name}"
        if link.tail == link.head:
            raise InputError(f"{text} is a loop", where=self.name)
        if link.bandwidth <= 0:
            raise InputError(f"{text} has bandwidth {link.bandwidth}, expected more than 0", where=self.name)
        if (link.tail, link.head) <= previous:
            raise InputError(f"{text} is given twice or out of order", where=self.name)

    @property
    def rank_count(self) -> int:
        """N, the number of ranks."""
        return len(self.ranks)

    def rank_name(self, rank: int) -> str:
        """The name of rank `rank`."""
        return self.vertices[self.ranks[rank]].name

    def rank_host(self, rank: int) -> str | None:
        """The host of rank `rank`."""
        return self.vertices[self.ranks[rank]].host
