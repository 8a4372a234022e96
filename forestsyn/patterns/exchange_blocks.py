"""Steps of exchanges of shards: recursive doubling and halving, and Bruck. The message has one chunk per rank.

Gathering runs the rounds forwards; reducing runs them backwards, with sources and destinations swapped and sums
instead of copies. The chunks of a message are sent as runs that are contiguous wherever they lie, one run
ahead at most.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from forestsyn.ir.collective import Collective
from forestsyn.ir.program import Buffer, Location
from forestsyn.patterns.composer import LOCAL, RankComposer
from forestsyn.patterns.exchange import Exchange, Round, gather_rounds

_Place = Callable[[int], Location]
#: (source, destination, first chunk, count) of one step each side.
_Run = tuple[int, int, int, int]


def compose_blocks(
    exchange: Exchange, ranks: Sequence[RankComposer], *, out_of_place: bool, fused: bool, count_max: int
) -> None:
    """The reducing rounds, then the gathering ones, as far as the collective has them."""
    composer = _Blocks(exchange, ranks, out_of_place=out_of_place, fused=fused, count_max=count_max)
    rounds = gather_rounds(exchange)
    if exchange.collective.reduces:
        backwards = [[(head, tail, chunks) for tail, head, chunks in messages] for messages in reversed(rounds)]
        composer.plan_sums(backwards)
        for messages in backwards:
            composer.reduce(messages)
    if exchange.collective.broadcasts:
        composer.start_gathering()
        for messages in rounds:
            composer.gather(messages)


class _Blocks:
    """Where each rank has each chunk, as the rounds go by."""

    def __init__(
        self,
        exchange: Exchange,
        ranks: Sequence[RankComposer],
        *,
        out_of_place: bool,
        fused: bool,
        count_max: int,
    ) -> None:
        self.collective = exchange.collective
        self.ranks = ranks
        self.out_of_place = out_of_place
        self.fused = fused
        self.count_max = count_max
        #: Where a rank adds up a chunk, and which chunks it has begun to add up.
        self.sums: list[dict[int, Location]] = [{} for _ in ranks]
        self.begun: list[set[int]] = [set() for _ in ranks]
        self.fresh = False

    def plan_sums(self, rounds: list[Round]) -> None:
        """Sums that are neither a result nor allowed in the output get scratch, in the order of the chunks."""
        for rank, sums in enumerate(self.sums):
            added = {chunk for messages in rounds for _, head, chunks in messages if head == rank for chunk in chunks}
            for chunk in sorted(added):
                in_output = chunk == rank or (self.collective is Collective.ALLREDUCE and self.fused)
                sums[chunk] = self._result(chunk) if in_output else self.ranks[rank].take_scratch(1)

    def reduce(self, messages: Round) -> None:
        """Partial sums move, and are added to what the destination has."""
        for wave in self._waves(messages, self._reducing_places):
            for source, destination, first, count in wave:
                origin, landing = self._partial(source, first), self.sums[destination][first]
                self.ranks[source].send((destination, -1), origin, landing, count)
            for source, destination, first, count in wave:
                addend, result = self._partial(destination, first), self.sums[destination][first]
                origin = self._partial(source, first)
                self.ranks[destination].receive_add((-1, source), origin, addend, result, count)
        for _, destination, chunks in messages:
            self.begun[destination].update(chunks)

    def start_gathering(self) -> None:
        """Out of place, a rank sends its shard from the input in the first round, and copies it to the output.

        In an allreduce its shard is complete with the last step so far.
        """
        self.fresh = self.collective is Collective.ALLGATHER and self.out_of_place
        if self.fresh:
            for chunk, rank in enumerate(self.ranks):
                rank.copy(LOCAL, Location(buffer=Buffer.INPUT, offset=0), self._result(chunk))
        if self.fresh or self.collective.reduces:
            for rank in self.ranks:
                rank.begin_turn()

    def gather(self, messages: Round) -> None:
        """Results move to the same place in the output of others."""
        for wave in self._waves(messages, lambda source, destination: [self._result]):
            for source, destination, first, count in wave:
                self.ranks[source].send((destination, -1), self._held(first), self._result(first), count)
            for source, destination, first, count in wave:
                self.ranks[destination].receive_in_turn((-1, source), self._held(first), self._result(first), count)
        self.fresh = False

    def _held(self, chunk: int) -> Location:
        return Location(buffer=Buffer.INPUT, offset=0) if self.fresh else self._result(chunk)

    def _result(self, chunk: int) -> Location:
        return Location(buffer=Buffer.OUTPUT, offset=0 if self.collective is Collective.REDUCE_SCATTER else chunk)

    def _partial(self, rank: int, chunk: int) -> Location:
        """Where `rank` has what it knows of `chunk`: the sum so far, or its own contribution."""
        return self.sums[rank][chunk] if chunk in self.begun[rank] else Location(buffer=Buffer.INPUT, offset=chunk)

    def _reducing_places(self, source: int, destination: int) -> list[_Place]:
        return [
            lambda chunk: self._partial(source, chunk),
            lambda chunk: self._partial(destination, chunk),
            lambda chunk: self.sums[destination][chunk],
        ]

    def _waves(self, messages: Round, places: Callable[[int, int], list[_Place]]) -> list[list[_Run]]:
        """The n-th wave has the n-th run of every message."""
        waves: list[list[_Run]] = []
        for source, destination, chunks in messages:
            for number, (first, count) in enumerate(self._runs(chunks, places(source, destination))):
                if number == len(waves):
                    waves.append([])
                waves[number].append((source, destination, first, count))
        return waves

    def _runs(self, chunks: list[int], places: list[_Place]) -> list[tuple[int, int]]:
        """(first chunk, count): as long as possible and contiguous in all places."""
        runs: list[tuple[int, int]] = []
        for chunk in chunks:
            if runs:
                first, count = runs[-1]
                follows = chunk == first + count < first + self.count_max
                if follows and all(_shifted(place(first), count) == place(chunk) for place in places):
                    runs[-1] = first, count + 1
                    continue
            runs.append((chunk, 1))
        return runs


def _shifted(location: Location, distance: int) -> Location:
    return Location(buffer=location.buffer, offset=location.offset + distance)
