"""Topology → proven bound."""

from __future__ import annotations

from forestsyn.core import rank_cut, solve_optimum
from forestsyn.core.choice import phases, root_weights
from forestsyn.core.shares import solve_shares
from forestsyn.ir.collective import Collective
from forestsyn.ir.topology import Topology
from forestsyn.pipeline.results import BoundResult
from forestsyn.pipeline.stages import Observer, Root, Stages, resolve_root
from forestsyn.verify import verify_optimum
from forestsyn.verify.shares import verify_shares


def bound(
    topology: Topology, collective: Collective, root: Root = None, *, observer: Observer | None = None
) -> BoundResult:
    """The exact optimum of `collective` on `topology`, with the cut that proves it.

    root: the rank of broadcast and reduce, by number or name (0 unless given).
    Raises InputError for a wrong root and InfeasibleError when some rank cannot reach another.
    """
    stages = Stages(observer)
    root = resolve_root(topology, collective, root)
    shares = solve_shares(topology) if collective is Collective.ALLREDUCE else None
    weights = shares.weights if shares else root_weights(collective, topology.rank_count, root)
    optima = tuple(solve_optimum(topology, weights, direction) for direction in phases(collective))
    for optimum in optima:
        verify_optimum(topology, optimum)
    if shares:
        verify_shares(topology, shares)
    stages.finish("optimum", optima)
    cut = rank_cut(topology)
    stages.finish("cut", cut)
    return BoundResult(
        topology=topology,
        collective=collective,
        root=root,
        optima=optima,
        shares=shares,
        rank_cut=cut,
        seconds=stages.seconds,
    )
