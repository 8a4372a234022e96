"""Switch removal (edge splitting): from a network with switches to one of ranks only.

Problem. Trees live on ranks. Replace the arcs (u, w), (w, t) of a switch w by logical arcs (u, t) until w has
none left, so that all root demand D still reaches every rank: maxflow(s → r) ≥ D (see `rooted`).

Guarantee. Where every switch receives as much as it sends, a complete splitting exists (Bang-Jensen, Frank &
Jackson 1995; Frank; used by ForestColl §5.3). What this module returns was proved by flows on its own result.

Method: plan, then prove.
 1. A switch with two neighbours is a wire: bypass it, no flow needed.
 2. For any other switch propose a complete splitting at once (`_plan`) that makes good trees: partners on other
    hosts first, each port spread over few far-apart partners. One sweep of N flows proves it.
 3. Where the sweep finds a violated set S, the pairs to blame are those that took capacity from the arcs entering
    the rest: both ends outside S if the switch is inside, both inside if it is outside. They give back together
    what S is short of; giving back hurts no other set, so the same sweep ends with a part of the plan proved.
 4. What the switch has left is split pair by pair, as much of each as keeps all flows. The safe amount of a pair can
    only shrink while others are split, so one pass over all pairs empties the switch.

Complexity: N flows and one for each violated set; N for each pair of ports that the plan left with capacity.
Exactness: integers throughout.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from forestsyn.core.logical import LogicalGraph
from forestsyn.errors import InternalError
from forestsyn.graph.flow import FlowSolver

Pair = tuple[int, int, int]


def split_switches(
    graph: LogicalGraph, demand: Sequence[int], hosts: Sequence[str | None], partners: int | None = None
) -> None:
    """Remove every switch of `graph` in place, keeping all of `demand` reachable by every rank.

    demand: unit trees per rank. hosts: the host of each vertex of the graph, None for the fabric. partners: how many
    partners the plan gives a port at most, None for all.
    The graph must be balanced at every switch and carry the demand.
    """
    waiting = set(range(graph.rank_count, graph.vertex_count))
    while waiting:
        # Wires first, then the switch with the fewest neighbours: it has the smallest plan.
        switch = min(waiting, key=lambda w: (len(graph.outgoing[w].keys() | graph.incoming[w].keys()), w))
        waiting.remove(switch)
        if len(graph.outgoing[switch].keys() | graph.incoming[switch].keys()) <= 2:
            _bypass(graph, switch)
        else:
            _split_switch(graph, switch, demand, hosts, partners)


def _bypass(graph: LogicalGraph, switch: int) -> None:
    """Join the two sides of a wire; what would only turn back is dropped."""
    neighbours = sorted(graph.outgoing[switch].keys() | graph.incoming[switch].keys())
    for tail in neighbours:
        for head in neighbours:
            if tail != head:
                units = min(graph.capacity(tail, switch), graph.capacity(switch, head))
                if units:
                    graph.split(tail, switch, head, units)
    for neighbour in neighbours:
        for tail, head in ((neighbour, switch), (switch, neighbour)):
            if graph.capacity(tail, head):
                graph.drop(tail, head, graph.capacity(tail, head))


def _split_switch(
    graph: LogicalGraph, switch: int, demand: Sequence[int], hosts: Sequence[str | None], partners: int | None
) -> None:
    proof = _Proof(graph, switch, demand)
    chosen = proof.largest_part(_plan(graph, switch, hosts, partners))
    _add_pair_by_pair(graph, switch, chosen, proof)
    for (tail, head), units in chosen.items():
        graph.split(tail, switch, head, units)
    if graph.outgoing[switch] or graph.incoming[switch]:
        raise InternalError(f"switch {switch} could not be split completely; is it balanced?")


def _add_pair_by_pair(graph: LogicalGraph, switch: int, chosen: dict[tuple[int, int], int], proof: _Proof) -> None:
    """The exact way for what `chosen` leaves: the safe part of each pair, turning back last."""
    supply = dict(graph.incoming[switch])
    room = dict(graph.outgoing[switch])
    for (tail, head), units in chosen.items():
        supply[tail] -= units
        room[head] -= units
    pairs = [(u, t) for u in sorted(supply) for t in sorted(room) if u != t]
    pairs += [(u, u) for u in sorted(supply) if u in room]
    for tail, head in pairs:
        units = proof.safe_units(tail, head, min(supply[tail], room[head]))
        if units:
            chosen[tail, head] = chosen.get((tail, head), 0) + units
            supply[tail] -= units
            room[head] -= units


class _Proof:
    """Flows on the graph in which one switch is partly split."""

    def __init__(self, graph: LogicalGraph, switch: int, demand: Sequence[int]) -> None:
        self._switch = switch
        self._demand = sum(demand)
        self._ranks = list(range(graph.rank_count))
        self._source = graph.vertex_count
        present = {(tail, head): units for tail, head, units in graph.arcs()}
        pairs = [(u, t) for u in sorted(graph.incoming[switch]) for t in sorted(graph.outgoing[switch]) if u != t]
        arcs = list(present) + [pair for pair in pairs if pair not in present]
        arcs += [(self._source, rank) for rank in self._ranks]
        self._index = {arc: position for position, arc in enumerate(arcs)}
        capacities = [present.get(arc, 0) for arc in arcs]
        for rank in self._ranks:
            capacities[self._index[self._source, rank]] = demand[rank]
        self._solver = FlowSolver(
            graph.vertex_count + 1, [arc[0] for arc in arcs], [arc[1] for arc in arcs], capacities
        )

    def largest_part(self, plan: dict[tuple[int, int], int]) -> dict[tuple[int, int], int]:
        """Split a part of the plan that keeps all flows: all of it, less what violated sets take back."""
        part = dict(plan)
        for (tail, head), units in part.items():
            self._shift(tail, head, units)
        for rank in list(self._ranks):
            while short := self._shortfall(rank):
                inside = set(self._solver.source_side())
                blamed = [pair for pair in part if self._hurts(pair, inside)]
                # Last planned, first given back: the plan lists the best pairs first.
                for tail, head in reversed(blamed):
                    less = min(short, part[tail, head])
                    self._shift(tail, head, -less)
                    part[tail, head] -= less
                    short -= less
                if short:
                    raise InternalError(f"switch {self._switch}: the demand did not reach rank {rank} before")
        return {pair: units for pair, units in part.items() if units}

    def _hurts(self, pair: tuple[int, int], inside: set[int]) -> bool:
        """True when splitting the pair lowered what leaves the set."""
        switch_inside = self._switch in inside
        return (pair[0] in inside) != switch_inside and (pair[1] in inside) != switch_inside

    def safe_units(self, tail: int, head: int, units: int) -> int:
        """Split as much of `units` as keeps all flows; returns how much that was."""
        if units == 0:
            return 0
        self._shift(tail, head, units)
        for rank in list(self._ranks):
            while units and (short := self._shortfall(rank)):
                less = min(short, units)
                self._shift(tail, head, -less)
                units -= less
            if not units:
                break
        return units

    def _shift(self, tail: int, head: int, units: int) -> None:
        self._change(tail, self._switch, -units)
        self._change(self._switch, head, -units)
        if tail != head:
            self._change(tail, head, units)

    def _change(self, tail: int, head: int, units: int) -> None:
        arc = self._index[tail, head]
        self._solver.set_capacity(arc, self._solver.capacity(arc) + units)

    def _shortfall(self, rank: int) -> int:
        """How much demand does not reach `rank`; ranks that fall short are asked first from then on."""
        short = max(0, self._demand - self._solver.max_flow(self._source, rank))
        if short and self._ranks[0] != rank:
            self._ranks.remove(rank)
            self._ranks.insert(0, rank)
        return short


def _plan(
    graph: LogicalGraph, switch: int, hosts: Sequence[str | None], partners: int | None
) -> dict[tuple[int, int], int]:
    """A complete splitting of `switch` that is good for trees, not yet proved.

    Ports are put in groups: the hosts of their ranks, or one group each where all belong to one host. Data that
    crosses a switch should reach another group, and the same place in it (the port with the same index: a rail).
    The partners of a port are spread over the groups at distances 1, 2, 3, … in turn, so that every distance is a
    permutation of the ports and fills evenly.
    """
    supply = dict(graph.incoming[switch])
    room = dict(graph.outgoing[switch])
    plan: dict[tuple[int, int], int] = {}
    for pair, quota in _preferences(graph, switch, hosts, partners):
        tail, head = pair
        units = min(quota, supply.get(tail, 0), room.get(head, 0))
        if units:
            plan[pair] = plan.get(pair, 0) + units
            supply[tail] -= units
            room[head] -= units
    return plan


def _preferences(
    graph: LogicalGraph, switch: int, hosts: Sequence[str | None], partners: int | None
) -> Iterable[tuple[tuple[int, int], int]]:
    """Pairs with a quota each, best first; the last rounds have no quota and leave nothing over."""
    ports = sorted(graph.incoming[switch].keys() | graph.outgoing[switch].keys())
    groups = _groups(graph, switch, ports, hosts)
    size = len(groups)
    most = max([*graph.incoming[switch].values(), *graph.outgoing[switch].values()])
    share = max(1, most // max(1, min(size - 1, partners or size)))
    widest = max(len(group) for group in groups)
    for quota in (share, 1, most):
        for distance in _distances(size):
            for start, group in enumerate(groups):
                others = groups[(start + distance) % size]
                for place, port in enumerate(group):
                    yield (port, others[place % len(others)]), quota
    for shift in range(widest):
        for distance in [*_distances(size), 0]:
            for start, group in enumerate(groups):
                others = groups[(start + distance) % size]
                for place, port in enumerate(group):
                    partner = others[(place + shift) % len(others)]
                    if partner != port:
                        yield (port, partner), most
    for port in ports:
        for partner in ports:
            if partner != port:
                yield (port, partner), most
    for port in ports:
        yield (port, port), most


def _distances(size: int) -> list[int]:
    """1 … size−1 with the powers of two first: a few of them already reach everywhere in logarithmic depth."""
    powers = [1 << bit for bit in range(size.bit_length()) if 1 << bit < size]
    return powers + [distance for distance in range(1, size) if distance not in powers]


def _groups(graph: LogicalGraph, switch: int, ports: list[int], hosts: Sequence[str | None]) -> list[list[int]]:
    groups: dict[str, list[int]] = {}
    for port in ports:
        # A port with no other neighbour can be reached through this switch only, also from its own host.
        alone = hosts[port] is None or port >= graph.rank_count or graph.outgoing[port].keys() <= {switch}
        groups.setdefault(f"\0{port}" if alone else str(hosts[port]), []).append(port)
    if len(groups) == 1:
        return [[port] for port in ports]
    return list(groups.values())
