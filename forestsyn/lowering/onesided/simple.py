"""The operations of one rank for one group of pieces, with plain data: put, signal, wait, reduce.

At the start each rank tells those it receives from that it has begun, and waits for those it sends to. At every
level it first adds up what must leave as a sum, then puts, then signals; then it waits for what arrives at that
level. A sum that leaves through memory is put by the operation that computes it.

Over memory one signal tells of everything that a rank puts to a peer at one level. Over a port each transfer brings
a signal of its own, since the proxy takes both as one request. A port reads its source late: the last request on
each channel, and each whose source is written again later, is flushed.
"""

from __future__ import annotations

from collections.abc import Iterator

from forestsyn.ir.plan import BufferRange, ChannelType, PlanOperation, PlanStep
from forestsyn.lowering.onesided.draft import CHANNELS_PER_STEP, Draft, Move, batches
from forestsyn.lowering.onesided.events import Level, RankEvents, Transfer
from forestsyn.lowering.onesided.storage import Storage


def draft_simple(events: RankEvents, storage: Storage, draft: Draft) -> Draft:
    """Fills `draft`, empty so far, with the operations of `events`."""
    writer = Writer(events, storage, draft)
    draft.meet(events.sources, events.destinations)
    draft.open_body()
    for level in events.levels():
        writer.send(level.departures)
        writer.receive(level)
    writer.add_rest()
    writer.copy_own()
    draft.close_body()
    return draft


class Writer:
    """Writes the operations of one rank's transfers. values: of each piece, where its value is now, if not in its own
    place."""

    def __init__(self, events: RankEvents, storage: Storage, draft: Draft) -> None:
        self.draft = draft
        self.rank = events.rank
        self.storage = storage
        self.values: dict[int, BufferRange] = {}
        #: Of each piece: what still must be added, and how many contributions are to come.
        self.pending: dict[int, list[BufferRange]] = {}
        self.coming: dict[int, int] = {}
        self.pieces: dict[int, Transfer] = {}
        self.requests_left: dict[int, int] = {}
        for transfer in _all(events):
            self.pieces.setdefault(transfer.piece, transfer)
            if transfer.destination == self.rank:
                self.coming[transfer.piece] = self.coming.get(transfer.piece, 0) + int(transfer.reduce)
            elif self.draft.way(transfer.destination) is ChannelType.PORT:
                self.requests_left[transfer.destination] = self.requests_left.get(transfer.destination, 0) + 1

    def send(self, departures: list[Transfer]) -> None:
        """Everything that leaves at one level."""
        if not departures:
            return
        self.draft.sync()
        memory = [item for item in departures if self.draft.way(item.destination) is ChannelType.MEMORY]
        through_port = [item for item in departures if self.draft.way(item.destination) is ChannelType.PORT]
        fused: set[int] = set()
        summed = [piece for piece in dict.fromkeys(item.piece for item in departures) if self.pending.get(piece)]
        for piece in summed:
            fused |= self._add_up(piece, [item for item in memory if item.piece == piece])
        rest = [item for item in memory if item.number not in fused]
        if any(item.piece in summed for item in (*rest, *through_port)):
            self.draft.sync()
        self._request(through_port)
        self.draft.put(PlanOperation.PUT, ChannelType.MEMORY, [self._move(item) for item in rest], distinct=False)
        if memory:
            self.draft.sync()
            peers = list(dict.fromkeys(item.destination for item in memory))
            self.draft.notify(PlanOperation.SIGNAL, ChannelType.MEMORY, peers)

    def receive(self, level: Level) -> None:
        """Wait for everything that arrives at one level."""
        sources = [item.source for item in level.arrivals]
        memory = dict.fromkeys(peer for peer in sources if self.draft.way(peer) is ChannelType.MEMORY)
        self.draft.notify(PlanOperation.WAIT, ChannelType.MEMORY, list(memory))
        port = [peer for peer in sources if self.draft.way(peer) is ChannelType.PORT]
        self.draft.notify(PlanOperation.WAIT, ChannelType.PORT, port)
        for item in level.arrivals:
            if item.reduce:
                self.pending.setdefault(item.piece, []).append(self.storage.landing(item))
                self.coming[item.piece] -= 1
            else:
                self.values[item.piece] = self.storage.landing(item)

    def add_rest(self) -> None:
        """Results that nothing sends on."""
        left = [piece for piece, terms in self.pending.items() if terms and self._keeps(piece)]
        if left:
            self.draft.sync()
        for piece in left:
            self._add_up(piece, [])

    def copy_own(self) -> None:
        """The own part of an allgather or broadcast out of place."""
        for item in self.pieces.values():
            own = self._own(item)
            result = self.storage.result(self.rank, item.first, item.count)
            if item.root == self.rank and not self.storage.collective.reduces and own != result:
                copy = PlanStep(operation=PlanOperation.COPY, sources=(own,), destinations=(result,))
                self.draft.add(copy, self.draft.any_lane(item.piece))

    def _add_up(self, piece: int, leaving: list[Transfer]) -> set[int]:
        """Adds what has arrived of a piece; `leaving` is sent as far as the operation takes it: returns those."""
        terms = self.pending.pop(piece)
        last = not self.coming[piece] and self._keeps(piece) and (self.rank, piece) not in self.storage.overwritten
        item = self.pieces[piece]
        target = self.storage.result(self.rank, item.first, item.count) if last else terms[0]
        rounds = batches(terms)
        lane = self.draft.lane(leaving[0].destination) if leaving else self.draft.any_lane(piece)
        near = [other for other in leaving if self.draft.lane(other.destination) == lane]
        sent = near[:CHANNELS_PER_STEP]
        for number, batch in enumerate(rounds):
            if number:
                self.draft.sync()
            remotes = sent if number == len(rounds) - 1 else []
            self.draft.add(
                PlanStep(
                    operation=PlanOperation.REDUCE_SEND if remotes else PlanOperation.REDUCE,
                    sources=(self._value(piece), *batch),
                    destinations=(target, *(self._landing(other) for other in remotes)),
                    channel_type=ChannelType.MEMORY if remotes else None,
                    reduce_op="sum",
                ),
                lane,
            )
            self.values[piece] = target
        return {other.number for other in sent}

    def _request(self, departures: list[Transfer]) -> None:
        """Ask the proxy for transfers, those that must be flushed after the others."""
        plain: list[Move] = []
        flushed: list[Move] = []
        for item in departures:
            self.requests_left[item.destination] -= 1
            must_flush = not self.requests_left[item.destination] or self.coming.get(item.piece, 0)
            (flushed if must_flush else plain).append(self._move(item))
        port = ChannelType.PORT
        self.draft.put(PlanOperation.PUT_SIGNAL, port, plain, distinct=True)
        if plain and flushed:
            self.draft.sync()
        self.draft.put(PlanOperation.PUT_SIGNAL_FLUSH, port, flushed, distinct=True)

    def _move(self, item: Transfer) -> Move:
        return self._value(item.piece), self.storage.landing(item), item.destination

    def _landing(self, item: Transfer) -> BufferRange:
        return self.draft.remote(item.destination, self.storage.landing(item))

    def _value(self, piece: int) -> BufferRange:
        return self.values.get(piece) or self._own(self.pieces[piece])

    def _own(self, item: Transfer) -> BufferRange:
        return self.storage.own(self.rank, item.first, item.count)

    def _keeps(self, piece: int) -> bool:
        return self.storage.keeps(self.rank, self.pieces[piece].root)


def _all(events: RankEvents) -> Iterator[Transfer]:
    for level in events.levels():
        yield from level.arrivals
        yield from level.departures
