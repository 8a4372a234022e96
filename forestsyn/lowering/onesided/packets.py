"""The operations of one rank for one group of pieces, with packets: small messages without signals.

A packet carries a flag beside each 8 bytes of data that changes from call to call, so that reading it waits for it.
Everything lands in scratch. A rank passes a packet on as it came (`rppkt`), adds packets to its own data and sends
the sum as packets (`respkt`), and unpacks at the end. A port moves packets from scratch to scratch, so data that
leaves through one is made into packets first (`cpkt`, `recspkt`).

Calls follow one another without a handshake where every rank hears from every other in each call: then a rank that
begins call k+2 knows that all have finished call k, and scratch alternates between two halves. Where that does not
hold (broadcast, reduce), the ranks meet first, as with plain data, and ports are flushed at the end.
"""

from __future__ import annotations

from forestsyn.ir.collective import Collective
from forestsyn.ir.plan import BufferRange, ChannelType, PlanOperation, PlanStep
from forestsyn.lowering.onesided.draft import CHANNELS_PER_STEP, Draft, batches
from forestsyn.lowering.onesided.events import RankEvents, Transfer
from forestsyn.lowering.onesided.storage import Storage

_MEMORY, _PORT = ChannelType.MEMORY, ChannelType.PORT


def needs_meeting(collective: Collective) -> bool:
    """Whether some rank could run ahead of another by more than one call."""
    return collective.rooted


def draft_packets(events: RankEvents, storage: Storage, draft: Draft) -> Draft:
    """Fills `draft`, empty so far, with the operations of `events`."""
    writer = _Writer(events, storage, draft)
    for peer in sorted({*events.sources, *events.destinations}):
        draft.channel(peer)
    if needs_meeting(storage.collective):
        draft.meet(events.sources, events.destinations)
        draft.sync()
    for level in events.levels():
        for piece in dict.fromkeys(item.piece for item in level.departures):
            writer.send(piece, [item for item in level.departures if item.piece == piece])
        for item in level.arrivals:
            writer.receive(item)
    writer.finish()
    if needs_meeting(storage.collective):
        draft.flush(peer for peer in events.destinations if draft.way(peer) is _PORT)
    return draft


class _Writer:
    def __init__(self, events: RankEvents, storage: Storage, draft: Draft) -> None:
        self.draft = draft
        self.rank = events.rank
        self.storage = storage
        #: Of each piece: its value as plain data, the same as packets, and packets that must be added.
        self.plain: dict[int, BufferRange] = {}
        self.packed: dict[int, BufferRange] = {}
        self.pending: dict[int, list[BufferRange]] = {}
        self.pieces: dict[int, Transfer] = {}
        for level in events.levels():
            for item in (*level.arrivals, *level.departures):
                self.pieces.setdefault(item.piece, item)

    def send(self, piece: int, departures: list[Transfer]) -> None:
        """All copies of one piece that leave at one level."""
        if len(self.draft.lanes) > 1:
            self.draft.sync()  # another lane may have made what this one sends
        memory = [item for item in departures if self.draft.way(item.destination) is _MEMORY]
        memory.sort(key=lambda item: self.draft.lane(item.destination))
        through_port = [item for item in departures if self.draft.way(item.destination) is _PORT]
        if self.pending.get(piece):
            memory = memory[self._add_up(piece, memory, packed=bool(through_port)) :]
            if memory:
                self.draft.sync()
        if piece in self.packed and piece not in self.plain:
            self._pass_on(_MEMORY, piece, memory)
        else:
            moves = [(self._value(piece), self.storage.landing(item), item.destination) for item in memory]
            self.draft.put(PlanOperation.PUT_PACKETS, _MEMORY, moves, distinct=False)
        if through_port:
            self._pack(piece)
            self._pass_on(_PORT, piece, through_port)

    def receive(self, item: Transfer) -> None:
        """Remember where a transfer arrives; whoever reads its packets waits for them."""
        landing = self.storage.landing(item)
        if item.reduce:
            self.pending.setdefault(item.piece, []).append(landing)
            self.packed.pop(item.piece, None)
        else:
            self.packed[item.piece] = landing
            self.plain.pop(item.piece, None)

    def finish(self) -> None:
        """Results that nothing sends on, unpacked copies, and the own part of an allgather or broadcast."""
        self.draft.sync()
        for piece, item in self.pieces.items():
            result = self.storage.result(self.rank, item.first, item.count)
            lane = self.draft.any_lane(piece)
            if not self.storage.keeps(self.rank, item.root):
                continue
            if self.pending.get(piece):
                self._add_up(piece, [], packed=False)
            elif piece in self.packed and piece not in self.plain:
                self._step(PlanOperation.UNPACK_PACKETS, (self.packed[piece],), (result,), lane)
            elif not self.storage.collective.reduces and self._value(piece) != result:
                self._step(PlanOperation.COPY, (self._value(piece),), (result,), lane)

    def _add_up(self, piece: int, leaving: list[Transfer], *, packed: bool) -> int:
        """Adds the packets of a piece and sends the sum to the first of `leaving`, as many as is returned."""
        item = self.pieces[piece]
        keeps = self.storage.keeps(self.rank, item.root)
        target = (
            self.storage.result(self.rank, item.first, item.count)
            if keeps
            else self.storage.take_plain_scratch(self.rank, item.count)
        )
        rounds = batches(self.pending.pop(piece))
        lane = self.draft.lane(leaving[0].destination) if leaving else self.draft.any_lane(piece)
        sent = [other for other in leaving if self.draft.lane(other.destination) == lane][:CHANNELS_PER_STEP]
        for number, batch in enumerate(rounds):
            last = number == len(rounds) - 1
            if number:
                self.draft.sync()
            self._sum(piece, batch, target, sent if last else [], lane, packed=packed and last)
        return len(sent)

    def _sum(
        self,
        piece: int,
        terms: list[BufferRange],
        target: BufferRange,
        leaving: list[Transfer],
        lane: int,
        *,
        packed: bool,
    ) -> None:
        destinations = [target]
        if packed:
            self.packed[piece] = self.storage.take_scratch(self.rank, target.size)
            destinations.append(self.packed[piece])
        operation = {
            (False, False): PlanOperation.REDUCE_PACKETS,
            (False, True): PlanOperation.REDUCE_SEND_PACKETS,
            (True, False): PlanOperation.REDUCE_COPY_PACKETS,
            (True, True): PlanOperation.REDUCE_COPY_SEND_PACKETS,
        }[packed, bool(leaving)]
        remotes = [self.draft.remote(item.destination, self.storage.landing(item)) for item in leaving]
        sources = (self._value(piece), *terms)
        self._step(operation, sources, (*destinations, *remotes), lane, memory=bool(leaving), adds=True)
        self.plain[piece] = target

    def _pack(self, piece: int) -> None:
        """Makes sure that the value of a piece exists as packets of this rank."""
        if piece not in self.packed:
            self.plain[piece] = self._value(piece)
            self.packed[piece] = self.storage.take_scratch(self.rank, self.pieces[piece].count)
            lane = self.draft.any_lane(piece)
            self._step(PlanOperation.COPY_PACKETS, (self._value(piece),), (self.packed[piece],), lane)

    def _pass_on(self, way: ChannelType, piece: int, departures: list[Transfer]) -> None:
        for lane in range(len(self.draft.lanes)):
            own = [item for item in departures if self.draft.lane(item.destination) == lane]
            for batch in batches(own, key=lambda item: item.destination):
                peers = [item.destination for item in batch]
                step = PlanStep(
                    operation=PlanOperation.READ_PUT_PACKETS,
                    sources=(self.packed[piece],),
                    destinations=tuple(
                        self.draft.remote(item.destination, self.storage.landing(item)) for item in batch
                    ),
                    channel_type=way,
                    channel_ids=tuple(self.draft.channel(peer) for peer in peers) if way is _PORT else (),
                )
                self.draft.add(step, lane)

    def _step(
        self,
        operation: PlanOperation,
        sources: tuple[BufferRange, ...],
        destinations: tuple[BufferRange, ...],
        lane: int,
        *,
        memory: bool = False,
        adds: bool = False,
    ) -> None:
        self.draft.add(
            PlanStep(
                operation=operation,
                sources=sources,
                destinations=destinations,
                channel_type=_MEMORY if memory else None,
                reduce_op="sum" if adds else None,
            ),
            lane,
        )

    def _value(self, piece: int) -> BufferRange:
        item = self.pieces[piece]
        return self.plain.get(piece) or self.storage.own(self.rank, item.first, item.count)
