"""From vertex ids to the names that the user gave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from forestsyn.core.shares import Shares
from forestsyn.ir.forest import Direction, Optimum
from forestsyn.ir.network import Cut
from forestsyn.ir.topology import Topology
from forestsyn.units import format_count

_NAMED = 6


def cut_vertices(topology: Topology, inside: Sequence[int]) -> tuple[int, ...]:
    """Topology indices of vertices given by flow-network id: ranks first, then the others in topology order."""
    ranks = set(topology.ranks)
    others = (vertex for vertex in range(len(topology.vertices)) if vertex not in ranks)
    order = (*topology.ranks, *others)
    return tuple(sorted(order[vertex] for vertex in inside))


def vertex_names(topology: Topology, vertices: Sequence[int]) -> list[str]:
    """The names of vertices given by topology index."""
    return [topology.vertices[vertex].name for vertex in vertices]


def cut_sentence(topology: Topology, optimum: Optimum) -> str:
    """What the bottleneck forces, told of the side with fewer ranks."""
    inside, outside = _cut_sides(topology, optimum.cut)
    small = len(inside) <= len(outside)
    verb = "leave" if small == (optimum.direction is Direction.OUT) else "enter"
    total = sum(optimum.weights)
    parts = "shards" if len(set(optimum.weights)) == 1 else "parts"
    load = "the message" if total == 1 else f"{optimum.cut.demand} of {total} {parts}"
    side = side_text(topology, inside if small else outside)
    return f"{load} must {verb} {side} through {decimal_text(optimum.cut.bandwidth)} GB/s"


def shares_sentence(shares: Shares) -> str:
    """Who roots how much of an allreduce, and what that gains."""
    proof = "" if shares.is_optimal else f"; no shares exceed {decimal_text(shares.limit_algbw)} GB/s"
    if len(set(shares.weights)) == 1:
        return (
            f"equal, 1/{len(shares.weights)} of the data each{', which is best' if shares.is_optimal else ''}{proof}"
        )
    counts = sorted(Counter(shares.shares).items(), reverse=True)
    told = ", ".join(f"{share} at {format_count(count, 'rank')}" for share, count in counts[:_NAMED])
    rest = f" and {format_count(len(counts) - _NAMED, 'more size')}" if len(counts) > _NAMED else ""
    gain = float(100 * (shares.algbw / shares.equal_algbw - 1))
    equal = decimal_text(shares.equal_algbw)
    return f"unequal, {told}{rest}: {gain:.3g} % above equal roots ({equal} GB/s algbw){proof}"


def ring_sentence(topology: Topology, cut: Cut) -> str:
    """Why rings can be no faster, told of the side with fewer ranks."""
    sides = _cut_sides(topology, cut)
    small = sides[0] if len(sides[0]) <= len(sides[1]) else sides[1]
    verb = "leave" if small is sides[0] else "enter"
    return (
        f"every ring must {verb} {side_text(topology, small)}, and {decimal_text(cut.bandwidth)} GB/s is all there is"
    )


def side_text(topology: Topology, ranks: Sequence[int]) -> str:
    """Ranks in few words: whole hosts by their name, the rest one by one, shortened when many."""
    sizes = Counter(topology.rank_host(rank) for rank in range(topology.rank_count))
    found = Counter(topology.rank_host(rank) for rank in ranks)
    whole = [host for host, count in found.items() if host is not None and sizes[host] == count > 1]
    names = [f"all of {host}" for host in whole]
    names += [topology.rank_name(rank) for rank in ranks if topology.rank_host(rank) not in whole]
    if len(names) <= _NAMED:
        return ", ".join(names)
    return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"


def decimal_text(value: Fraction) -> str:
    """At most two decimals, for people."""
    return f"{float(value):.2f}".rstrip("0").rstrip(".")


def _cut_sides(topology: Topology, cut: Cut) -> tuple[list[int], list[int]]:
    """The ranks inside and outside."""
    inside = [vertex for vertex in cut.inside if vertex < topology.rank_count]
    return inside, sorted(set(range(topology.rank_count)) - set(inside))
