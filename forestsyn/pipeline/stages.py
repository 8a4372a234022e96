"""What every pipeline run shares: the observer of its stages, their times, and the root of a collective."""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable

from forestsyn.errors import InputError
from forestsyn.ir.collective import Collective
from forestsyn.ir.topology import Topology

#: Called with the name of a stage and its value as soon as the stage has finished.
Observer = Callable[[str, object], None]

#: The rank of broadcast and reduce: its number, its name, or None for rank 0.
Root = int | str | None


class Stages:
    """Books the time between two finished stages and tells the observer.

    seconds: time of each finished stage, in the order in which they finished.
    """

    def __init__(self, observer: Observer | None) -> None:
        self.seconds: dict[str, float] = {}
        self._observer = observer
        self._last = time.perf_counter()

    def finish(self, stage: str, value: object) -> None:
        """`stage` has produced `value`."""
        now = time.perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._last
        if self._observer is not None:
            self._observer(stage, value)
        self._last = time.perf_counter()


def resolve_root(topology: Topology, collective: Collective, root: Root) -> int | None:
    """The rank that a rooted collective starts or ends at (0 unless given), None for the others.

    Raises InputError when the collective has no root or the rank does not exist.
    """
    if not collective.rooted:
        if root is not None:
            raise InputError(
                f"{collective} has no root, but root {root} was given",
                where="--root",
                hint="only broadcast and reduce have a root; leave the option out",
            )
        return None
    if root is None:
        return 0
    if isinstance(root, str):
        return _find_rank(topology, root)
    if not 0 <= root < topology.rank_count:
        raise InputError(
            f"there is no rank {root}; {topology.name} has ranks 0 to {topology.rank_count - 1}",
            where="--root",
            hint="ranks are counted from 0, in the order of the topology; a rank's name will do too",
        )
    return root


def _find_rank(topology: Topology, name: str) -> int:
    names = [topology.rank_name(rank) for rank in range(topology.rank_count)]
    if name in names:
        return names.index(name)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    nearest = f"did you mean {near[0]}? " if near else ""
    other = next((f", but a {vertex.kind}" for vertex in topology.vertices if vertex.name == name), "")
    raise InputError(
        f"'{name[:80]}' is no rank of {topology.name}{other}",
        where="--root",
        hint=f"{nearest}give a number from 0 to {topology.rank_count - 1} or a name; 'forestsyn check' lists both",
    )
