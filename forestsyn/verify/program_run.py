"""Runs a machine message by message, without data, to see whether and in which order it finishes.

Problem. Threads run their actions in order; a send waits while its FIFO holds `depth` messages, a receive while it
holds none, and an action with a wait until another action is done. An action on c chunks moves ⌈c/unit⌉ messages.
Does everything finish?

Guarantee. One run decides, whatever order it picks. Each thread is deterministic, each FIFO has one writer and one
reader, and a flag once raised stays raised: what is able to proceed stays able until it does, and two that can
proceed can do so in either order with the same outcome. So all maximal runs carry out the same set of messages, and
if this one gets stuck, every execution does, in the same state. The order of this run is also one topological
order of happens-before.

Two consequences save runs. A deeper FIFO only removes waits, so finishing at depth d means finishing at every depth
above. And finishing with unit 1 means finishing with whole actions (unit ≥ every count): look at the event
"last message of action a". Program order, waits, and a receive waiting for its send relate last events in the same
way for both. A send of a whole action i waits for the receive of action i − d; with unit 1 the last message of i
waits until no more than d messages are on their way, so, as every action is at least one message, at least as long.
Every cycle of whole actions therefore is one of single messages too.

Complexity: linear in the number of messages. Deterministic: threads take turns in a fixed order.
"""

from __future__ import annotations

from collections import deque

import msgspec

from forestsyn.verify.program_machine import Machine

#: A `unit` that no action exceeds: every action is one message.
WHOLE = 1 << 30
#: A `depth` that never fills.
UNBOUNDED = 1 << 60


class Segment(msgspec.Struct, frozen=True):
    """Messages first .. first+amount−1 of one action, done in one go."""

    thread: int
    action: int
    first: int
    amount: int


class Run(msgspec.Struct, frozen=True):
    """One maximal run. order: everything done. blocked: (thread, action, thread it waits for or −1) at the end."""

    unit: int
    order: list[Segment]
    blocked: list[tuple[int, int, int]]

    @property
    def finished(self) -> bool:
        """True when every thread came to its end."""
        return not self.blocked


def run_machine(machine: Machine, *, depth: int, unit: int) -> Run:
    """Runs `machine` as far as it goes with FIFOs of `depth` messages of `unit` chunks."""
    runner = _Runner(machine, depth, unit)
    runner.run()
    return Run(unit, runner.order, runner.blocked())


class _Runner:
    def __init__(self, machine: Machine, depth: int, unit: int) -> None:
        self.order: list[Segment] = []
        self._machine = machine
        self._depth = depth
        self._unit = unit
        threads = len(machine.threads)
        self._position = [0] * threads
        self._progress = [0] * threads
        self._flag = [-1] * threads  # the last flagged action that is done
        self._waiting: list[list[int]] = [[] for _ in range(threads)]
        self._sent = [0] * len(machine.connections)
        self._received = [0] * len(machine.connections)
        self._queue = deque(range(threads))
        self._queued = [True] * threads

    def run(self) -> None:
        while self._queue:
            thread = self._queue.popleft()
            self._queued[thread] = False
            self._advance(thread)

    def blocked(self) -> list[tuple[int, int, int]]:
        return [
            (thread, self._position[thread], self._holder(thread))
            for thread, owner in enumerate(self._machine.threads)
            if self._position[thread] < len(owner.actions)
        ]

    def _advance(self, thread: int) -> None:
        """Lets one thread go on until it must wait."""
        owner = self._machine.threads[thread]
        incoming, outgoing = owner.incoming, owner.outgoing
        sent, received = self._sent, self._received
        for position in range(self._position[thread], len(owner.actions)):
            self._position[thread] = position
            action = owner.actions[position]
            done = self._progress[thread]
            if not done and action.waits is not None and self._flag[action.waits[0]] < action.waits[1]:
                self._waiting[action.waits[0]].append(thread)
                return
            left = amount = -(-action.count // self._unit) - done
            if action.shape.receives:
                amount = min(amount, sent[incoming] - received[incoming])
            if action.shape.sends:
                amount = min(amount, self._depth - sent[outgoing] + received[outgoing])
            if amount or not left:
                self.order.append(Segment(thread, position, done, amount))
            if amount:
                if action.shape.receives:
                    received[incoming] += amount
                    self._wake(self._machine.connections[incoming].sender)
                if action.shape.sends:
                    sent[outgoing] += amount
                    self._wake(self._machine.connections[outgoing].receiver)
            if amount < left:
                self._progress[thread] = done + amount
                return
            self._progress[thread] = 0
            if action.flags:
                self._raise(thread, position)
        self._position[thread] = len(owner.actions)

    def _raise(self, thread: int, position: int) -> None:
        self._flag[thread] = position
        waiting, self._waiting[thread] = self._waiting[thread], []
        for waiter in waiting:
            self._wake(waiter)

    def _wake(self, thread: int) -> None:
        if thread >= 0 and not self._queued[thread]:
            self._queued[thread] = True
            self._queue.append(thread)

    def _holder(self, thread: int) -> int:
        """The thread that a blocked one waits for, −1 when nobody is at the other end."""
        owner = self._machine.threads[thread]
        action = owner.actions[self._position[thread]]
        if not self._progress[thread] and action.waits is not None and self._flag[action.waits[0]] < action.waits[1]:
            return action.waits[0]
        if action.shape.receives and self._sent[owner.incoming] == self._received[owner.incoming]:
            return self._machine.connections[owner.incoming].sender
        return self._machine.connections[owner.outgoing].receiver
