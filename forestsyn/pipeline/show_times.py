"""Curves of time over size: exact ones of bounds, simulated ones of a program or of what was tuned."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from fractions import Fraction
from pathlib import Path

import msgspec

from forestsyn.frontend.profiles import choose_profile
from forestsyn.ir.collective import Collective
from forestsyn.ir.program import Program
from forestsyn.ir.topology import Topology
from forestsyn.pipeline.results import BoundResult
from forestsyn.pipeline.search import Timer
from forestsyn.pipeline.stages import Observer, Root
from forestsyn.pipeline.tune import TuneResult, Window, tune
from forestsyn.show.series import Curve, CurveKind
from forestsyn.simulate import prepare, simulate
from forestsyn.units import format_bytes

#: 1 KiB to 1 GiB for one program.
_FIRST, _LAST = 10, 30
#: Programs of more ranks are simulated at every fourth power of two only.
_MANY_RANKS = 16
#: What is tuned for a chart: every second power of two from 1 KiB to 16 GiB.
TUNED_SIZES = tuple(1 << power for power in range(10, 35, 2))
#: Chosen programs that get a curve of their own.
_MOST_CANDIDATES = 6


class Times(StrEnum):
    """Where the times of a chart come from."""

    TUNE = "tune"
    PROGRAM = "program"
    NONE = "none"


class TunedCurves(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """curves: tuned choice, chosen programs, NCCL's ring. note: what they hold. windows: sizes and their programs."""

    curves: tuple[Curve, ...]
    note: str
    windows: tuple[tuple[str, str], ...]


def bound_curves(bound: BoundResult, sizes: Sequence[int]) -> tuple[Curve, ...]:
    """The time below which no schedule gets, and below which no rings get; both without any latency."""
    return (
        _straight("bound of any schedule", bound.algbw, sizes, CurveKind.BOUND),
        _straight("rings at most", bound.ring_algbw, sizes, CurveKind.RING),
    )


def forest_curve(program: Program, topology: Topology) -> tuple[Curve, str]:
    """The simulated times of a program, and the name of the profile of costs that was used."""
    profile = choose_profile(topology)
    prepared = prepare(program, topology, profile)
    step = 2 if topology.rank_count <= _MANY_RANKS else 4
    sizes = tuple(1 << power for power in range(_FIRST, _LAST + 1, step))
    times = tuple(simulate(prepared, size).time_us for size in sizes)
    return Curve(
        name="forest program, simulated", sizes=sizes, times_us=times, kind=CurveKind.CANDIDATE
    ), profile.name


def tuned_curves(
    topology: Topology,
    collective: Collective,
    root: Root = None,
    *,
    sizes: Sequence[int] = TUNED_SIZES,
    workers: int = 1,
    cache: Path | None = None,
    observer: Observer | None = None,
) -> TunedCurves:
    """Tune for `sizes` and give the curves of what was chosen. Raises as `tune`."""
    profile = choose_profile(topology)
    result = tune(
        topology, collective, root, profile=profile, sizes=sizes, workers=workers, cache=cache, observer=observer
    )
    known = {key: time for key, time in result.times.items() if key[1] in set(sizes)}
    timer = Timer([candidate.program for candidate in result.candidates], topology, profile, known)
    chosen = [result.candidates.index(result.window_of(size).candidate) for size in sizes]
    tuned = _curve(
        "tuned", sizes, [timer.time(c, size) for c, size in zip(chosen, sizes, strict=True)], CurveKind.TUNED
    )
    curves = [tuned]
    for number in list(dict.fromkeys(chosen))[:_MOST_CANDIDATES]:
        times = [timer.time(number, size) for size in sizes]
        curves.append(_curve(result.candidates[number].name, sizes, times, CurveKind.CANDIDATE))
    rings = _rings(result, timer)
    if rings:
        times = [min(timer.time(number, size) for number in rings) for size in sizes]
        curves.append(_curve("NCCL ring, best protocol", sizes, times, CurveKind.RING))
    note = (
        f"Simulated with the costs of profile {profile.name}: {len(result.candidates)} candidates, the fastest "
        "at each size. The bound counts bandwidth only, no latency: nothing gets below it."
    )
    return TunedCurves(curves=tuple(curves), note=note, windows=_windows(result))


def _rings(result: TuneResult, timer: Timer) -> list[int]:
    """Of NCCL's rings the one of each protocol that promises most for large messages."""
    best: dict[str, tuple[float, int]] = {}
    for number, candidate in enumerate(result.candidates):
        if candidate.origin == "nccl" and candidate.algorithm.startswith("ring"):
            promise = timer.prepared(number).least_us(max(result.sizes)), number
            best[candidate.protocol] = min(best.get(candidate.protocol, promise), promise)
    return sorted(number for _, number in best.values())


def _windows(result: TuneResult) -> tuple[tuple[str, str], ...]:
    rows: list[tuple[str, str]] = []
    start = 0
    for window, following in zip(result.windows, (*result.windows[1:], None), strict=True):
        served = _served(window)
        if following is not None and _served(following) == served:
            continue  # two programs of one kind, or two of NCCL's own
        end = f"to {format_bytes(window.maximum)}" if window.maximum else "and more"
        rows.append((f"{format_bytes(start)} {end}", served))
        start = window.maximum + 1
    return tuple(rows)


def _served(window: Window) -> str:
    if window.text is not None:
        return window.candidate.name
    return f"NCCL's own {window.candidate.algorithm.split(' x')[0]}"


def _curve(name: str, sizes: Sequence[int], times: Sequence[float], kind: CurveKind) -> Curve:
    return Curve(name=name, sizes=tuple(sizes), times_us=tuple(times), kind=kind)


def _straight(name: str, algbw: Fraction, sizes: Sequence[int], kind: CurveKind) -> Curve:
    """size / algbw; GB/s are 10³ bytes per µs."""
    return _curve(name, sizes, [float(size / (1000 * algbw)) for size in sizes], kind)
