"""Curves for the chart of time over size: exact ones of bounds, and a simulated one of the forest program."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from forestsyn.frontend.profiles import load_profile, profile_name_for
from forestsyn.ir.program import Program
from forestsyn.ir.topology import Topology
from forestsyn.pipeline.results import BoundResult
from forestsyn.show.series import Curve, CurveKind
from forestsyn.simulate import prepare, simulate

#: 1 KiB to 1 GiB.
_FIRST, _LAST = 10, 30
#: Programs of more ranks are simulated at every fourth power of two only.
_MANY_RANKS = 16


def bound_curves(bound: BoundResult, sizes: Sequence[int]) -> tuple[Curve, ...]:
    """The time below which no schedule gets, and below which no rings get; both without any latency."""
    return (
        _straight("bound of any schedule", bound.algbw, sizes, CurveKind.BOUND),
        _straight("rings at most", bound.ring_algbw, sizes, CurveKind.RING),
    )


def forest_curve(program: Program, topology: Topology) -> tuple[Curve, str]:
    """The simulated times of a program, and the name of the profile of costs that was used."""
    name = profile_name_for(topology)
    prepared = prepare(program, topology, load_profile(name))
    step = 2 if topology.rank_count <= _MANY_RANKS else 4
    sizes = tuple(1 << power for power in range(_FIRST, _LAST + 1, step))
    times = tuple(simulate(prepared, size).time_us for size in sizes)
    return Curve(name="forest program, simulated", sizes=sizes, times_us=times, kind=CurveKind.CANDIDATE), name


def _straight(name: str, algbw: Fraction, sizes: Sequence[int], kind: CurveKind) -> Curve:
    """size / algbw; GB/s are 10³ bytes per µs."""
    times = tuple(float(size / (1000 * algbw)) for size in sizes)
    return Curve(name=name, sizes=tuple(sizes), times_us=times, kind=kind)
