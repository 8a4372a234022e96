"""Wishes for few transfers in a chain or few peers are met, or refused with what was reached."""

from __future__ import annotations

from pathlib import Path

import pytest

from forestsyn.core import Wish
from forestsyn.core.ring import ring_forest
from forestsyn.errors import UnsupportedError
from forestsyn.frontend import load_topology
from forestsyn.ir.collective import Collective
from forestsyn.ir.forest import Direction
from forestsyn.ir.topology import Topology
from forestsyn.pipeline.synthesize import synthesize


@pytest.mark.parametrize(
    ("machine", "wish"),
    [
        ("torus:4x4", Wish(max_depth=4)),
        ("mi250:2", Wish(max_depth=8)),
        ("dgx-a100:16", Wish(max_peers=16)),
        ("dgx-a100:16", Wish(max_peers=12)),
        ("dgx-a100:4", Wish(max_peers=6)),
        ("hgx-a100", Wish(max_peers=3)),
        ("dgx-a100:8", Wish(max_depth=2, max_peers=14)),
    ],
    ids=str,
)
def test_a_wish_is_met_by_verified_trees(machine: str, wish: Wish) -> None:
    result = synthesize(load_topology(machine), Collective.ALLGATHER, wish=wish)
    assert result.load_over_bound >= 1
    assert wish.max_depth is None or result.depth <= wish.max_depth
    assert wish.max_peers is None or result.peers_per_rank_max <= wish.max_peers


def test_depth_counts_all_phases() -> None:
    result = synthesize(load_topology("dgx-a100:2"), Collective.ALLREDUCE, wish=Wish(max_depth=4))
    assert result.depth <= 4


def test_what_depth_costs_is_counted() -> None:
    topology = load_topology("mi250:2")
    plain = synthesize(topology, Collective.ALLGATHER)
    shallow = synthesize(topology, Collective.ALLGATHER, wish=Wish(max_depth=6))
    assert shallow.depth < plain.depth
    assert shallow.algbw < plain.algbw


DEAD_PORT = """
forestsyn: 1
use: dgx-h100:4
exceptions:
  - {remove: n1/nic3, reason: port down}
"""


@pytest.fixture
def dead_port(tmp_path: Path) -> Topology:
    path = tmp_path / "cluster.yaml"
    path.write_text(DEAD_PORT)
    return load_topology(str(path))


def test_equal_roots_are_taken_where_a_wish_makes_them_faster(dead_port: Topology) -> None:
    """Allgather and reduce-scatter reach 457.14 GB/s at depth 3 each, so the allreduce reaches half of that at 6."""
    parts = [
        synthesize(dead_port, collective, wish=Wish(max_depth=3)).algbw
        for collective in (Collective.ALLGATHER, Collective.REDUCE_SCATTER)
    ]
    result = synthesize(dead_port, Collective.ALLREDUCE, wish=Wish(max_depth=6))
    assert result.depth <= 6
    assert result.algbw >= 1 / sum(1 / part for part in parts)
    assert len(set(result.choice.demand)) == 1
    assert result.choice.loss == result.load_over_bound - 1


@pytest.mark.parametrize(
    ("machine", "collective", "wish"),
    [
        ("torus:4x4", Collective.REDUCE, Wish(max_depth=4)),
        ("mi250:2", Collective.ALLGATHER, Wish(max_depth=6)),
        ("dgx-h100:2", Collective.ALLREDUCE, Wish(max_peers=2)),
    ],
    ids=str,
)
def test_the_choice_says_what_a_wish_costs(machine: str, collective: Collective, wish: Wish) -> None:
    result = synthesize(load_topology(machine), collective, wish=wish)
    assert result.load_over_bound > 1
    assert result.choice.loss == result.load_over_bound - 1
    assert "nothing given up" not in result.choice.reason
    assert result.choice.reason.endswith(f"above the optimal time with {wish.words()}")


@pytest.mark.parametrize("machine", ["switch:8", "switch:5", "dgx-h100:2", "ring:6"])
@pytest.mark.parametrize("collective", [Collective.ALLGATHER, Collective.ALLREDUCE, Collective.BROADCAST])
def test_two_peers_are_a_ring(machine: str, collective: Collective) -> None:
    topology = load_topology(machine)
    result = synthesize(topology, collective, wish=Wish(max_peers=2))
    assert result.peers_per_rank_max == 2
    # A broadcast needs no ring: a chain is as fast.
    assert collective is Collective.BROADCAST or result.depth <= len(result.forests) * (topology.rank_count // 2)


def test_ranks_that_are_not_joined_in_order_have_no_ring() -> None:
    assert ring_forest(load_topology("mesh:3x3"), (1,) * 9, Direction.OUT) is None


def test_a_failed_search_is_called_one() -> None:
    with pytest.raises(
        UnsupportedError, match="the search, which is no proof, found no trees with at most 1 peer per"
    ):
        synthesize(load_topology("ring:4"), Collective.ALLGATHER, wish=Wish(max_peers=1))


@pytest.mark.parametrize("wish", [Wish(max_depth=1), Wish(max_peers=1)], ids=str)
def test_the_impossible_is_refused_with_what_was_reached(wish: Wish) -> None:
    with pytest.raises(UnsupportedError, match="the nearest have depth 2 and") as caught:
        synthesize(load_topology("ring:4"), Collective.ALLGATHER, wish=wish)
    assert caught.value.exit_code == 4
