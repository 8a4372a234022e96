"""Why a run cannot go on: the cycle of threadblocks that wait for each other, in words."""

from __future__ import annotations

from collections.abc import Mapping

from forestsyn.simulate.machine import Machine

_SHOWN = 8


def describe_wait(machine: Machine, blocked: Mapping[int, str]) -> tuple[str, ...]:
    """One sentence for each threadblock of a wait cycle (or of the chain to one that never moves), at most 8."""
    seen: list[int] = []
    thread = min(blocked)
    while thread in blocked and thread not in seen:
        seen.append(thread)
        thread = _waits_for(machine, thread, blocked[thread])
    cycle = seen[seen.index(thread) :] if thread in seen else seen
    return tuple(_sentence(machine, member, blocked[member]) for member in cycle[:_SHOWN])


def _waits_for(machine: Machine, thread: int, reason: str) -> int:
    own = machine.threads[thread]
    if reason == "message":
        return machine.senders[own.takes_from]
    if reason == "slot":
        return machine.receivers[own.puts_into]
    waits = [other for action in own.actions for other, _ in action.waits]
    return waits[0] if waits else -1


def _sentence(machine: Machine, thread: int, reason: str) -> str:
    own = machine.threads[thread]
    where = f"rank {own.rank} threadblock {own.number}"
    if reason == "message":
        return f"{where} waits for a message from rank {machine.ends[own.takes_from][0]}"
    if reason == "slot":
        return f"{where} waits until rank {machine.ends[own.puts_into][1]} takes a message"
    return f"{where} waits for another threadblock of its rank"
