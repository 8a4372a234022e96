"""Whatever the network, the patterns that are offered are right and their routes exist."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from forestsyn.ir.collective import Collective
from forestsyn.ir.target import Target
from forestsyn.ir.topology import Topology
from forestsyn.patterns import bandwidth_bound, find_candidates
from forestsyn.pipeline.bound import bound
from tests.patterns import RUNTIMES, check_pattern
from tests.strategies import LARGE_CLUSTERS, any_topologies, balanced_topologies, clusters

targets = st.sampled_from(RUNTIMES)


@settings(max_examples=20)
@given(st.one_of(any_topologies, clusters(sizes=LARGE_CLUSTERS)), st.sampled_from(Collective), targets, st.data())
def test_patterns_are_right(topology: Topology, collective: Collective, target: Target, data: st.DataObject) -> None:
    root = data.draw(st.integers(0, topology.rank_count - 1)) if collective.rooted else None
    found = find_candidates(topology, collective, root)
    names = [pattern.name for pattern in found.patterns]
    assert len(set(names)) == len(names)
    for pattern in found.patterns:
        check_pattern(pattern, topology, (target,))
    assert all(omission.reason for omission in found.omissions)


@given(balanced_topologies, st.sampled_from(Collective))
def test_no_pattern_beats_the_bound(topology: Topology, collective: Collective) -> None:
    result = bound(topology, collective, 0 if collective.rooted else None)
    for pattern in find_candidates(topology, collective).patterns:
        if pattern.schedule is not None:
            reached = bandwidth_bound(topology, pattern.schedule)
            assert reached <= result.limit_algbw
            if pattern.name.split()[0] == "ring" and not collective.rooted:
                assert reached <= result.ring_algbw
