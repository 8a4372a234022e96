"""Numbers, waits and flags: the steps of one rank in their final form, with no wait that another implies.

Method. Walk the steps of a rank by time, which is a topological order of waits. Of every threadblock keep the highest
step of every other threadblock that is known to have finished; a step that must wait for one known to have finished
waits for nothing, and a step that waits learns all that the other knew. Flags count up, so that a wait for step t
covers all flagged steps before t.

Complexity. O(steps · threadblocks) for a rank.
"""

from __future__ import annotations

from forestsyn.ir.program import Dependency, Step
from forestsyn.lowering.steps import Draft

_Place = tuple[int, int]  # (threadblock, step)


def number_steps(rows: list[list[Draft]]) -> list[tuple[Step, ...]]:
    """The steps of each threadblock of one rank; `rows` holds their drafts in the order of execution."""
    place = {id(draft): (block, step) for block, row in enumerate(rows) for step, draft in enumerate(row)}
    waits = _needed_waits(rows, place)
    waited = set(waits.values())
    return [
        tuple(
            Step(
                operation=draft.operation,
                source=draft.source,
                destination=draft.destination,
                count=draft.count,
                depends_on=_dependency(waits.get((block, number))),
                flagged=(block, number) in waited,
            )
            for number, draft in enumerate(row)
        )
        for block, row in enumerate(rows)
    ]


def _needed_waits(rows: list[list[Draft]], place: dict[int, _Place]) -> dict[_Place, _Place]:
    """What each step that must wait waits for."""
    waits: dict[_Place, _Place] = {}
    known = [[-1] * len(rows) for _ in rows]
    known_at: dict[_Place, list[int]] = {}
    order = sorted((draft.time, block, step) for block, row in enumerate(rows) for step, draft in enumerate(row))
    for _, block, step in order:
        needed = rows[block][step].after
        if needed is not None:
            other, number = place[id(needed)]
            if other != block and known[block][other] < number:
                waits[block, step] = (other, number)
                known[block] = list(map(max, known[block], known_at[other, number]))
        known[block][block] = step
        known_at[block, step] = known[block].copy()
    return waits


def _dependency(wait: _Place | None) -> Dependency | None:
    return None if wait is None else Dependency(threadblock=wait[0], step=wait[1])
