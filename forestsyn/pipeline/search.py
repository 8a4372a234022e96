"""The search for the fastest candidate at every size, without simulating all of them everywhere.

Method. All candidates are simulated at the smallest size, which tells their latency. At the other sizes, ascending,
those that promise the least time are simulated first, and always the winner at the size before; the promise is the
latency plus the time that the busiest link and threadblock need, scaled by how far it was off at the candidate's last
simulated size. A candidate is left out once its lower limit (that busy time, or its time at a smaller size) is above
the best time found, or after some tries.

Simulations of a size run in pairs, in worker processes; the result does not depend on the number of workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

from forestsyn.ir.profile import Profile
from forestsyn.ir.program import Program
from forestsyn.ir.topology import Topology
from forestsyn.simulate import Prepared, prepare, simulate

#: Candidates simulated at one size at most; more where messages are small and simulations cheap.
_TRIES, _TRIES_SMALL, _SMALL = 4, 24, 1 << 20
#: At these sizes many are tried, so that promises are corrected where messages are large.
_TRIES_ANCHOR, _ANCHORS = 16, (1 << 24, 1 << 28)
#: Moves that a simulation of the tuner may run event by event.
_BUDGET = 10_000
#: Simulations that are asked for at once.
_PAIR = 2

Times = dict[tuple[int, int], float]
_Run = Callable[[list[tuple[int, int]]], list[float]]


def search_times(
    timer: Timer,
    sizes: Sequence[int],
    *,
    baselines: Sequence[int],
    workers: int,
    progress: Callable[[str], None],
) -> None:
    """Fill `timer.times` such that at every size the fastest candidate that was found is among them.

    baselines: candidates of which the most promising are simulated everywhere, to be compared with.
    """
    with _runner(timer, workers) as run:
        _simulate([(candidate, sizes[0]) for candidate in range(len(timer.programs))], timer, run)
        search = _Search(timer, sizes[0], baselines)
        for number, size in enumerate(sizes):
            search.at(size, run)
            progress(f"{number + 1} of {len(sizes)} sizes tuned")


class Timer:
    """Simulates programs on demand, each translated once.

    times: simulated µs by (candidate, size), at first `known`.
    """

    def __init__(self, programs: Sequence[Program], topology: Topology, profile: Profile, known: Times) -> None:
        self.programs, self.topology, self.profile = programs, topology, profile
        self.times = dict(known)
        self._prepared: dict[int, Prepared] = {}

    def prepared(self, candidate: int) -> Prepared:
        """The candidate, ready to be simulated."""
        if candidate not in self._prepared:
            self._prepared[candidate] = prepare(self.programs[candidate], self.topology, self.profile)
        return self._prepared[candidate]

    def time(self, candidate: int, size: int) -> float:
        """Simulated µs."""
        key = (candidate, size)
        if key not in self.times:
            self.times[key] = simulate(self.prepared(candidate), size, budget=_BUDGET).time_us
        return self.times[key]


class _Search:
    """What is known of the candidates so far. floor: µs that none goes below at larger sizes."""

    def __init__(self, timer: Timer, smallest: int, baselines: Sequence[int]) -> None:
        self.timer = timer
        self.baselines = baselines
        self.candidates = range(len(timer.programs))
        self.latency = [timer.times[candidate, smallest] for candidate in self.candidates]
        self.floor = list(self.latency)
        self.scale = [1.0] * len(self.latency)
        self.winner = min(self.candidates, key=lambda candidate: (self.latency[candidate], candidate))

    def at(self, size: int, run: _Run) -> None:
        """Find the fastest at `size`, larger than all before."""
        launch = self.timer.profile.launch_us
        least = [self.timer.prepared(candidate).least_us(size) for candidate in self.candidates]
        promise = [self.latency[c] + least[c] - launch for c in self.candidates]
        order = sorted(self.candidates, key=lambda c: (c != self.winner, promise[c] * self.scale[c], c))
        compared = _PAIR * 3 if size in _ANCHORS else _PAIR
        self._try([c for c in order if c in self.baselines][:compared], size, promise, run)
        best = float("inf")
        tries = _TRIES_ANCHOR if size in _ANCHORS else _TRIES_SMALL if size <= _SMALL else _TRIES
        while tries > 0:
            pair = [c for c in order if max(self.floor[c], least[c]) < best][:_PAIR]
            if not pair:
                break
            self._try(pair, size, promise, run)
            order = [candidate for candidate in order if candidate not in pair]
            tries -= len(pair)
            for candidate in pair:
                if self.timer.times[candidate, size] < best:
                    best, self.winner = self.timer.times[candidate, size], candidate

    def _try(self, candidates: Sequence[int], size: int, promise: Sequence[float], run: _Run) -> None:
        _simulate([(candidate, size) for candidate in candidates], self.timer, run)
        for candidate in candidates:
            time = self.timer.times[candidate, size]
            self.floor[candidate] = max(self.floor[candidate], time)
            self.scale[candidate] = time / promise[candidate]


def _simulate(wanted: list[tuple[int, int]], timer: Timer, run: _Run) -> None:
    missing = [key for key in wanted if key not in timer.times]
    timer.times.update(zip(missing, run(missing), strict=True))


@contextmanager
def _runner(timer: Timer, workers: int) -> Iterator[_Run]:
    """Runs simulations here, or in processes that each hold all programs."""
    if workers <= 1:
        yield lambda wanted: [timer.time(candidate, size) for candidate, size in wanted]
        return
    given = (timer.programs, timer.topology, timer.profile)
    with ProcessPoolExecutor(workers, initializer=_start, initargs=given) as pool:
        yield lambda wanted: list(pool.map(_time, wanted, chunksize=max(1, len(wanted) // (4 * workers))))


_timers: list[Timer] = []  # of this worker process; filled once by its initializer


def _start(programs: Sequence[Program], topology: Topology, profile: Profile) -> None:
    _timers[:] = [Timer(programs, topology, profile, {})]


def _time(wanted: tuple[int, int]) -> float:
    return _timers[0].time(*wanted)
