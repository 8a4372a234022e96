"""What one rank does for a group of pieces, in the making: its threadblocks' operations, channels and remote buffers.

Operations of a threadblock are not kept together by anything but `nop`. A draft knows what happened since the last
one and puts one in front of an operation that needs it. A rank with more peers than one threadblock holds spreads
them over several, its lanes; there a barrier of all lanes takes the place of the `nop`, so that the lanes together
keep the order that one threadblock would.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from forestsyn.ir.plan import BufferRange, ChannelType, PlanOperation, PlanStep
from forestsyn.ir.program import Buffer

#: What one operation takes (mscclpp 0.9.0, execution_common.hpp): channels, and so destinations.
CHANNELS_PER_STEP = 8

Remote = tuple[int, Buffer]
Move = tuple[BufferRange, BufferRange, int]  # own source, destination in a buffer of the rank, rank
Group = tuple[Buffer, tuple[int, ...]]  # a switch channel: the buffer of the ranks that it joins
_Item = TypeVar("_Item")


class Lane:
    """One threadblock. peers: for each type of channel the ranks at its other ends; remotes: likewise the remote
    buffers. groups: its switch channels. body: the operations that are repeated for each slice of the data, from the
    first up to one past the last; None where data move whole."""

    def __init__(self) -> None:
        self.steps: list[PlanStep] = []
        self.peers: dict[ChannelType, list[int]] = {ChannelType.MEMORY: [], ChannelType.PORT: []}
        self.remotes: dict[ChannelType, list[Remote]] = {ChannelType.MEMORY: [], ChannelType.PORT: []}
        self.groups: list[Group] = []
        self.body: tuple[int, int] | None = None


class Draft:
    """The operations of one rank for one group of pieces, the same for every share of the data.

    lane_of: the lane of each peer, 0 where it is not named. sliced: data move slice by slice. Barriers have no number
    yet.
    """

    def __init__(
        self,
        rank: int,
        ports: frozenset[tuple[int, int]],
        lane_of: Mapping[int, int] | None = None,
        *,
        sliced: bool = False,
    ) -> None:
        self.rank = rank
        self._ports = ports
        self._lane_of = lane_of or {}
        self.lanes = [Lane() for _ in range(1 + max(self._lane_of.values(), default=0))]
        self._sliced = sliced
        self._unsynced = False

    def way(self, peer: int) -> ChannelType:
        """The type of the channel to `peer`."""
        return ChannelType.PORT if (self.rank, peer) in self._ports else ChannelType.MEMORY

    def lane(self, peer: int) -> int:
        """The lane that deals with `peer`."""
        return self._lane_of.get(peer, 0)

    def any_lane(self, number: int) -> int:
        """A lane for what needs no peer, in turn."""
        return number % len(self.lanes)

    def channel(self, peer: int) -> int:
        """The threadblock's number of the channel to `peer`."""
        return _number(self.lanes[self.lane(peer)].peers[self.way(peer)], peer)

    def remote(self, peer: int, place: BufferRange) -> BufferRange:
        """`place`, a range of a buffer of `peer`, as the threadblock of its lane names it."""
        assert place.buffer is not None, "a landing is a range of an own buffer of the peer"
        number = _number(self.lanes[self.lane(peer)].remotes[self.way(peer)], (peer, place.buffer))
        return BufferRange(remote=number, index=place.index, size=place.size)

    def switched(self, group: Group, index: int, size: int, lane: int = 0) -> BufferRange:
        """A range of the buffers that a switch channel joins."""
        return BufferRange(switch=_number(self.lanes[lane].groups, group), index=index, size=size)

    def add(self, step: PlanStep, lane: int = 0) -> None:
        """Append an operation."""
        self.lanes[lane].steps.append(step)
        self._unsynced = True

    def sync(self) -> None:
        """What follows needs what came before to be finished by all threads."""
        if not self._unsynced:
            return
        self._unsynced = False
        if len(self.lanes) == 1:
            self.lanes[0].steps.append(PlanStep(operation=PlanOperation.SYNC))
            return
        for lane in self.lanes:
            lane.steps.append(PlanStep(operation=PlanOperation.BARRIER, threadblock_count=len(self.lanes)))

    def open_body(self) -> None:
        """What follows, up to `close_body`, is done for one slice of the data after the other."""
        if self._sliced:
            self.sync()
            for lane in self.lanes:
                lane.body = (len(lane.steps), len(lane.steps))

    def close_body(self) -> None:
        """The end of what is repeated; a slice begins when all threads are done with the one before."""
        if self._sliced:
            self.sync()
            for lane in self.lanes:
                assert lane.body is not None, "the body has been opened"
                lane.body = (lane.body[0], len(lane.steps))

    def meet(self, sources: Iterable[int], destinations: Iterable[int]) -> None:
        """Tell the `sources` that this rank has begun, and wait for the `destinations` to have.

        A rank that has begun has finished all earlier calls, so its buffers are free.
        """
        for way, signal, wait in (
            (ChannelType.MEMORY, PlanOperation.RELAXED_SIGNAL, PlanOperation.RELAXED_WAIT),
            (ChannelType.PORT, PlanOperation.SIGNAL, PlanOperation.WAIT),
        ):
            self.notify(signal, way, [peer for peer in sources if self.way(peer) is way])
            self.notify(wait, way, [peer for peer in destinations if self.way(peer) is way])

    def notify(self, operation: PlanOperation, way: ChannelType, peers: Sequence[int]) -> None:
        """Signal the peers, or wait for them, each once for every time it stands in the list."""
        for lane, own in self._by_lane(peers, key=lambda peer: peer):
            for batch in batches(own, key=lambda peer: peer):
                channels = tuple(self.channel(peer) for peer in batch)
                self.add(PlanStep(operation=operation, channel_type=way, channel_ids=channels), lane)

    def flush(self, peers: Iterable[int]) -> None:
        """Wait until the ports to `peers` have read what they were asked to send.

        The kernel counts the destinations of a flush, not its channels, and touches neither.
        """
        untouched = BufferRange(buffer=Buffer.OUTPUT, index=0, size=1)
        for lane, own in self._by_lane(list(peers), key=lambda peer: peer):
            for batch in batches(own):
                self.add(
                    PlanStep(
                        operation=PlanOperation.FLUSH,
                        destinations=(untouched,) * len(batch),
                        channel_type=ChannelType.PORT,
                        channel_ids=tuple(self.channel(peer) for peer in batch),
                    ),
                    lane,
                )

    def put(self, operation: PlanOperation, way: ChannelType, moves: Sequence[Move], *, distinct: bool) -> None:
        """Copy each source to its destination; with `distinct`, channels are named and stand once in an operation.

        The kernel takes the buffer of the first source for all of one operation over memory channels.
        """
        for buffer in dict.fromkeys(source.buffer for source, _, _ in moves):
            alike = [move for move in moves if move[0].buffer is buffer]
            for lane, own in self._by_lane(alike, key=lambda move: move[2]):
                rounds = batches(own, key=lambda move: move[2]) if distinct else batches(own)
                for number, batch in enumerate(rounds):
                    if distinct and number:
                        self.sync()  # two requests on one channel must not overtake each other
                    self.add(
                        PlanStep(
                            operation=operation,
                            sources=tuple(source for source, _, _ in batch),
                            destinations=tuple(self.remote(peer, place) for _, place, peer in batch),
                            channel_type=way,
                            channel_ids=tuple(self.channel(peer) for _, _, peer in batch) if distinct else (),
                        ),
                        lane,
                    )

    def _by_lane(self, items: Sequence[_Item], key: Callable[[_Item], int]) -> list[tuple[int, list[_Item]]]:
        """The items of each lane that has some; `key` gives the peer."""
        found: dict[int, list[_Item]] = {}
        for item in items:
            found.setdefault(self.lane(key(item)), []).append(item)
        return sorted(found.items())


def batches(items: Sequence[_Item], key: Callable[[_Item], Hashable] | None = None) -> list[list[_Item]]:
    """`items` in lists that one operation takes, no two of a list with the same key where there is a `key`."""
    found: list[list[_Item]] = []
    keys: list[set[Hashable]] = []
    for item in items:
        mark = key(item) if key else len(found)
        fits = (
            number
            for number, batch in enumerate(found)
            if len(batch) < CHANNELS_PER_STEP and (key is None or mark not in keys[number])
        )
        number = next(fits, len(found))
        if number == len(found):
            found.append([])
            keys.append(set())
        found[number].append(item)
        keys[number].add(mark)
    return found


def _number(entries: list[_Item], entry: _Item) -> int:
    if entry not in entries:
        entries.append(entry)
    return entries.index(entry)
