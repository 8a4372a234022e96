"""Times that can be computed by hand. Sizes and rates are such that a message of 1000 bytes takes 1 µs at 1 GB/s."""

from __future__ import annotations

from fractions import Fraction

import msgspec
import pytest

from forestsyn.ir.program import Program
from forestsyn.ir.topology import Topology
from forestsyn.simulate import prepare, simulate, simulate_program
from tests.simulation import block, make_profile, make_program, network, step

PAIR = network(2, {(0, 1): 10, (1, 0): 10})


def one_way(messages: int = 1, count: int = 1, chunks: int = 1) -> Program:
    """Rank 0 sends to rank 1."""
    return make_program(
        [block(1, -1, *[step("s", count)] * messages)], [block(-1, 0, *[step("r", count)] * messages)], chunks=chunks
    )


def time_of(program: Program, topology: Topology, size: int, **costs: float) -> float:
    return simulate_program(program, topology, make_profile(**costs), size).time_us  # type: ignore[arg-type]


def test_one_message_pays_launch_step_flow_latency_step_and_copy() -> None:
    time = time_of(one_way(), PAIR, 1000, launch_us=5, step_us=0.25, latency_us=2)
    assert time == pytest.approx(5 + 0.25 + 1 + 2 + 0.25 + 1)


def test_a_link_slower_than_the_threadblock_decides() -> None:
    assert time_of(one_way(), network(2, {(0, 1): 0.5, (1, 0): 1}), 1000) == pytest.approx(2 + 1)


def test_slices_overlap_sending_and_copying() -> None:
    assert time_of(one_way(), PAIR, 1000, slices=2) == pytest.approx(1 + 0.5)


def test_the_step_is_paid_once_for_a_message_of_two_slices() -> None:
    # slices leave at 0.1 + 0.5 and 1.1; the receiver starts at 0.6 + 0.1 and is done with the first at 1.2
    assert time_of(one_way(), PAIR, 1000, slices=2, step_us=0.1) == pytest.approx(1.2 + 0.5)


def test_small_messages_are_one_slice() -> None:
    """Below 1/32 of the size of a slice nothing is left for the second one."""
    simulation = simulate_program(one_way(), PAIR, make_profile(message_bytes=64_000, slices=2), 1000, record=True)
    assert simulation.time_us == pytest.approx(2)


def test_bytes_on_the_wire_follow_the_efficiency() -> None:
    link = network(2, {(0, 1): 1, (1, 0): 1})
    simulation = simulate_program(one_way(), link, make_profile(efficiency=0.5), 1000)
    assert simulation.time_us == pytest.approx(2 + 1)
    assert simulation.link_bytes.tolist() == [2000, 0]
    assert simulation.link_busy.tolist() == pytest.approx([2 / 3, 0])


def test_latency_does_not_occupy_the_sender() -> None:
    time = time_of(one_way(messages=4), PAIR, 1000, latency_us=100, messages_in_flight=4)
    assert time == pytest.approx(4 + 100 + 1)


def test_a_full_fifo_holds_the_sender_back() -> None:
    # one message in flight: send 1, latency 3, copy 1, and only then the next
    time = time_of(one_way(messages=3), PAIR, 1000, latency_us=3, messages_in_flight=1)
    assert time == pytest.approx(3 * 5)
    time = time_of(one_way(messages=3), PAIR, 1000, latency_us=3, messages_in_flight=2)
    assert time == pytest.approx(5 + 5)  # the third leaves when the first was taken


def test_two_flows_share_a_link_equally() -> None:
    star = network(3, {(0, 3): 1, (3, 1): 1, (3, 2): 1, (1, 3): 1, (2, 3): 1, (3, 0): 1}, switches=1)
    program = make_program(
        [block(1, -1, step("s")), block(2, -1, step("s"))], [block(-1, 0, step("r"))], [block(-1, 0, step("r"))]
    )
    assert time_of(program, star, 1000) == pytest.approx(2 + 1, abs=1e-4)


def test_a_slow_flow_leaves_the_rest_of_a_link_to_the_other() -> None:
    links = {(0, 3): 1, (3, 1): 0.25, (3, 2): 1, (1, 3): 1, (2, 3): 1, (3, 0): 1}
    program = make_program(
        [block(1, -1, step("s")), block(2, -1, step("s", 3))], [block(-1, 0, step("r"))], [block(-1, 0, step("r", 3))]
    )
    # 1000 bytes at 0.25 take 4 µs, and 3000 at 0.75 too; then the copies: 1 and the last of three messages, 1
    time = time_of(program, network(3, links, switches=1), 1000, messages_in_flight=3, message_bytes=1000)
    assert time == pytest.approx(4 + 1, abs=1e-4)


def test_an_ended_flow_gives_its_share_back() -> None:
    star = network(3, {(0, 3): 1, (3, 1): 1, (3, 2): 1, (1, 3): 1, (2, 3): 1, (3, 0): 1}, switches=1)
    program = make_program(
        [block(1, -1, step("s")), block(2, -1, step("s", 2))], [block(-1, 0, step("r"))], [block(-1, 0, step("r", 2))]
    )
    # half each until 2 µs, then the second message goes at full speed
    assert time_of(program, star, 1000, messages_in_flight=2) == pytest.approx(3 + 1, rel=0.01)


def test_forwarding_step_holds_its_slot_until_it_has_sent() -> None:
    chain = network(3, {(0, 1): 10, (1, 2): 10, (2, 0): 10})
    program = make_program(
        [block(1, -1, *[step("s")] * 2)], [block(2, 0, *[step("rcs")] * 2)], [block(-1, 1, *[step("r")] * 2)]
    )
    # with one place: 0 sends 0-1, 1 forwards 1-2, the place is free, 0 sends 2-3, 1 forwards 3-4, 2 copies 4-5
    assert time_of(program, chain, 1000, messages_in_flight=1) == pytest.approx(5)
    assert time_of(program, chain, 1000, messages_in_flight=2) == pytest.approx(4)


def test_steps_wait_for_flags_and_nops_add_waits() -> None:
    program = make_program(
        [
            block(-1, -1, step("cpy", 1), step("cpy", 2, flagged=True)),
            block(-1, -1, step("re", 4, flagged=True)),
            block(-1, -1, step("nop", 0, waits=(0, 0)), step("cpy", 1, waits=(1, 0))),
        ],
        [],
    )
    assert time_of(program, PAIR, 1000, copy=2) == pytest.approx(0.5 * (4 + 1))  # ends as max(3, 4) + 1 halves


def test_copies_cost_a_step_and_the_copy_rate() -> None:
    program = make_program([block(-1, -1, step("cpy", 3))], [])
    assert time_of(program, PAIR, 1000, copy=2, step_us=0.5) == pytest.approx(0.5 + 1.5)


def test_long_steps_split_into_messages() -> None:
    """4 chunks of 400 bytes, two of which fit into a message: two messages, each with its overhead."""
    simulation = simulate_program(one_way(count=4), PAIR, make_profile(step_us=0.25), 400, record=True)
    assert simulation.time_us == pytest.approx(2 * (0.25 + 0.8) + 0.25 + 0.8)
    assert [(row.operation, row.payload) for row in simulation.activities if row.operation == "s"] == [("s", 800)] * 2


def test_tiles_follow_each_other_without_a_pause() -> None:
    """2500 bytes in messages of 1000: two full tiles and a half one; copies end at 2, 3 and 3.5 µs."""
    simulation = simulate_program(one_way(), PAIR, make_profile(), 2500)
    assert (simulation.tiles, simulation.simulated_tiles) == (3, 3)
    assert simulation.time_us == pytest.approx(3.5)


def test_many_tiles_are_extrapolated_exactly_where_they_are_steady() -> None:
    prepared = prepare(one_way(), PAIR, make_profile(step_us=0.1, latency_us=3, launch_us=1))
    whole = simulate(prepared, 99_600, budget=10**6)
    part = simulate(prepared, 99_600, budget=20)
    assert (whole.tiles, whole.simulated_tiles, part.simulated_tiles) == (100, 100, 10)
    assert part.time_us == pytest.approx(whole.time_us)


def test_stated_latencies_of_links_come_on_top() -> None:
    links = tuple(msgspec.structs.replace(link, latency=Fraction(7)) for link in PAIR.links)
    topology = msgspec.structs.replace(PAIR, links=links)
    assert time_of(one_way(), topology, 1000, latency_us=2) == pytest.approx(1 + 2 + 7 + 1)


def test_recording_changes_no_time() -> None:
    prepared = prepare(one_way(messages=5), PAIR, make_profile(slices=2, step_us=0.1, latency_us=1))
    assert simulate(prepared, 7300, record=True).time_us == simulate(prepared, 7300).time_us
