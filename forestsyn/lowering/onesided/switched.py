"""The operations of a rank whose domain has a switch that adds up and replicates.

Everyone in the domain says that it has begun before anyone reads or writes the others' buffers, and nobody ends
before all others have signalled that they are done. What a switch stores may arrive late even in the own memory: it
is there for all once its writer has signalled, so the mates of a narrow group signal each other before they read a
sum.
Between domains pieces move as along any tree (`simple`).
"""

from __future__ import annotations

from collections.abc import Sequence

from forestsyn.errors import UnsupportedError
from forestsyn.ir.collective import Collective
from forestsyn.ir.plan import BufferRange, ChannelType, Plan, PlanOperation, PlanStep
from forestsyn.ir.program import Buffer, Protocol
from forestsyn.ir.target import MSCCLPP
from forestsyn.lowering.onesided.draft import Draft, Group
from forestsyn.lowering.onesided.events import RankEvents, rank_events
from forestsyn.lowering.onesided.lanes import event_buffers, spread_peers
from forestsyn.lowering.onesided.limits import check_limits
from forestsyn.lowering.onesided.plans import THREADBLOCKS, finish_plan
from forestsyn.lowering.onesided.simple import Writer
from forestsyn.lowering.onesided.storage import Storage
from forestsyn.lowering.onesided.switching import SwitchSchedule

_MEMORY = ChannelType.MEMORY


def lower_switch_plan(
    schedule: SwitchSchedule,
    *,
    ports: frozenset[tuple[int, int]],
    out_of_place: bool,
    protocol: Protocol,
    name: str,
    minimum_bytes: int = 0,
    maximum_bytes: int = 0,
    threadblocks: int | None = None,
    slice_bytes: int = 0,
) -> Plan:
    """The plan that executes `schedule`; arguments and errors as those of `lower_plan`."""
    if protocol is not Protocol.SIMPLE:
        raise UnsupportedError(
            f"switches add up plain data only, not the packets of {protocol}",
            target=MSCCLPP.name,
            limit="protocol",
            hint="use --protocol Simple, or --nvls off",
        )
    width = max(len(domain.mates(rank)) for domain in schedule.domains for rank in domain.ranks)
    chunks = max(_chunks(schedule, rank) for rank in range(schedule.rank_count))
    storage = Storage(
        schedule,
        schedule.transfers,
        out_of_place=out_of_place,
        packets=False,
        reserved=width * chunks if schedule.narrow else 0,
    )
    drafts = [
        _Writer(schedule, storage, events, ports, sliced=slice_bytes > 0).draft
        for events in rank_events(schedule.transfers, schedule.rank_count, 0, 1)
    ]
    check_limits(drafts)
    return finish_plan(
        [drafts],
        storage,
        protocol=protocol,
        name=name,
        threadblocks=threadblocks or THREADBLOCKS,
        window=(minimum_bytes, maximum_bytes),
        slice_bytes=slice_bytes,
    )


class _Writer:
    """Writes the operations of one rank; they are complete in `draft`."""

    def __init__(
        self,
        schedule: SwitchSchedule,
        storage: Storage,
        events: RankEvents,
        ports: frozenset[tuple[int, int]],
        *,
        sliced: bool,
    ) -> None:
        self.schedule = schedule
        self.storage = storage
        self.rank = events.rank
        domain = schedule.domain(self.rank)
        self.members = domain.ranks
        self.mates = domain.mates(self.rank)
        self.others = [member for member in self.members if member != self.rank]
        buffers = dict.fromkeys(self.others, 0) | event_buffers(events, storage)
        self.draft = Draft(self.rank, ports, spread_peers(self.rank, ports, buffers), sliced=sliced)
        self.writer = Writer(events, storage, self.draft)
        self.handled = schedule.handled(self.rank)
        collective = schedule.collective
        self.draft.meet([*self.others, *events.sources], [*self.others, *events.destinations])
        self.draft.open_body()
        if collective.reduces:
            self._add_up()
        for level in events.levels():
            self.writer.send(level.departures)
            self.writer.receive(level)
        self.writer.add_rest()
        if schedule.narrow and not schedule.transfers:
            self._keep()
        if collective.broadcasts and (schedule.narrow or not collective.reduces):
            self._store()
        self.draft.close_body()
        self.draft.sync()
        self._signal(self.others)

    def _add_up(self) -> None:
        """The sums over the domain of all pieces that this rank handles."""
        self.draft.sync()
        schedule, storage = self.schedule, self.storage
        in_place = schedule.collective is Collective.ALLREDUCE and not storage.out_of_place
        source: Group = (Buffer.OUTPUT if in_place else Buffer.INPUT, self.members)
        target: Group = (Buffer.SCRATCH, self.mates) if schedule.narrow else (Buffer.OUTPUT, self.members)
        base = self.mates.index(self.rank) * _chunks(schedule, self.rank)
        for number, piece in enumerate(self.handled):
            first, count = schedule.pieces[piece].first, schedule.pieces[piece].count
            index = base + number * count if schedule.narrow else first
            self.writer.values[piece] = BufferRange(
                buffer=Buffer.SCRATCH if schedule.narrow else Buffer.OUTPUT, index=index, size=count
            )
            for lane in range(count):
                self.draft.add(
                    PlanStep(
                        operation=PlanOperation.GROUP_LOAD_REDUCE_STORE,
                        sources=(self.draft.switched(source, first + lane, 1, lane),),
                        destinations=(self.draft.switched(target, index + lane, 1, lane),),
                        channel_type=ChannelType.SWITCH,
                        reduce_op="sum",
                    ),
                    lane,
                )
        if schedule.narrow and any(schedule.handled(mate) for mate in self.mates):
            self.draft.sync()
            self._signal([mate for mate in self.mates if mate != self.rank])

    def _keep(self) -> None:
        """Sums that are results already."""
        self.draft.sync()
        for piece in self.handled:
            own, value = self.schedule.pieces[piece], self.writer.values[piece]
            result = self.storage.result(self.rank, own.first, own.count)
            for lane in range(own.count):
                step = PlanStep(
                    operation=PlanOperation.COPY, sources=(_chunk(value, lane),), destinations=(_chunk(result, lane),)
                )
                self.draft.add(step, lane)

    def _store(self) -> None:
        """All pieces that this rank handles, to everyone in the domain."""
        self.draft.sync()
        for piece in self.handled:
            own = self.schedule.pieces[piece]
            value = self.writer.values.get(piece) or self.storage.own(self.rank, own.first, own.count)
            for lane in range(own.count):
                target = self.draft.switched((Buffer.OUTPUT, self.members), own.first + lane, 1, lane)
                self.draft.add(
                    PlanStep(
                        operation=PlanOperation.GROUP_STORE,
                        sources=(_chunk(value, lane),),
                        destinations=(target,),
                        channel_type=ChannelType.SWITCH,
                    ),
                    lane,
                )

    def _signal(self, ranks: Sequence[int]) -> None:
        """Tell `ranks` that what came before is done, and wait for them to say so."""
        self.draft.notify(PlanOperation.SIGNAL, _MEMORY, ranks)
        self.draft.notify(PlanOperation.WAIT, _MEMORY, ranks)


def _chunks(schedule: SwitchSchedule, rank: int) -> int:
    """Chunks of the pieces that `rank` handles."""
    return sum(schedule.pieces[piece].count for piece in schedule.handled(rank))


def _chunk(run: BufferRange, number: int) -> BufferRange:
    """One chunk of `run`."""
    assert run.buffer is not None, "values lie in own buffers"
    return BufferRange(buffer=run.buffer, index=run.index + number, size=1)
