"""Wishes for few transfers in a chain or few peers are met, or refused with what was reached."""

from __future__ import annotations

import pytest

from forestsyn.core import Wish
from forestsyn.errors import UnsupportedError
from forestsyn.frontend import load_topology
from forestsyn.ir.collective import Collective
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


@pytest.mark.parametrize("wish", [Wish(max_depth=1), Wish(max_peers=1)], ids=str)
def test_the_impossible_is_refused_with_what_was_reached(wish: Wish) -> None:
    with pytest.raises(UnsupportedError, match="the nearest have depth 2 and") as caught:
        synthesize(load_topology("ring:4"), Collective.ALLGATHER, wish=wish)
    assert caught.value.exit_code == 4
