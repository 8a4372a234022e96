"""A plan as actions on numbered memory cells and counters.

Memory. The ranges of all operations are computed as the loader does, in vectors of `buffer_alignment` bytes, for
chunks of a given number of them; the greatest common divisor of all bounds is a cell. Each rank has user memory,
where input and output overlap as calls in place have them, and scratch, twice where it alternates. A packet range
takes two cells of scratch for each cell of data. Data units are cells of the collective's message.

Channels. The n-th channel of a type from rank a to b meets the n-th from b to a: a signal at one end raises the
counter of the other.

Method. Every threadblock becomes a list of actions: meetings, signals and waits, and moves of data (destinations =
sum of sources, cell by cell). A pipeline becomes two rounds over halves of its ranges.
"""

from __future__ import annotations

from math import gcd, lcm

import msgspec

from forestsyn.ir.plan import BufferRange, ChannelType, Plan, PlanBlock, PlanStep
from forestsyn.ir.plan import PlanOperation as Op
from forestsyn.ir.program import Buffer
from forestsyn.verify.plan_actions import SCRATCH, USER, Access, Action, Machine, Move, Port, Thread
from forestsyn.verify.plan_limits import COLLECTIVES, PAIRED, SHAPES, kinds_of


def common_elements(plan: Plan) -> int:
    """The fewest vectors a chunk may have so that all shares of all ranges are equal."""
    sizes, halves = {1}, 1
    for gpu in plan.gpus:
        for block in gpu.blocks:
            for step in block.steps:
                halves = max(halves, 1 + (step.operation is Op.PIPELINE))
                sizes |= {part.share.size for part in (step, *step.steps) if part.share is not None}
    return lcm(*sizes) * halves


def shares_overlap(plan: Plan) -> bool:
    """Whether ranges that are cut in different ways meet, so that their bounds depend on the size of a chunk."""
    builder = _Builder(plan, 1)
    cuts: set[tuple[int, int, int, int, int]] = set()  # rank, area, first chunk, end, shares
    for rank, gpu in enumerate(plan.gpus):
        for block in gpu.blocks:
            for step in (part for outer in block.steps for part in (outer, *outer.steps)):
                if step.share is not None and step.share.size > 1:
                    for _, owner, area, first, item in builder.places(rank, block, step):
                        cuts.add((owner, area, first, first + item.size, step.share.size))
    reached = (-1, -1, 0)  # rank, area, chunk
    for owner, area, first, end, _ in sorted(cuts):
        if (owner, area) == reached[:2] and first < reached[2]:
            return True
        reached = (owner, area, end)
    return False


def build_machine(plan: Plan, elements: int) -> Machine:
    """The actions of `plan`, whose form is right, for chunks of `elements` vectors."""
    return _Builder(plan, elements).build()


class _Builder:
    def __init__(self, plan: Plan, elements: int) -> None:
        self.plan = plan
        self.elements = elements
        self.ranks = len(plan.gpus)
        self.channels = [self._flat_channels(rank) for rank in range(self.ranks)]
        self.switches = [
            [(channels.buffer, group.ranks) for channels in gpu.channels for group in channels.rank_groups]
            for gpu in plan.gpus
        ]
        self.counters: list[tuple[int, ChannelType, int, int]] = []
        self.counter_at: dict[tuple[int, ChannelType, int], int] = {}
        self.port_at: dict[tuple[int, int], int] = {}
        self.ports: list[Port] = []
        self._number_channels()
        self.other_end = self._join_channels()
        self.bases = [self._overlap(rank) for rank in range(self.ranks)]
        self.bounds = 0  # greatest common divisor of all bounds

    def build(self) -> Machine:
        drafts = [
            (rank, number, [part for step in enumerate(block.steps) for part in self._actions(rank, block, *step)])
            for rank, gpu in enumerate(self.plan.gpus)
            for number, block in enumerate(gpu.blocks)
        ]
        unit = gcd(self.bounds, self.elements)
        threads = tuple(
            Thread(rank, block, tuple(_scaled(action, unit) for action in actions)) for rank, block, actions in drafts
        )
        per_chunk = self.elements // unit
        packets = 2 if self.plan.protocol == "LL" else 1
        gpu = self.plan.gpus[0]
        return Machine(
            threads=threads,
            ports=tuple(self.ports),
            counters=tuple(self.counters),
            unit=unit,
            elements=self.elements,
            user_cells=tuple(self._user_chunks(rank) * per_chunk for rank in range(self.ranks)),
            scratch_cells=tuple(own.scratch_chunks * per_chunk * packets for own in self.plan.gpus),
            bases=tuple((first * per_chunk, second * per_chunk) for first, second in self.bases),
            input_cells=gpu.input_chunks * per_chunk,
            output_cells=gpu.output_chunks * per_chunk,
        )

    def places(self, rank: int, block: PlanBlock, step: PlanStep) -> list[tuple[str, int, int, int, BufferRange]]:
        """(kind, rank, area, first chunk there, range) of every range of `step`; one for each rank of a switch."""
        if step.operation not in SHAPES:
            return []
        return [
            place
            for side, ranges in zip(SHAPES[step.operation], (step.sources, step.destinations), strict=True)
            for kind, item in zip(kinds_of(side, len(ranges)) or [], ranges, strict=True)
            for place in self._places(kind, item, rank, block, step)
        ]

    def _places(
        self, kind: str, item: BufferRange, rank: int, block: PlanBlock, step: PlanStep
    ) -> list[tuple[str, int, int, int, BufferRange]]:
        owners: tuple[int, ...] = (rank,)
        buffer = item.buffer
        if kind in "rq":
            ids = [
                name
                for refs in block.remote_buffers
                if refs.access_channel_type is step.channel_type
                for name in refs.remote_buffer_ids
            ]
            assert item.remote is not None, "the form has been checked"
            remote = self.plan.gpus[rank].remote_buffers[ids[item.remote]]
            owners, buffer = (remote.rank,), remote.buffer
        elif kind in "gk":
            ids = [
                name for own in block.channels if own.channel_type is ChannelType.SWITCH for name in own.channel_ids
            ]
            assert item.switch is not None, "the form has been checked"
            buffer, owners = self.switches[rank][ids[item.switch]]
        area = SCRATCH if buffer is Buffer.SCRATCH else USER
        side = 1 if buffer is Buffer.OUTPUT else 0
        return [
            (kind, owner, area, item.index + (self.bases[owner][side] if area == USER else 0), item)
            for owner in owners
        ]

    def _flat_channels(self, rank: int) -> dict[ChannelType, list[int]]:
        flat: dict[ChannelType, list[int]] = {ChannelType.MEMORY: [], ChannelType.PORT: []}
        for channels in self.plan.gpus[rank].channels:
            if channels.channel_type in flat:
                flat[channels.channel_type] += channels.connected_to
        return flat

    def _number_channels(self) -> None:
        """Counters and ports; `counter_at` gives the counter that a rank waits on at one of its channels."""
        for rank, flat in enumerate(self.channels):
            for way, peers in flat.items():
                for number, peer in enumerate(peers):
                    self.counter_at[rank, way, number] = len(self.counters)
                    self.counters.append((rank, way, number, peer))
                    if way is ChannelType.PORT:
                        self.port_at[rank, number] = len(self.ports)
                        self.ports.append(Port(rank, number, peer))

    def _join_channels(self) -> dict[tuple[int, ChannelType, int], int]:
        """The counter that a signal on each channel raises, −1 where the peer has no such channel."""
        between: dict[tuple[int, ChannelType, int], list[int]] = {}
        places = []
        for rank, flat in enumerate(self.channels):
            for way, peers in flat.items():
                for number, peer in enumerate(peers):
                    own = between.setdefault((rank, way, peer), [])
                    places.append((rank, way, number, peer, len(own)))
                    own.append(number)
        ends = {}
        for rank, way, number, peer, place in places:
            back = between.get((peer, way, rank), [])
            ends[rank, way, number] = self.counter_at[peer, way, back[place]] if place < len(back) else -1
        return ends

    def _overlap(self, rank: int) -> tuple[int, int]:
        """Where input and output begin in user memory, in chunks."""
        gpu = self.plan.gpus[rank]
        if not self.plan.in_place:
            return 0, gpu.input_chunks
        collective = COLLECTIVES.get(self.plan.collective)
        if collective == "allgather":
            return rank * gpu.input_chunks, 0
        return 0, rank * gpu.output_chunks if collective == "reduce-scatter" else 0

    def _user_chunks(self, rank: int) -> int:
        gpu, (first, second) = self.plan.gpus[rank], self.bases[rank]
        return max(first + gpu.input_chunks, second + gpu.output_chunks)

    def _actions(self, rank: int, block: PlanBlock, position: int, step: PlanStep) -> list[Action]:
        if step.operation is not Op.PIPELINE:
            return [self._action(rank, block, position, step, 0, 1)]
        return [self._action(rank, block, position, inner, part, 2) for part in range(2) for inner in step.steps]

    def _action(self, rank: int, block: PlanBlock, position: int, step: PlanStep, part: int, parts: int) -> Action:
        operation, way = step.operation, step.channel_type
        ids: tuple[int, ...] = ()
        moves: tuple[Move, ...] = ()
        if operation in (Op.SEMAPHORE_ACQUIRE, Op.SEMAPHORE_RELEASE):
            ids = step.semaphore_ids
        elif operation is Op.BARRIER:
            ids = (step.barrier_id or 0,)
        elif step.channel_ids and way in (ChannelType.MEMORY, ChannelType.PORT):
            own = _block_channels(block, way)
            numbers = [own[name] for name in step.channel_ids]
            if operation in (Op.WAIT, Op.RELAXED_WAIT):
                ids = tuple(self.counter_at[rank, way, number] for number in numbers)
            elif operation is Op.FLUSH:
                ids = tuple(self.port_at[rank, number] for number in numbers)
            elif operation in (Op.SIGNAL, Op.RELAXED_SIGNAL, Op.PUT_SIGNAL, Op.PUT_SIGNAL_FLUSH):
                ids = tuple(self.other_end[rank, way, number] for number in numbers)
                if way is ChannelType.PORT and operation not in (Op.PUT_SIGNAL, Op.PUT_SIGNAL_FLUSH):
                    ports = (self.port_at[rank, number] for number in numbers)
                    moves = tuple(Move((), (), port, place) for place, port in enumerate(ports))
        if operation in SHAPES:
            moves = self._moves(rank, block, step, part, parts)
        count = len(step.destinations) if operation is Op.FLUSH else step.threadblock_count or 0
        return Action(operation, position, moves, ids, count)

    def _moves(self, rank: int, block: PlanBlock, step: PlanStep, part: int, parts: int) -> tuple[Move, ...]:
        sides = []
        for side, ranges in zip(SHAPES[step.operation], (step.sources, step.destinations), strict=True):
            kinds = kinds_of(side, len(ranges)) or []
            sides.append(
                [
                    [self._access(place, step, part, parts) for place in self._places(kind, item, rank, block, step)]
                    for kind, item in zip(kinds, ranges, strict=True)
                ]
            )
        sources, destinations = sides
        through_port = step.channel_type is ChannelType.PORT
        if step.operation in PAIRED:
            pairs = list(zip(sources, destinations, strict=True))
        elif through_port:
            pairs = [(sources[0], far) for far in destinations]
        else:
            pairs = [([one for side in sources for one in side], [one for side in destinations for one in side])]
        own = _block_channels(block, ChannelType.PORT)
        return tuple(
            Move(
                tuple(near),
                tuple(far),
                self.port_at[rank, own[step.channel_ids[number]]] if through_port else -1,
                number,
            )
            for number, (near, far) in enumerate(pairs)
        )

    def _access(self, place: tuple[str, int, int, int, BufferRange], step: PlanStep, part: int, parts: int) -> Access:
        """Where the range is, in vectors: its share of the range, and of that the part that one round handles."""
        kind, owner, area, first, item = place
        length = item.size * self.elements
        begin, end = 0, length
        if step.share is not None:
            begin = _share_start(length, step.share.threadblock, step.share.size)
            end = _share_start(length, step.share.threadblock + 1, step.share.size)
        if parts == 2:
            middle = begin + -(-(end - begin) // 2)
            begin, end = (middle, end) if part else (begin, middle)
        start = first * self.elements + begin
        self.bounds = gcd(self.bounds, start, end - begin)
        packets = kind in "pqk"
        return Access(owner, area, 2 * start if packets else start, end - begin, packets)


def _block_channels(block: PlanBlock, way: ChannelType) -> list[int]:
    """The threadblock's channels of one type, as positions in its GPU's list."""
    return [name for own in block.channels if own.channel_type is way for name in own.channel_ids]


def _share_start(length: int, share: int, shares: int) -> int:
    """The loader gives the first shares one vector more where they are not equal."""
    return share * (length // shares) + min(share, length % shares)


def _scaled(action: Action, unit: int) -> Action:
    if unit == 1 or not action.moves:
        return action
    moves = tuple(
        msgspec.structs.replace(
            move,
            sources=tuple(_scaled_access(access, unit) for access in move.sources),
            destinations=tuple(_scaled_access(access, unit) for access in move.destinations),
        )
        for move in action.moves
    )
    return msgspec.structs.replace(action, moves=moves)


def _scaled_access(access: Access, unit: int) -> Access:
    return msgspec.structs.replace(access, start=access.start // unit, count=access.count // unit)
