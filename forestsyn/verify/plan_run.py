"""Execution of a plan, call after call, with clocks: progress, order of accesses, and values.

Model. The callers of all ranks start one call after the other. A caller writes its user memory between calls, so
everything others do there must lie between its start and its end of the call: that is what handshakes are for.
Inside a call a threadblock's operations are ordered by `nop` and barriers, between threadblocks by signals,
semaphores, packets and barriers, and requests on a port by the port.

Guarantee. Counters make progress independent of the order in which threadblocks run, so one run finds every
deadlock. Without conflicts the values do not depend on that order either. Two calls show every conflict between a
call and the next, three between a call and the one after the next, which shares its half of alternating scratch;
later calls repeat these.
"""

from __future__ import annotations

from collections.abc import Iterator

from forestsyn.ir.plan import Plan
from forestsyn.ir.plan import PlanOperation as Op
from forestsyn.verify.plan_actions import USER, Action, Machine, Move
from forestsyn.verify.plan_actors import Actor, Block, Counter, MoveName
from forestsyn.verify.plan_data import Data
from forestsyn.verify.plan_limits import PACKETS
from forestsyn.verify.plan_report import PlanFaults
from forestsyn.verify.plan_values import Values

_WAITS = (Op.WAIT, Op.RELAXED_WAIT)
_SIGNALS = (Op.SIGNAL, Op.RELAXED_SIGNAL, Op.PUT_SIGNAL, Op.PUT_SIGNAL_FLUSH)


class PlanRun:
    """One execution. Call `run`; the faults are in the log behind `faults`."""

    def __init__(self, plan: Plan, machine: Machine, faults: PlanFaults, *, strict: bool) -> None:
        self.plan = plan
        self.strict = strict
        self.machine = machine
        self.faults = faults
        self.values = Values(plan, machine)
        ranks, threads = len(plan.gpus), len(machine.threads)
        actors = threads + ranks + len(machine.ports)
        self.blocks = [Block(number, actors, thread) for number, thread in enumerate(machine.threads)]
        self.callers = [Actor(threads + rank, actors) for rank in range(ranks)]
        self.ports = [Actor(threads + ranks + port, actors) for port in range(len(machine.ports))]
        self.actors: list[Actor] = [*self.blocks, *self.callers, *self.ports]
        self.pushes: dict[int, tuple[int, int, int]] = {}  # port -> threadblock, epoch, thread of the last request
        self.data = Data(plan, machine, self.values, faults)
        self.calls = 3 if plan.use_double_scratch_buffer else 2
        self.counters = [Counter() for _ in machine.counters]
        self.semaphores = [[Counter(item.init_value) for item in gpu.semaphores] for gpu in plan.gpus]
        self.barriers: dict[tuple[int, int], list[Block]] = {}
        self.done: list[frozenset[MoveName]] = [frozenset()] * ranks  # what packets have shown to each rank
        faults.attach(self)

    def run(self, root: int | None) -> int | None:
        """All calls; the root that the result has, or was asked for."""
        if not self._count():
            return root
        for call in range(self.calls):
            self.data.call = call
            self._begin()
            if not self._execute():
                return root
            self._end()
            if self.faults.broken_values:
                return root
            root = self._check_result(root)
        self._touch_user_memory()
        return root

    # Counters must balance.

    def _count(self) -> bool:
        for block in self.blocks:
            for action in block.thread.actions:
                for counter, gives in self._counters_of(block, action):
                    (counter.givers if gives else counter.takers).add(block.number)
                    counter.given_per_call += gives
                    counter.taken_per_call += not gives
        balanced = self.faults.check_pairing(self.machine, self.counters, self.semaphores)
        unreached = [
            (block, action)
            for block in self.blocks
            for action in block.thread.actions
            if action.operation in _SIGNALS and -1 in action.ids
        ]
        for block, action in unreached:
            self.faults.unreached(block, action)
        return balanced and not unreached

    def _counters_of(self, block: Block, action: Action) -> list[tuple[Counter, bool]]:
        if action.operation in (Op.SEMAPHORE_ACQUIRE, Op.SEMAPHORE_RELEASE):
            own = self.semaphores[block.thread.rank]
            return [(own[name], action.operation is Op.SEMAPHORE_RELEASE) for name in action.ids]
        if action.operation in _WAITS or action.operation in _SIGNALS:
            return [(self.counters[name], action.operation in _SIGNALS) for name in action.ids if name >= 0]
        return []

    # Calls.

    def _begin(self) -> None:
        self._touch_user_memory()
        for rank, (user, _) in enumerate(self.data.memory):
            user.values = [None] * len(user.values)
            first = self.machine.bases[rank][0]
            for cell in range(self.machine.input_cells):
                user.values[first + cell] = self.values.initial(rank, cell, self.data.call)
        for block in self.blocks:
            block.next = 0
            block.learn(self.callers[block.thread.rank].clock)
            block.done = self.done[block.thread.rank]

    def _touch_user_memory(self) -> None:
        for rank, caller in enumerate(self.callers):
            touch = caller.act()
            cells = self.data.memory[rank][USER]
            cells.write(range(len(cells.values)), touch, caller.clock, self.faults.reporter(rank, USER))
            caller.learn()

    def _end(self) -> None:
        """A call of a rank ends when its threadblocks have ended; the requests of its ports may go on."""
        for block in self.blocks:
            self._sync(block)
        for rank, caller in enumerate(self.callers):
            own = [block for block in self.blocks if block.thread.rank == rank]
            caller.learn(*(block.clock for block in own))
            for block in own:
                self.data.note_end(block, caller)
            self.done[rank] = self.done[rank].union(*(block.done for block in own))

    def _sync(self, block: Block) -> None:
        block.sync(self._length)

    def _length(self, name: MoveName) -> int:
        actor, time, move = name
        found = self.actors[actor].actions[time - 1]
        assert found is not None, "callers write no packets"
        return found[1].moves[move].destinations[0].count

    def _check_result(self, root: int | None) -> int | None:
        """Values and visibility of the output; a root that was not given is the first that fits."""
        if root is None:
            fitting = (one for one in self.values.roots() if next(self._wrong(one), None) is None)
            root = next(fitting, next(iter(self.values.roots())))
        for rank, cell, expected in self._wrong(root):
            self.faults.wrong_result(rank, cell, self._output(rank, cell), expected)
        promised: dict[int, list[int]] = {}
        for rank, cell, _ in self.values.expected(root, self.data.call):
            promised.setdefault(rank, []).append(cell + self.machine.bases[rank][1])
        for rank, cells in promised.items():
            caller, report = self.callers[rank], self.faults.reporter(rank, USER)
            self.data.memory[rank][USER].read(range(cells[0], cells[-1] + 1), caller.act(), caller.clock, report)
            caller.learn()
        return root

    def _wrong(self, root: int | None) -> Iterator[tuple[int, int, int]]:
        for rank, cell, expected in self.values.expected(root, self.data.call):
            if self._output(rank, cell) != expected:
                yield rank, cell, expected

    def _output(self, rank: int, cell: int) -> int | None:
        return self.data.memory[rank][USER].values[self.machine.bases[rank][1] + cell]

    # One call.

    def _execute(self) -> bool:
        """Runs every threadblock as far as it goes until all have ended, or none moves."""
        active = list(self.blocks)
        while active:
            moved = False
            for block in active:
                while (action := block.action) is not None and self._ready(block, action):
                    self._perform(block, action)
                    block.next += 1
                    moved = True
            active = [block for block in active if block.action is not None]
            if active and not moved:
                self.faults.deadlock([(block, block.action) for block in active if block.action is not None])
                return False
        return True

    def _ready(self, block: Block, action: Action) -> bool:
        if action.operation is Op.BARRIER:
            return self._barrier_opens(block, action)
        if action.operation in _WAITS or action.operation is Op.SEMAPHORE_ACQUIRE:
            needed = [counter for counter, _ in self._counters_of(block, action)]
            return all(counter.ready >= needed.count(counter) for counter in needed)
        if action.operation in PACKETS:
            return self.data.have_packets(action)
        return True

    def _barrier_opens(self, block: Block, action: Action) -> bool:
        """The last one to arrive lets all pass; the others pass when they are asked next."""
        if block.released:
            block.released = False
            return True
        waiting = self.barriers.setdefault((block.thread.rank, action.ids[0]), [])
        if block not in waiting:
            self._sync(block)
            waiting.append(block)
        if len(waiting) < action.count:
            return False
        clocks = [member.clock for member in waiting]
        for member in waiting:
            member.learn(*clocks)
            member.released = member is not block
        waiting.clear()
        return True

    def _perform(self, block: Block, action: Action) -> None:
        operation = action.operation
        if operation in (Op.SYNC, Op.BARRIER):
            if operation is Op.SYNC:
                self._sync(block)
            return
        touch = block.act(block.thread.block, action)
        if operation in _WAITS or operation is Op.SEMAPHORE_ACQUIRE:
            for counter, _ in self._counters_of(block, action):
                for clock, relaxed in counter.take():
                    block.hear(clock, relaxed=relaxed or operation is Op.RELAXED_WAIT)
        elif operation is Op.SEMAPHORE_RELEASE:
            for counter, _ in self._counters_of(block, action):
                counter.signals.append((block.clock, False))
        elif operation is Op.FLUSH:
            # In this version a flush waits for as many channels as it has destinations; a strict verdict tells.
            for position, port in enumerate(action.ids[: action.count] if self.strict else action.ids):
                self._order(block, action, port, position)
                block.hear(self.ports[port].clock, relaxed=False)
        else:
            if operation is Op.READ_PUT_PACKETS and any(move.port >= 0 for move in action.moves):
                self._hear_packets(block, action)
                self._sync(block)
            for move in action.moves:
                if move.port >= 0:
                    self._request(block, action, move)
                else:
                    self.data.move(block, action, move, touch, block)
            if operation in PACKETS:
                self._hear_packets(block, action)
            self._signal(block, action)

    def _request(self, block: Block, action: Action, move: Move) -> None:
        """A request to the proxy: done some time after it was made, after the earlier ones on the same port."""
        port = self.ports[move.port]
        if action.operation in _SIGNALS:
            self._order(block, action, move.port, move.position)
        self.pushes[move.port] = (block.number, block.epoch, move.position)
        port.learn(block.clock, finished=False)
        touch = port.act(block.thread.block, action)
        port.learn()
        if move.sources:
            self.data.move(block, action, move, touch, port)

    def _order(self, block: Block, action: Action, port: int, position: int) -> None:
        """A signal or flush speaks for the requests before it, so it must be certain which those are."""
        last = self.pushes.get(port)
        if last and last[:2] == (block.number, block.epoch) and last[2] != position:
            self.faults.unordered(block, action, self.machine.ports[port])

    def _signal(self, block: Block, action: Action) -> None:
        if action.operation not in _SIGNALS:
            return
        relaxed = action.operation is Op.RELAXED_SIGNAL
        if not relaxed:
            self.data.note_signal(block)
        for place, name in enumerate(action.ids):
            port = action.moves[place].port if action.moves else -1
            clock = self.ports[port].clock if port >= 0 else block.clock
            self.counters[name].signals.append((clock, relaxed and port < 0))
            if action.operation is Op.PUT_SIGNAL_FLUSH:
                block.hear(clock, relaxed=False)

    def _hear_packets(self, block: Block, action: Action) -> None:
        """Reading a packet tells that its writer had come so far."""
        for move in action.moves:
            for clock in self.data.senders(move):
                block.hear(clock, relaxed=True)
            for past in self.data.pasts(move):
                block.see(past)
