"""Classic patterns on machines of the catalog: which exist, that they are right, and what they reach."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path

import msgspec
import pytest

from forestsyn.errors import InternalError, UnsupportedError
from forestsyn.frontend import load_topology
from forestsyn.ir.collective import Collective
from forestsyn.ir.schedule import Schedule
from forestsyn.ir.target import EXECUTOR, MSCCLPP, Target
from forestsyn.patterns import Pattern, bandwidth_bound, candidate_schedules, find_candidates
from forestsyn.pipeline.bound import bound
from tests.determinism import assert_same_output
from tests.patterns import check_pattern, fits, lower_pattern
from tests.samples import chain_schedule, small_topology

ODD = ("full:3", "switch:5", "full:6", "ring:7", "switch:7")
SMALL = ("switch:2", "dgx1v", "torus:2x3", *ODD)
LARGE = ("dgx-a100:2", "torus:4x4")
LARGEST = ("gaudi2", "8x4090", "dgx1v:2", "mi250", "dgx-h100:4", "mi250:2", "dgx1v:4", "torus:4x8", "cross-dc:2")


@pytest.mark.parametrize("collective", Collective)
@pytest.mark.parametrize("name", SMALL)
def test_patterns_are_right_on_every_target(name: str, collective: Collective) -> None:
    topology = load_topology(name)
    patterns = candidate_schedules(topology, collective)
    assert len(patterns) >= 3
    assert len({pattern.name for pattern in patterns}) == len(patterns)
    for pattern in patterns:
        check_pattern(pattern, topology)


@pytest.mark.parametrize("collective", Collective)
@pytest.mark.parametrize("name", LARGE)
def test_patterns_are_right_on_larger_machines(name: str, collective: Collective) -> None:
    topology = load_topology(name)
    for pattern in candidate_schedules(topology, collective, 5):
        check_pattern(pattern, topology, (EXECUTOR,))


@pytest.mark.slow
@pytest.mark.parametrize("collective", Collective)
@pytest.mark.parametrize("name", LARGEST)
def test_patterns_are_right_on_the_largest_machines(name: str, collective: Collective) -> None:
    topology = load_topology(name)
    for pattern in candidate_schedules(topology, collective, 7):
        if fits(pattern, EXECUTOR):
            check_pattern(pattern, topology, (EXECUTOR,))


def names(topology: str, collective: Collective) -> list[str]:
    return [pattern.name for pattern in candidate_schedules(load_topology(topology), collective)]


def test_names() -> None:
    rings = ["ring", "ring x2", "ring x4", "ring x8"]
    assert names("dgx-a100:2", Collective.ALLGATHER) == [
        *rings,
        "recursive doubling",
        "shortest ways",
        "hierarchical",
    ]
    assert names("dgx-a100:2", Collective.ALLREDUCE) == [
        *rings,
        "double binary tree",
        "double binary tree x8",
        "recursive halving and doubling",
        "recursive doubling",
        "hierarchical one-shot",
        "shortest ways",
        "hierarchical",
    ]
    assert names("switch:8", Collective.ALLREDUCE) == [
        "ring",
        "double binary tree",
        "recursive halving and doubling",
        "recursive doubling",
        "all-pairs one-shot",
        "all-pairs two-shot",
    ]
    assert names("switch:6", Collective.BROADCAST) == [
        "ring",
        "double binary tree",
        "binomial tree",
        "all-pairs",
        "all-pairs two-shot",
    ]
    assert "bruck" in names("switch:6", Collective.REDUCE_SCATTER)


REACHED = (
    "dgx-a100",
    "dgx-a100:2",
    "dgx-a100:4",
    "dgx-h100:4",
    "p4d:2",
    "dgx1v",
    "dgx1v:2",
    "ndv2:2",
    "mi250:2",
    "mi300x",
    "gaudi3",
    "torus:4x4",
    "torus:4x4x2",
    "hypercube:4",
    "tpu-v5e",
    "8x4090",
    "fat-tree:4",
    "full:7",
)


@pytest.mark.parametrize("name", REACHED)
def test_rings_reach_what_rings_can_reach(name: str) -> None:
    topology = load_topology(name)
    patterns = candidate_schedules(topology, Collective.ALLGATHER)
    rings = [
        bandwidth_bound(topology, schedule_of(pattern)) for pattern in patterns if pattern.name.startswith("ring")
    ]
    assert max(rings) == bound(topology, Collective.ALLGATHER).ring_algbw


def schedule_of(pattern: Pattern) -> Schedule:
    assert pattern.schedule is not None
    return pattern.schedule


def find(topology: str, collective: Collective, name: str) -> Pattern:
    (found,) = (
        pattern for pattern in candidate_schedules(load_topology(topology), collective) if pattern.name == name
    )
    return found


def test_eight_rings_leave_and_enter_each_host_on_a_nic_of_their_own() -> None:
    topology = load_topology("dgx-a100:2")
    schedule = schedule_of(find("dgx-a100:2", Collective.ALLGATHER, "ring x8"))
    crossing = Counter(
        (source, destination)
        for source, destination in zip(schedule.source.tolist(), schedule.destination.tolist(), strict=True)
        if source // 8 != destination // 8
    )
    assert sorted(source for source, _ in crossing) == list(range(16))
    assert sorted(destination for _, destination in crossing) == list(range(16))
    # 15 of 16 chunks of each of the 128 / 16 rings cross.
    assert bandwidth_bound(topology, schedule) == Fraction(640, 3)


def test_the_ring_order_keeps_hosts_together() -> None:
    schedule = schedule_of(find("dgx-a100:2", Collective.BROADCAST, "ring"))
    order = [0, *schedule.destination[schedule.level.argsort()].tolist()]
    assert [rank // 8 for rank in order] in ([0] * 8 + [1] * 8, [0] * 1 + [1] * 8 + [0] * 7)


def test_hierarchical_is_faster_than_rings() -> None:
    topology = load_topology("dgx-a100:2")
    schedule = schedule_of(find("dgx-a100:2", Collective.ALLGATHER, "hierarchical"))
    assert bandwidth_bound(topology, schedule) == Fraction(2400, 7)
    assert schedule.depth == 2


def test_bandwidth_bound_counts_chunks_on_links() -> None:
    # Each of 3 pieces of 2 chunks passes two of the links of 2 GB/s each way: 4 chunks of 6 on the busiest.
    topology = small_topology()
    assert bandwidth_bound(topology, chain_schedule(Collective.ALLGATHER)) == Fraction(6, 2)


@pytest.mark.parametrize("removed", ["n1/gpu5", "n1/nic3", "n0/gpu[0-3]"])
@pytest.mark.parametrize("collective", [Collective.ALLGATHER, Collective.REDUCE])
def test_broken_hosts(tmp_path: Path, removed: str, collective: Collective) -> None:
    file = tmp_path / "broken.yaml"
    file.write_text(f'forestsyn: 1\nuse: dgx-a100:2\nexceptions:\n  - {{remove: "{removed}", reason: "broken"}}\n')
    topology = load_topology(str(file))
    found = find_candidates(topology, collective)
    assert any(pattern.name.startswith("ring x") for pattern in found.patterns)
    for pattern in found.patterns:
        check_pattern(pattern, topology, (EXECUTOR,))
    omitted = {omission.name: omission.reason for omission in found.omissions}
    if "gpu" in removed:
        left = 7 if "gpu5" in removed else 4
        assert omitted["hierarchical"] == f"hosts have {left} to 8 ranks"


def test_what_does_not_exist_is_told_with_the_reason() -> None:
    found = find_candidates(load_topology("mesh:3x3"), Collective.ALLREDUCE)
    reasons = {omission.name: omission.reason for omission in found.omissions}
    assert reasons["ring"] == "no ring through all ranks was found"
    assert "other ranks" in reasons["recursive doubling"]
    assert [pattern.name for pattern in found.patterns] == ["shortest ways"]


def test_too_many_ranks_are_told() -> None:
    found = find_candidates(load_topology("switch:257"), Collective.ALLREDUCE)
    assert found.patterns == ()
    assert "257 ranks" in found.omissions[0].reason


def test_a_target_that_cannot_hold_an_exchange_is_refused() -> None:
    few: Target = msgspec.structs.replace(EXECUTOR, threadblocks_max=4)
    pattern = find("switch:8", Collective.ALLREDUCE, "all-pairs one-shot")
    with pytest.raises(UnsupportedError) as caught:
        lower_pattern(pattern, few)
    assert (caught.value.limit, caught.value.value, caught.value.rank) == ("threadblocks_max", 7, 0)


def test_a_target_of_plans_takes_no_exchange() -> None:
    pattern = find("switch:8", Collective.ALLREDUCE, "all-pairs one-shot")
    with pytest.raises(UnsupportedError, match="no programs of threadblocks"):
        lower_pattern(pattern, MSCCLPP)


def test_a_root_that_does_not_exist_is_a_bug() -> None:
    with pytest.raises(InternalError):
        candidate_schedules(load_topology("switch:4"), Collective.REDUCE, 4)


def test_candidates_do_not_depend_on_the_hash_seed() -> None:
    assert_same_output(
        "from forestsyn.frontend import load_topology\n"
        "from forestsyn.patterns import find_candidates\n"
        "from forestsyn.ir.collective import Collective\n"
        "for name in ('dgx1v:2', 'mi250x-8gcd'):\n"
        "    found = find_candidates(load_topology(name), Collective.ALLREDUCE)\n"
        "    for pattern in found.patterns:\n"
        "        schedule = pattern.schedule\n"
        "        print(pattern.name, pattern.exchange, schedule and (schedule.routes, schedule.route.tolist()))\n"
    )
