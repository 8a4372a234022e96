"""The certificate of the upper bound: a cut, recomputed on the physical links.

Every rate above the cut's bandwidth / demand is impossible, whatever the algorithm: the weight inside the cut has to
cross it to reach the rank that the cut misses (or, for reductions, that rank's contributions have to enter it).
Nothing here looks for a cut; it only measures the one that is claimed.
"""

from __future__ import annotations

from fractions import Fraction

from forestsyn.ir.forest import Direction, Optimum
from forestsyn.ir.topology import Topology
from forestsyn.verify.certificate import reject_if_any


def verify_optimum(topology: Topology, optimum: Optimum) -> None:
    """Check that the cut of `optimum` is a cut of `topology` and proves its inverse rate.

    The ids in `optimum.cut.inside` number the ranks first, in rank order, then every other vertex in the order of
    the topology. Raises VerificationError listing everything found.
    """
    violations = _malformed(topology, optimum)
    reject_if_any("the optimum", violations)
    reject_if_any("the optimum", _wrong_values(topology, optimum))


def _malformed(topology: Topology, optimum: Optimum) -> list[str]:
    violations = []
    weights, inside = optimum.weights, optimum.cut.inside
    if len(weights) != topology.rank_count:
        violations.append(f"it has {len(weights)} root weights for {topology.rank_count} ranks")
    if any(weight < 0 for weight in weights) or not any(weights):
        violations.append("root weights must be at least 0 and one of them more")
    if optimum.trees_per_root < 1:
        violations.append(f"trees_per_root is {optimum.trees_per_root}, expected at least 1")
    if list(inside) != sorted(set(inside)):
        violations.append("the cut's vertices are not sorted or repeat")
    count = len(topology.vertices)
    violations += [f"the cut holds vertex {id_}, of {count}" for id_ in inside if not 0 <= id_ < count]
    return violations


def _wrong_values(topology: Topology, optimum: Optimum) -> list[str]:
    inside = set(optimum.cut.inside)
    demand = sum(weight for rank, weight in enumerate(optimum.weights) if rank in inside)
    bandwidth = _bandwidth_across(topology, inside, optimum.direction)
    violations = []
    if demand == 0:
        violations.append("no rank inside the cut has a root weight, so nothing has to cross it")
    if inside.issuperset(range(topology.rank_count)):
        violations.append("the cut holds every rank, so nothing has to cross it")
    if bandwidth != optimum.cut.bandwidth:
        violations.append(f"the cut claims {optimum.cut.bandwidth} GB/s across, its links have {bandwidth}")
    if demand != optimum.cut.demand:
        violations.append(f"the cut claims a root weight of {optimum.cut.demand} inside, its ranks have {demand}")
    if optimum.inverse_rate <= 0 or optimum.inverse_rate * bandwidth != demand:
        violations.append(f"the inverse rate is {optimum.inverse_rate}, its cut proves {demand} / {bandwidth}")
    return violations


def _bandwidth_across(topology: Topology, inside: set[int], direction: Direction) -> Fraction:
    """GB/s of the links that leave `inside` (OUT) or enter it (IN)."""
    ranks = set(topology.ranks)
    others = [vertex for vertex in range(len(topology.vertices)) if vertex not in ranks]
    members = {vertex for id_, vertex in enumerate([*topology.ranks, *others]) if id_ in inside}
    total = Fraction(0)
    for link in topology.links:
        sender, receiver = (link.tail, link.head) if direction is Direction.OUT else (link.head, link.tail)
        if sender in members and receiver not in members:
            total += link.bandwidth
    return total
