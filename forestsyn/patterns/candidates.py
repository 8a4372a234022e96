"""All classic patterns that exist on a topology."""

from __future__ import annotations

from forestsyn.errors import InternalError
from forestsyn.ir.collective import Collective
from forestsyn.ir.topology import Topology
from forestsyn.patterns.binary_trees import double_binary_trees
from forestsyn.patterns.hierarchical import hierarchical_patterns
from forestsyn.patterns.network import Network
from forestsyn.patterns.pattern import Candidates, Omission, Pattern
from forestsyn.patterns.recursive import recursive_patterns
from forestsyn.patterns.rings import ring_patterns
from forestsyn.patterns.stars import star_patterns

#: Schedules of rings grow with the square of the ranks, and so does the time to lay them: 15 s for 256.
RANKS_MAXIMUM = 256


def candidate_schedules(topology: Topology, collective: Collective, root: int | None = None) -> tuple[Pattern, ...]:
    """The patterns of `find_candidates`. root: the rank of broadcast and reduce (0 when not given), else ignored."""
    return find_candidates(topology, collective, root).patterns


def find_candidates(topology: Topology, collective: Collective, root: int | None = None) -> Candidates:
    """Every classic pattern that exists for `collective`, and the algorithms that do not, with the reason.

    Names are unique. Nothing is verified here, and whether a runtime can hold a pattern shows when it is lowered.
    """
    if collective.rooted:
        root = root or 0
        if not 0 <= root < topology.rank_count:
            raise InternalError(f"root {root} of {topology.rank_count} ranks")
    else:
        root = None
    if topology.rank_count > RANKS_MAXIMUM:
        reason = f"{topology.rank_count} ranks are more than the {RANKS_MAXIMUM} that patterns are made for"
        return Candidates(patterns=(), omissions=(Omission(name="all", reason=reason),))
    network = Network(topology)
    patterns: list[Pattern] = ring_patterns(network, collective, root)
    omissions: list[Omission] = []
    if not patterns:
        omissions.append(Omission(name="ring", reason="no ring through all ranks was found"))
    for family in (double_binary_trees, recursive_patterns, star_patterns, hierarchical_patterns):
        found, missing = family(network, collective, root)
        patterns += found
        omissions += missing
    return Candidates(patterns=tuple(patterns), omissions=tuple(omissions))
