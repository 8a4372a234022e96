"""Balance: switches that receive as much as they send.

Problem. Exact switch removal needs every switch to receive exactly as much capacity as it sends. Real fabrics are
balanced; a file may not be (up 10, down 5), and rounding down may upset a balanced switch whose links differ. Give up
as little capacity as possible so that all switches balance and all demand still reaches every rank.

Guarantee. What is returned is balanced, within the given capacities, and carries the demand: all three are checked
in integers, the last by N flows. None means that no such capacities exist (up to the solver's tolerance), never
that they were merely not tried.

Method. An integer program with one variable per arc, maximizing the capacity kept, balance at each switch as
equalities, and cuts added as flows find them violated (Dantzig, Fulkerson & Johnson 1954). HiGHS solves it; its
floats are only a proposal.

Complexity: one integer program and up to N flows per round of cuts. Balanced input returns at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from forestsyn.core.optimum import is_balanced
from forestsyn.core.rooted import RootedFlows, leaving_arcs
from forestsyn.ir.network import FlowNetwork


def balanced_capacities(network: FlowNetwork, capacities: list[int], demand: Sequence[int]) -> list[int] | None:
    """Capacities ≤ `capacities`, balanced at every switch, that carry `demand`; None where there are none.

    `capacities` must already carry the demand when the balance is left aside.
    """
    if is_balanced(network, capacities):
        return capacities
    # The solver and the library under it are needed for odd networks only.
    from forestsyn.graph.program import maximize_integers

    balance = _balance_rows(network)
    cuts: list[tuple[dict[int, int], int]] = []
    flows = RootedFlows(network, capacities, demand)
    while True:
        proposal = maximize_integers(capacities, equalities=balance, at_least=cuts)
        if proposal is None or not _is_sound(network, proposal, capacities):
            return None
        flows.update(proposal, demand)
        found = False
        for rank in range(network.rank_count):
            violated = flows.violated_set(rank)
            if violated is not None:
                found = True
                cuts.append(_cut_row(network, demand, violated))
        if not found:
            return proposal


def _balance_rows(network: FlowNetwork) -> list[dict[int, int]]:
    rows: list[dict[int, int]] = [{} for _ in range(network.vertex_count - network.rank_count)]
    for arc, (tail, head) in enumerate(zip(network.tails, network.heads, strict=True)):
        if tail >= network.rank_count:
            rows[tail - network.rank_count][arc] = -1
        if head >= network.rank_count:
            rows[head - network.rank_count][arc] = 1
    return [row for row in rows if row]


def _cut_row(network: FlowNetwork, demand: Sequence[int], inside: Sequence[int]) -> tuple[dict[int, int], int]:
    need = sum(demand[vertex] for vertex in inside if vertex < network.rank_count)
    return dict.fromkeys(leaving_arcs(network, inside), 1), need


def _is_sound(network: FlowNetwork, proposal: list[int], capacities: list[int]) -> bool:
    within = all(0 <= units <= most for units, most in zip(proposal, capacities, strict=True))
    return within and is_balanced(network, proposal)
