"""Why a run cannot go on: the cycle of threadblocks that wait for each other, in words."""

from __future__ import annotations

from forestsyn.simulate.machine import DEPENDENCY, MESSAGE, NEVER, Machine

_SHOWN = 8


def describe_waits(
    machine: Machine, blocked: tuple[tuple[int, int, int], ...], at: tuple[int, ...]
) -> tuple[str, ...]:
    """One sentence for each threadblock of a wait cycle, or of a chain to one that will never move; at most 8.

    blocked: (thread, counter, value it waits for), not empty. at: the move that each thread has come to.
    """
    waits = {thread: (counter, need) for thread, counter, need in blocked}
    path: list[int] = []
    thread = blocked[0][0]
    while thread in waits and thread not in path:
        path.append(thread)
        thread = machine.counters[waits[thread][0]].poster
    cycle = path[path.index(thread) :] if thread in path else path
    sentences = [_sentence(machine, member, *waits[member], at[member]) for member in cycle[:_SHOWN]]
    if len(cycle) > _SHOWN:
        sentences.append(f"… {len(cycle) - _SHOWN} more")
    return tuple(sentences)


def _sentence(machine: Machine, thread: int, number: int, need: int, move: int) -> str:
    own, counter = machine.threads[thread], machine.counters[number]
    label = own.labels[move]
    where = f"rank {own.rank} threadblock {own.number} step {label.step}"
    other = machine.threads[counter.poster].number if counter.poster >= 0 else None
    if counter.kind == DEPENDENCY:
        if other is None or need >= NEVER:
            return f"{where} waits for a step that never says that it is done"
        return f"{where} waits for step {counter.steps[(need - 1) % len(counter.steps)]} of threadblock {other}"
    end = "" if other is None else f" (threadblock {other})"
    if counter.kind == MESSAGE:
        return f"{where} waits for a message from rank {label.peer_receive}{end}"
    return f"{where} waits until rank {label.peer_send}{end} takes a message"
