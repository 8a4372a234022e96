"""The search for the fastest candidate at every size, without simulating all of them everywhere.

Method. All candidates are simulated at the smallest size, which tells their latency. At any size, ascending, those
that promise the least time are simulated first; the promise is the latency plus the time that the busiest link and
threadblock need, scaled by how far it was off at the candidate's last simulated size. A candidate is left out once
its lower limit (that busy time, or its time at a smaller size) is above the best time found, or after some tries.

Sizes are dealt out to worker processes, which work independently; the result does not depend on their number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor

from forestsyn.ir.profile import Profile
from forestsyn.ir.program import Program
from forestsyn.ir.topology import Topology
from forestsyn.simulate import Prepared, prepare, simulate

#: Candidates simulated at one size at most; more where messages are small and simulations cheap.
_TRIES, _TRIES_SMALL, _SMALL = 5, 16, 1 << 20
#: Moves that a simulation of the tuner may run event by event.
_BUDGET = 10_000
#: Sizes that a worker gets at once: enough to learn from each other, few enough to share the work.
_RUN = 6

Times = dict[tuple[int, int], float]


def search_times(
    programs: Sequence[Program],
    topology: Topology,
    profile: Profile,
    sizes: Sequence[int],
    known: Times,
    *,
    workers: int,
    progress: Callable[[str], None],
) -> Times:
    """Simulated µs by (candidate, size), with at every size the fastest that was found. known: earlier ones."""
    runs = [tuple(sizes[first : first + _RUN]) for first in range(0, len(sizes), _RUN)]
    times: Times = dict(known)
    if workers <= 1:
        bench = _Bench(programs, topology, profile, sizes[0], known)
        for number, run in enumerate(runs):
            times.update(bench.search(run))
            progress(f"{min((number + 1) * _RUN, len(sizes))} of {len(sizes)} sizes tuned")
        return times
    with ProcessPoolExecutor(
        workers, initializer=_start, initargs=(programs, topology, profile, sizes[0], known)
    ) as pool:
        # The largest messages take longest, so they go first.
        for number, found in enumerate(pool.map(_search, reversed(runs))):
            times.update(found)
            progress(f"{min((number + 1) * _RUN, len(sizes))} of {len(sizes)} sizes tuned")
    return times


class Timer:
    """Simulates programs on demand, each translated once."""

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


class _Bench:
    """One worker's candidates and what it has learnt of them."""

    def __init__(
        self, programs: Sequence[Program], topology: Topology, profile: Profile, smallest: int, known: Times
    ) -> None:
        self.timer = Timer(programs, topology, profile, known)
        self.candidates = range(len(programs))
        self.latency = [self.timer.time(candidate, smallest) for candidate in self.candidates]
        self.launch = profile.launch_us

    def search(self, sizes: Sequence[int]) -> Times:
        """Times at `sizes`, ascending."""
        floor = list(self.latency)
        scale = [1.0] * len(floor)
        for size in sizes:
            least = [self.timer.prepared(candidate).least_us(size) for candidate in self.candidates]
            promise = [self.latency[c] + least[c] - self.launch for c in self.candidates]
            order = sorted(self.candidates, key=lambda c: (promise[c] * scale[c], c))
            best = min((time for (_, at), time in self.timer.times.items() if at == size), default=float("inf"))
            tries = _TRIES_SMALL if size <= _SMALL else _TRIES
            for candidate in order:
                if max(floor[candidate], least[candidate]) >= best:
                    continue
                if tries == 0:
                    break
                tries -= 1
                time = self.timer.time(candidate, size)
                floor[candidate] = max(floor[candidate], time)
                scale[candidate] = time / promise[candidate]
                best = min(best, time)
        return dict(self.timer.times)


_bench: list[_Bench] = []  # of this worker process; filled once by its initializer


def _start(programs: Sequence[Program], topology: Topology, profile: Profile, smallest: int, known: Times) -> None:
    _bench[:] = [_Bench(programs, topology, profile, smallest, known)]


def _search(sizes: Sequence[int]) -> Times:
    return _bench[0].search(sizes)
