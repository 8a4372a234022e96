"""Who acts: threadblocks, ports and callers, with their clocks; counters and semaphores with what they tell."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from forestsyn.verify.plan_actions import Action, Thread
from forestsyn.verify.plan_memory import VISIBLE, Clock, Past

MoveName = tuple[int, int, int]  # actor, its action, move


class Actor:
    """A clock and the number of the last action.

    actions: all so far, with the threadblock of the rank that they belong to; None for those of a caller.
    """

    def __init__(self, number: int, actors: int) -> None:
        self.number = number
        self.time = 0
        self.clock: Clock = np.zeros((2, actors), dtype=np.int32)
        self.actions: list[tuple[int, Action] | None] = []

    def act(self, block: int = -1, action: Action | None = None) -> tuple[int, int]:
        """One more action, of threadblock `block` of the rank: (actor, its number)."""
        self.time += 1
        self.actions.append(None if action is None else (block, action))
        return self.number, self.time

    def learn(self, *clocks: Clock, finished: bool = True) -> None:
        """Takes over what `clocks` know; `finished`: all own actions are done and visible."""
        self.clock = reduce(np.maximum, clocks, self.clock)
        if finished:
            self.clock = self.clock.copy()
            self.clock[:, self.number] = self.time


class Block(Actor):
    """A threadblock. What one of its threads hears is known to all, and what they did is done, at the next `nop`.

    epoch: how many of those there were. done: moves of others (actor, action, move) that packets have shown to be
    done in their whole range, as far as reading goes.
    """

    def __init__(self, number: int, actors: int, thread: Thread) -> None:
        super().__init__(number, actors)
        self.thread = thread
        self.next = 0
        self.epoch = 0
        self.released = False  # from the barrier it waits at
        self.done: frozenset[MoveName] = frozenset()
        self._heard: list[Clock] = []
        self._shown: dict[MoveName, set[int]] = {}

    @property
    def action(self) -> Action | None:
        """What comes next."""
        actions = self.thread.actions
        return actions[self.next] if self.next < len(actions) else None

    def hear(self, clock: Clock, *, relaxed: bool) -> None:
        """One thread learns what `clock` knows; `relaxed`: the order only."""
        if relaxed:
            clock = clock.copy()
            clock[VISIBLE] = 0
        self._heard.append(clock)

    def see(self, past: Past) -> None:
        """A thread has read a packet that came about by `past`."""
        for actor, time, move, place in past:
            self._shown.setdefault((actor, time, move), set()).add(place)

    def sync(self, length: Callable[[MoveName], int]) -> None:
        """All threads meet. length: places in the range of a move."""
        self.learn(*self._heard)
        self._heard = []
        self.epoch += 1
        whole = [name for name, places in self._shown.items() if len(places) == length(name)]
        if whole:
            self.done |= frozenset(whole)
            for name in whole:
                del self._shown[name]


class Counter:
    """Signals and waits of one end of a channel, or releases and acquires of a semaphore.

    signals: what each tells. givers, takers: threadblocks that signal and wait, per_call: how often in one call.
    """

    def __init__(self, initial: int = 0) -> None:
        self.initial = initial
        self.signals: list[tuple[Clock, bool]] = []
        self.taken = 0
        self.givers: set[int] = set()
        self.takers: set[int] = set()
        self.given_per_call = 0
        self.taken_per_call = 0

    @property
    def ready(self) -> int:
        """How many may pass."""
        return self.initial + len(self.signals) - self.taken

    def take(self) -> list[tuple[Clock, bool]]:
        """Passes once; what is known thereby, whoever was first."""
        self.taken += 1
        number = self.taken - self.initial
        if number < 1:
            return []
        if len(self.givers) == len(self.takers) == 1:
            return [self.signals[number - 1]]
        if len(self.takers) == 1 and number % self.given_per_call == 0:
            return self.signals[number - self.given_per_call : number]
        if len(self.givers) == 1:  # several wait, one signals: at least its first signal of this call was given
            return [self.signals[(number - 1) // self.given_per_call * self.given_per_call]]
        return []
