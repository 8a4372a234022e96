"""Topology → one verified program for each window of message sizes, by simulated time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import msgspec

from forestsyn.backends import emit_msccl_xml
from forestsyn.errors import InputError, UnsupportedError
from forestsyn.ir.collective import Collective
from forestsyn.ir.profile import Profile
from forestsyn.ir.target import EXECUTOR, Target
from forestsyn.ir.topology import Topology
from forestsyn.pipeline.bound import bound
from forestsyn.pipeline.candidates import Candidate, make_candidates
from forestsyn.pipeline.results import BoundResult
from forestsyn.pipeline.search import Timer, search_times
from forestsyn.pipeline.stages import Observer, Root, Stages
from forestsyn.pipeline.times import TimeStore, content_keys
from forestsyn.pipeline.verify_file import verify_own_text
from forestsyn.pipeline.windows import Span, choose_spans, find_crossing

#: Files that a runtime takes at once, where that is few.
_FILES_MAX = {"msccl": 4}
SMALLEST, LARGEST = 1 << 10, 1 << 34
#: Up to here sizes between powers of two are tuned too; above, which program is fastest hardly changes.
_BETWEEN = 1 << 26


class Window(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Message sizes minimum … maximum (bytes, both included; maximum 0 = no limit) and what serves them.

    text: the verified program's file, None where NCCL's own algorithm is predicted to be as fast as any.
    """

    minimum: int
    maximum: int
    candidate: Candidate
    text: str | None


class TuneResult(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """candidates: all that were considered. sizes: tuned ones, bytes. times: simulated µs by (candidate, size).

    windows: without gap or overlap, ascending. seconds: of each stage.
    """

    bound: BoundResult
    target: Target
    profile: Profile
    candidates: tuple[Candidate, ...]
    sizes: tuple[int, ...]
    times: dict[tuple[int, int], float]
    windows: tuple[Window, ...]
    simulations: int
    seconds: dict[str, float]

    def fastest(self, size: int, *, algorithm: str | None = None) -> float:
        """The least simulated time at a tuned size, µs; of one algorithm if named. Infinity where none is known."""
        return min(
            (
                time
                for (candidate, at), time in self.times.items()
                if at == size and (algorithm is None or self.candidates[candidate].algorithm.startswith(algorithm))
            ),
            default=math.inf,
        )

    def window_of(self, size: int) -> Window:
        """The window that serves a message size."""
        return next(window for window in self.windows if window.maximum == 0 or size <= window.maximum)


def tuned_sizes(smallest: int = SMALLEST, largest: int = LARGEST) -> tuple[int, ...]:
    """Powers of two from `smallest` to `largest`, and up to 64 MiB the sizes between them. Raises InputError."""
    if not 0 < smallest <= largest:
        raise InputError(
            f"sizes from {smallest} to {largest} hold none", where="--sizes", hint="write --sizes 1K:16G"
        )
    low, high = (smallest - 1).bit_length(), largest.bit_length() - 1
    if low > high:
        return (smallest,)
    powers = [1 << power for power in range(low, high + 1)]
    return tuple(sorted({*powers, *(power * 3 // 2 for power in powers[:-1] if power < _BETWEEN)}))


def tune(
    topology: Topology,
    collective: Collective,
    root: Root = None,
    *,
    target: Target = EXECUTOR,
    profile: Profile,
    sizes: Sequence[int] | None = None,
    out_of_place: bool = False,
    workers: int = 1,
    cache: Path | None = None,
    observer: Observer | None = None,
) -> TuneResult:
    """Simulate candidates over message sizes and choose the fastest for each window.

    sizes: bytes, ascending (`tuned_sizes()` unless given). cache: an SQLite file of times of earlier runs.
    Raises as `compile_topology`, and UnsupportedError when the target holds none of the candidates.
    """
    sizes = tuple(sizes or tuned_sizes())
    limits = bound(topology, collective, root, observer=observer)
    stages = Stages(observer)
    candidates = make_candidates(
        topology,
        collective,
        limits.root,
        target=target,
        profile=profile,
        out_of_place=out_of_place,
        observer=observer,
    )
    if not candidates:
        raise UnsupportedError(
            f"no program for {topology.name} fits {target.name}",
            target=target.name,
            hint="'forestsyn compile' names the limit",
        )
    stages.finish("candidates", candidates)
    programs = [candidate.program for candidate in candidates]
    keys = content_keys(programs, topology, profile)
    store = TimeStore(cache)
    number = {key: position for position, key in enumerate(keys)}
    known = {(number[key], size): time for (key, size), time in store.load(keys).items()}
    report = observer or (lambda stage, value: None)
    timer = Timer(programs, topology, profile, known)
    search_times(
        timer,
        sizes,
        baselines=[number for number, candidate in enumerate(candidates) if candidate.algorithm.startswith("ring")],
        workers=workers,
        progress=lambda text: report(text, None),
    )
    windows = _windows(candidates, sizes, timer, target, limits)
    stages.finish("simulations", timer.times)
    store.save({(keys[c], size): time for (c, size), time in timer.times.items() if (c, size) not in known})
    return TuneResult(
        bound=limits,
        target=target,
        profile=profile,
        candidates=candidates,
        sizes=sizes,
        times=timer.times,
        windows=windows,
        simulations=len(timer.times) - len(known),
        seconds={**limits.seconds, **stages.seconds},
    )


def _windows(
    candidates: Sequence[Candidate], sizes: Sequence[int], timer: Timer, target: Target, limits: BoundResult
) -> tuple[Window, ...]:
    most = _FILES_MAX.get(target.name, len(sizes))
    found = sorted({candidate for candidate, _ in timer.times})
    rows = [[timer.times.get((candidate, size), math.inf) for candidate in found] for size in sizes]
    spans = choose_spans(rows, most)
    windows: list[Window] = []
    start = 0
    for position, span in enumerate(spans):
        end = 0
        if position + 1 < len(spans):
            end = _boundary(span, spans[position + 1], found, sizes, timer) - 1
        windows.append(_window(candidates[found[span.candidate]], start, end, sizes[-1], target, limits))
        start = end + 1
    return tuple(windows)


def _boundary(span: Span, following: Span, found: Sequence[int], sizes: Sequence[int], timer: Timer) -> int:
    low, high = found[span.candidate], found[following.candidate]
    return find_crossing(
        sizes[span.last], sizes[following.first], lambda size: timer.time(low, size) <= timer.time(high, size)
    )


def _window(candidate: Candidate, start: int, end: int, largest: int, target: Target, limits: BoundResult) -> Window:
    """minBytes and maxBytes as the runtime means them: msccl excludes the upper end and has no word for no limit."""
    if candidate.origin == "nccl":
        return Window(minimum=start, maximum=end, candidate=candidate, text=None)
    last = end
    if target.name == "msccl":
        # With scratch, which is allocated for the largest size, the last window ends at the largest tuned size.
        last = end + 1 if end else max(candidate.program.maximum_bytes, largest + 1)
    program = msgspec.structs.replace(candidate.program, minimum_bytes=start, maximum_bytes=last)
    text = emit_msccl_xml(program, target)
    verify_own_text(text, source=program.name, target=target.name, root=limits.root)
    return Window(minimum=start, maximum=end, candidate=candidate, text=text)
