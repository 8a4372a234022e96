"""Routes, fair shares, what runs wait for, and what is refused."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forestsyn.errors import InputError
from forestsyn.frontend import load_topology
from forestsyn.ir.profile import LinkClass
from forestsyn.ir.program import Program, Protocol
from forestsyn.ir.topology import Topology
from forestsyn.simulate import critical_path, simulate_program
from forestsyn.simulate.routing import Router, link_class
from forestsyn.simulate.sharing import Sharing
from tests.simulation import block, make_profile, make_program, network, step

PAIR = network(2, {(0, 1): 10, (1, 0): 10})


def names(topology: Topology, links: tuple[int, ...]) -> list[str]:
    """The vertices of a route."""
    ends = [topology.links[number] for number in links]
    return [topology.vertices[vertex].name for vertex in (ends[0].tail, *(link.head for link in ends))]


def test_routes_pass_no_rank_though_that_were_as_short() -> None:
    topology = network(3, {(0, 1): 9, (1, 2): 9, (0, 3): 1, (3, 2): 1, (2, 0): 1}, switches=1)
    router = Router(topology)
    assert names(topology, router.links(0, 2, 0)) == ["g0", "sw0", "g2"]
    assert not router.rerouted


def test_routes_prefer_few_links_then_wide_ones() -> None:
    links = {(0, 2): 1, (2, 1): 1, (0, 3): 5, (3, 1): 5, (0, 4): 9, (4, 5): 9, (5, 1): 9, (1, 0): 1}
    topology = network(2, links, switches=4)
    assert names(topology, Router(topology).links(0, 1, 0)) == ["g0", "sw1", "g1"]


def test_channels_take_equal_routes_in_turn() -> None:
    topology = network(2, {(0, 2): 1, (2, 1): 1, (0, 3): 1, (3, 1): 1, (1, 0): 1}, switches=2)
    router = Router(topology)
    middles = [names(topology, router.links(0, 1, channel))[1] for channel in range(4)]
    assert sorted(set(middles)) == ["sw0", "sw1"]
    assert middles[0] != middles[1]
    assert middles[:2] == middles[2:]


def test_detours_through_ranks_are_reported() -> None:
    ring = network(3, {(0, 1): 1, (1, 2): 1, (2, 0): 1})
    program = make_program([block(2, -1, step("s"))], [], [block(-1, 0, step("r"))])
    simulation = simulate_program(program, ring, make_profile(), 1000)
    assert simulation.rerouted == ((0, 2),)
    assert simulation.link_bytes.tolist() == [1000, 1000, 0]


def test_given_routes_are_taken_and_checked() -> None:
    topology = network(2, {(0, 1): 1, (0, 2): 5, (2, 1): 5, (1, 0): 1}, switches=1)
    program = make_program([block(1, -1, step("s"))], [block(-1, 0, step("r"))])
    simulation = simulate_program(program, topology, make_profile(), 1000, routes={(0, 1): ((0, 2, 1),)})
    assert simulation.link_bytes.tolist() == [0, 1000, 0, 1000]
    with pytest.raises(InputError, match="no way between them"):
        simulate_program(program, topology, make_profile(), 1000, routes={(0, 1): ((0, 2),)})


@pytest.mark.parametrize(
    ("machine", "pair", "kind"),
    [
        ("dgx-a100:2", (0, 1), LinkClass.PEER),
        ("dgx-a100:2", (0, 8), LinkClass.NETWORK),
        ("mi250:2", (0, 16), LinkClass.NETWORK),
        ("gb200-nvl72", (0, 71), LinkClass.PEER),
        ("8x4090", (0, 7), LinkClass.HOST),
        ("torus:4x4", (0, 1), LinkClass.PEER),
    ],
)
def test_classes_of_links(machine: str, pair: tuple[int, int], kind: LinkClass) -> None:
    topology = load_topology(machine)
    assert link_class(topology, Router(topology).links(*pair, 0)) is kind


@st.composite
def sharings(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Paths padded with the number of links, capacities, limits; ties are common."""
    links = draw(st.integers(1, 6))
    paths = draw(st.lists(st.sets(st.integers(0, links - 1), min_size=1, max_size=3), min_size=1, max_size=12))
    padded = [sorted(path) + [links] * (3 - len(path)) for path in paths]
    value = st.sampled_from([0.5, 1.0, 2.0, 3.0, 7.0, 1e6])
    capacity = draw(st.lists(value, min_size=links, max_size=links))
    limit = draw(st.lists(value, min_size=len(paths), max_size=len(paths)))
    return np.array(padded), np.array(capacity), np.array(limit)


@given(case=sharings())
def test_shares_are_max_min_fair(case: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    """No link is overfull, and each flow is at its limit or passes a full link on which nobody has more."""
    paths, capacity, limit = case
    rates, residual = Sharing(paths, capacity).rates(np.arange(len(paths)), limit)
    used = np.zeros(len(capacity))
    for path, rate in zip(paths, rates, strict=True):
        for link in path[path < len(capacity)]:
            used[link] += rate
    assert (used <= capacity * (1 + 1e-9)).all()
    assert np.allclose(capacity - used, residual[:-1], atol=1e-6)
    for path, rate, own in zip(paths, rates, limit, strict=True):
        full = [link for link in path if link < len(capacity) and used[link] >= capacity[link] * (1 - 1e-9)]
        most = [max(rates[(paths == link).any(axis=1)]) for link in full]
        assert rate >= own * (1 - 1e-9) or any(rate >= other * (1 - 1e-9) for other in most)


def exchange(count: int) -> Program:
    """Both ranks send everything before they receive, each in one threadblock."""
    steps = [*[step("s")] * count, *[step("r")] * count]
    return make_program([block(1, 1, *steps)], [block(0, 0, *steps)])


def test_sends_beyond_the_fifo_are_stuck_and_the_cycle_is_told() -> None:
    profile = make_profile(messages_in_flight=2)
    assert simulate_program(exchange(2), PAIR, profile, 1000).stuck is None
    simulation = simulate_program(exchange(3), PAIR, profile, 1000)
    assert simulation.time_us == float("inf")
    assert simulation.stuck is not None
    assert simulation.stuck.waits == (
        "rank 0 threadblock 0 step 2 waits until rank 1 (threadblock 0) takes a message",
        "rank 1 threadblock 0 step 2 waits until rank 0 (threadblock 0) takes a message",
    )


def test_waits_for_nothing_are_told() -> None:
    program = make_program([block(-1, -1, step("cpy", waits=(1, 0))), block(-1, -1, step("cpy"))], [])
    simulation = simulate_program(program, PAIR, make_profile(), 1000)
    assert simulation.stuck is not None
    assert simulation.stuck.waits == ("rank 0 threadblock 0 step 0 waits for a step that never says that it is done",)
    program = make_program([], [block(-1, 0, step("r"))])
    simulation = simulate_program(program, PAIR, make_profile(), 1000)
    assert simulation.stuck is not None
    assert simulation.stuck.waits == ("rank 1 threadblock 0 step 0 waits for a message from rank 0",)


def test_a_cycle_of_dependencies_names_their_steps() -> None:
    first = block(-1, -1, step("cpy", waits=(1, 1)), step("cpy", flagged=True))
    second = block(-1, -1, step("cpy", waits=(0, 1)), step("cpy", flagged=True))
    simulation = simulate_program(make_program([first, second], []), PAIR, make_profile(), 1000)
    assert simulation.stuck is not None
    assert simulation.stuck.waits[0] == "rank 0 threadblock 0 step 0 waits for step 1 of threadblock 1"


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (make_program([], [], []), "for 3 ranks"),
        (make_program([], [], protocol=Protocol.LL), "no costs for LL"),
        (make_program([block(5, -1, step("s"))], []), "sends to rank 5, of 2 ranks"),
        (make_program([block(-1, -1, step("r"))], []), "receives from rank -1"),
        (make_program([block(1, -1, step("s")), block(1, -1, step("s"))], []), "share one end"),
    ],
)
def test_what_cannot_be_simulated_is_refused(program: Program, words: str) -> None:
    with pytest.raises(InputError, match=words):
        simulate_program(program, PAIR, make_profile(), 1000)


def test_unreachable_ranks_and_empty_messages_are_refused() -> None:
    program = make_program([block(1, -1, step("s"))], [block(-1, 0, step("r"))])
    with pytest.raises(InputError, match="no way leads from rank 0"):
        simulate_program(program, network(2, {(1, 0): 1}), make_profile(), 1000)
    with pytest.raises(InputError, match="0 bytes"):
        simulate_program(program, PAIR, make_profile(), 0)


def test_the_critical_path_leads_from_the_start_to_the_end() -> None:
    chain = network(3, {(0, 1): 10, (1, 2): 10, (2, 0): 10})
    program = make_program(
        [block(1, -1, *[step("s")] * 3)], [block(2, 0, *[step("rcs")] * 3)], [block(-1, 1, *[step("r")] * 3)]
    )
    profile = make_profile(launch_us=2, step_us=0.5, latency_us=1, slices=2)
    simulation = simulate_program(program, chain, profile, 4000, record=True)
    assert len(simulation.activities) == 4 * 9
    assert [row.end_us for row in simulation.activities] == sorted(row.end_us for row in simulation.activities)
    path = critical_path(simulation)
    assert path[-1].end_us == simulation.time_us
    assert path[0].cause is None
    assert path[0].ready_us == 2
    assert {row.waited_for for row in path} >= {"message", "threadblock"}
    assert all(simulation.activities[late.cause] == early for early, late in pairwise(path))
    for row in simulation.activities:
        assert row.ready_us <= row.start_us < row.end_us


def test_waits_have_their_reasons() -> None:
    program = make_program(
        [block(1, -1, step("s"), step("s"), step("s"))],
        [block(-1, 0, step("r"), step("r"), step("r", flagged=True)), block(-1, -1, step("cpy", waits=(0, 2)))],
    )
    simulation = simulate_program(program, PAIR, make_profile(latency_us=5), 1000, record=True)
    rows = {(row.rank, row.threadblock, row.step): row for row in simulation.activities}
    assert [rows[0, 0, number].waited_for for number in range(3)] == ["threadblock", "threadblock", "slot"]
    assert [rows[1, 0, number].waited_for for number in range(3)] == ["message", "threadblock", "message"]
    last = rows[1, 1, 0]
    assert last.waited_for == "dependency"
    assert last.cause is not None
    assert simulation.activities[last.cause] == rows[1, 0, 2]
    assert critical_path(simulate_program(program, PAIR, make_profile(), 1000)) == ()
