"""No simulated time beats the proven bound; runs are deterministic and behave as sizes grow."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forestsyn.ir.collective import Collective
from forestsyn.ir.program import Protocol
from forestsyn.ir.target import TARGETS
from forestsyn.ir.topology import Topology
from forestsyn.pipeline.compile import compile_topology
from forestsyn.simulate import prepare, simulate, simulate_program
from tests.determinism import assert_same_output
from tests.simulation import make_profile
from tests.strategies import clusters, shapes, switchless_topologies, tame_bandwidths, topologies

networks = st.one_of(
    topologies(maximum_ranks=5, bandwidth=tame_bandwidths),
    switchless_topologies(maximum_ranks=5, bandwidth=tame_bandwidths),
    clusters(),
    shapes(),
)
sizes = st.one_of(st.integers(1, 10**4), st.integers(10**4, 10**7), st.integers(10**7, 10**10))


@given(
    topology=networks,
    collective=st.sampled_from(list(Collective)),
    target=st.sampled_from(list(TARGETS.values())),
    size=sizes,
    slices=st.integers(1, 2),
    rate=st.sampled_from([0.7, 3.0, 1e4]),
)
def test_never_below_the_bound(
    topology: Topology, collective: Collective, target: object, size: int, slices: int, rate: float
) -> None:
    result = compile_topology(topology, collective, target=target)  # type: ignore[arg-type]
    bound = result.forest.bound
    fastest = bound.limit_algbw if collective is Collective.ALLREDUCE else bound.algbw
    profile = make_profile(
        message_bytes=10_000, slices=slices, rate=rate, copy=rate, step_us=0.01, latency_us=0.3, launch_us=0.001
    )
    prepared = prepare(result.program, topology, profile)
    simulation = simulate(prepared, size, budget=1500)
    assert simulation.stuck is None
    assert simulation.time_us >= size / (1e3 * float(fastest))
    assert simulation.time_us >= prepared.least_us(size)
    assert (simulation.link_busy <= 1).all()
    again = simulate(prepare(result.program, topology, profile), size, budget=1500, record=True)
    assert again.time_us == simulation.time_us
    assert np.array_equal(again.link_bytes, simulation.link_bytes)
    assert simulate(prepared, 4 * size, budget=1500).time_us > simulation.time_us


@pytest.mark.parametrize("protocol", list(Protocol))
def test_the_window_costs_little(protocol: Protocol, monkeypatch: pytest.MonkeyPatch) -> None:
    from forestsyn.frontend import load_topology
    from forestsyn.frontend.profiles import load_profile
    from forestsyn.simulate import run

    topology = load_topology("dgx-a100:2")
    program = compile_topology(topology, Collective.ALLREDUCE, protocol=protocol).program
    profile = load_profile("nvidia-a100")
    usual = simulate_program(program, topology, profile, 2**26).time_us
    monkeypatch.setattr(run, "_FEWEST_REFILLS", 10**12)
    exact = simulate_program(program, topology, profile, 2**26).time_us
    assert usual == pytest.approx(exact, rel=0.03)


def test_same_times_under_every_hash_seed() -> None:
    assert_same_output(
        "from forestsyn.frontend import load_topology\n"
        "from forestsyn.ir.collective import Collective\n"
        "from forestsyn.pipeline.compile import compile_topology\n"
        "from forestsyn.simulate import simulate_program\n"
        "from tests.simulation import make_profile\n"
        "for name in ('dgx-a100:2', 'torus:3x3'):\n"
        "    topology = load_topology(name)\n"
        "    program = compile_topology(topology, Collective.ALLREDUCE).program\n"
        "    run = simulate_program(program, topology, make_profile(step_us=0.1, latency_us=1), 10**6, record=True)\n"
        "    print(repr(run.time_us), run.link_bytes.tolist(), run.activities[-1])\n"
    )
