"""Topology → verified forest."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from forestsyn.core import Wish, build_forests, build_wished, choose_demand, choose_equal
from forestsyn.ir.collective import Collective
from forestsyn.ir.topology import Topology
from forestsyn.pipeline.bound import bound
from forestsyn.pipeline.results import ForestResult
from forestsyn.pipeline.stages import Observer, Root, Stages
from forestsyn.verify import forest_load, verify_forest

#: How many trees each root may have: the fewest within a tolerance, as many as the optimum takes, or a number.
Trees = Literal["auto", "exact"] | int

#: The default loss that `auto` may accept for fewer trees.
TOLERANCE = Fraction(1, 50)


def synthesize(
    topology: Topology,
    collective: Collective,
    root: Root = None,
    *,
    trees: Trees = "auto",
    tolerance: Fraction = TOLERANCE,
    chunked: bool = False,
    wish: Wish | None = None,
    observer: Observer | None = None,
) -> ForestResult:
    """Trees for every phase of `collective` that together load no link beyond its bandwidth.

    tolerance: the share of the optimum that `auto` may give up. chunked: prefer numbers of trees that make good
    chunk counts for a program. wish: bounds on depth and peers, for which throughput may be given up. Raises as
    `bound`, and VerificationError when a certificate does not hold.
    """
    limit = bound(topology, collective, root, observer=observer)
    stages = Stages(observer)
    choice = choose_demand(topology, collective, limit.root, trees, tolerance, chunked, limit.optima)
    if wish is None:
        directions = (optimum.direction for optimum in limit.optima)
        forests = build_forests(topology, choice.demand, list(zip(directions, choice.time_units, strict=True)))
    else:
        choices = [choice]
        if limit.shares and len(set(limit.shares.weights)) > 1:
            choices.append(choose_equal(topology, trees, tolerance, chunked, limit.optima))
        choice, forests = build_wished(topology, choices, wish)
    stages.finish("forest", forests)
    for forest in forests:
        verify_forest(topology, forest)
    loads = tuple(forest_load(topology, forest) for forest in forests)
    stages.finish("check forest", loads)
    return ForestResult(
        bound=limit, choice=choice, forests=forests, loads=loads, seconds={**limit.seconds, **stages.seconds}
    )
