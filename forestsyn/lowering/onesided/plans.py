"""A schedule to an execution plan: groups of pieces, threadblocks, channels, remote buffers, limits, window.

Problem. A threadblock of MSCCL++ holds few operations (64), channels and remote buffers (16 of a type), moves data
at a limited rate, and its operations work on whole chunks, one after the other.

Method. The pieces are dealt out to groups, about as few as the limits allow. A group has one threadblock on each
rank, which does everything that the rank does for those pieces, in the order of `events`. Where even a group of one
piece has too many peers for a threadblock, ranks spread them over several, with barriers (`lanes`). All threadblocks
of a group are then repeated: where the groups take B of a rank's threadblocks, S = ⌊threadblocks / B⌋ copies work on
one S-th of every chunk each. All data of one share stay in the threadblocks of that group and share, on all ranks,
each with channels of its own; so groups and shares of a rank share nothing.

Guarantee. No deadlock: `events`; barriers only make the lanes of a rank follow the order that one threadblock would.
Calls may follow one another on the same buffers: `simple` and `packets`. Every transfer of the schedule crosses its
link once, with the bytes that the schedule says.

Slices. Operations work on whole ranges, so a long chain passes a share on only when it has all of it. In slices, what
a threadblock does after everyone is ready is repeated for one slice of its share after the other (`pipeline`), so
while one share waits for its next slice others use the links. The order within a slice is as before, and slices
follow one another in the same order everywhere, so again nothing waits for ever.

Complexity. O(transfers) for each number of groups that is tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import msgspec

from forestsyn.errors import UnsupportedError
from forestsyn.ir.collective import Collective
from forestsyn.ir.plan import Plan
from forestsyn.ir.program import Protocol
from forestsyn.ir.schedule import Schedule
from forestsyn.ir.target import MSCCLPP
from forestsyn.lowering.onesided.assembly import assemble
from forestsyn.lowering.onesided.draft import Draft
from forestsyn.lowering.onesided.events import RankEvents, list_transfers, rank_events
from forestsyn.lowering.onesided.lanes import event_buffers, spread_peers
from forestsyn.lowering.onesided.limits import check_limits, count_shares, excess
from forestsyn.lowering.onesided.packets import draft_packets, needs_meeting
from forestsyn.lowering.onesided.simple import draft_simple
from forestsyn.lowering.onesided.storage import Storage
from forestsyn.lowering.onesided.window import choose_window

#: Threadblocks of a rank that share the work, where the limits leave the choice; packets are for small messages.
THREADBLOCKS = 24
THREADBLOCKS_WITH_PACKETS = 8
#: Bytes of a vector; chunks and slices are multiples of it.
ALIGNMENT = 16

_SPELLING = {Collective.REDUCE_SCATTER: "reducescatter"}


def lower_plan(
    schedule: Schedule,
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
    """The plan that executes `schedule` on MSCCL++.

    ports: the pairs of ranks, in both orders, that no memory mapping joins. out_of_place: the calls that it is for.
    minimum_bytes, maximum_bytes: the window that is wanted, 0 for none; the plan narrows it to the sizes that fit.
    threadblocks: how many of a rank share the work where the limits leave the choice; None: what suits the protocol.
    slice_bytes: what a threadblock passes on at a time, a multiple of 16; 0: its whole share.
    Raises UnsupportedError, naming rank, limit and value, when no such plan is within the limits.
    """
    packets = _uses_packets(protocol)
    if packets and slice_bytes:
        raise UnsupportedError(
            "packets move whole, not in slices", target=MSCCLPP.name, limit="slice", hint="use --protocol Simple"
        )
    storage, drafts = _draft(schedule, ports, out_of_place=out_of_place, packets=packets, sliced=slice_bytes > 0)
    return finish_plan(
        drafts,
        storage,
        protocol=protocol,
        name=name,
        threadblocks=threadblocks or (THREADBLOCKS_WITH_PACKETS if packets else THREADBLOCKS),
        window=(minimum_bytes, maximum_bytes),
        slice_bytes=slice_bytes,
    )


def finish_plan(
    drafts: Sequence[Sequence[Draft]],
    storage: Storage,
    *,
    protocol: Protocol,
    name: str,
    threadblocks: int,
    window: tuple[int, int],
    slice_bytes: int,
) -> Plan:
    """The plan of `drafts`, by group and rank, which are within the limits; `window`: the sizes that are wanted."""
    if slice_bytes % ALIGNMENT:
        raise UnsupportedError(
            f"a slice has {slice_bytes} bytes, expected a multiple of {ALIGNMENT}",
            target=MSCCLPP.name,
            limit="slice",
            value=slice_bytes,
            hint="for example --slice 256K",
        )
    shares = count_shares(drafts, threadblocks)
    if slice_bytes:
        shares = 1 << (shares.bit_length() - 1)  # so that messages of powers of two are still served
    meets = not storage.packets or needs_meeting(storage.collective)
    plan = Plan(
        name=name,
        collective=_SPELLING.get(storage.collective, str(storage.collective)),
        protocol=str(protocol),
        in_place=not storage.out_of_place,
        reuse_resources=not meets,  # all remote buffers are scratch, and calls follow one another without harm
        use_double_scratch_buffer=not meets,
        buffer_alignment=ALIGNMENT,
        gpus=assemble(drafts, shares, storage, slice_bytes),
    )
    smallest, largest = choose_window(plan, 1 if slice_bytes else shares, *window)
    return msgspec.structs.replace(plan, minimum_bytes=smallest, maximum_bytes=largest)


def _uses_packets(protocol: Protocol) -> bool:
    if protocol is Protocol.LL128:
        raise UnsupportedError(
            "MSCCL++ has no protocol LL128", target=MSCCLPP.name, limit="protocol", hint="use Simple or LL"
        )
    return protocol is Protocol.LL


def _draft(
    schedule: Schedule, ports: frozenset[tuple[int, int]], *, out_of_place: bool, packets: bool, sliced: bool
) -> tuple[Storage, list[list[Draft]]]:
    """Few groups whose threadblocks are within the limits: their drafts by group and rank."""
    transfers = list_transfers(schedule, equal=sliced)
    most = min(len({transfer.piece for transfer in transfers}), MSCCLPP.threadblocks_max)
    drafts: list[list[Draft]] = []
    for spread in (False, True):
        groups = 1
        while True:
            storage = Storage(schedule, transfers, out_of_place=out_of_place, packets=packets)
            drafts = [
                [
                    _draft_rank(events, storage, ports, spread=spread, sliced=sliced)
                    for events in rank_events(transfers, schedule.rank_count, group, groups)
                ]
                for group in range(groups)
            ]
            ratio = max(excess(draft) for group in drafts for draft in group)
            if ratio <= 1:
                return storage, drafts
            if groups == most:
                break
            # What all pieces share does not shrink with the groups, so a step by the ratio hardly goes too far.
            groups = min(most, max(groups + 1, int(groups * min(ratio, Fraction(2)))))
    check_limits(draft for group in drafts for draft in group)
    raise AssertionError("some draft is beyond a limit")


def _draft_rank(
    events: RankEvents, storage: Storage, ports: frozenset[tuple[int, int]], *, spread: bool, sliced: bool
) -> Draft:
    lane_of = spread_peers(events.rank, ports, event_buffers(events, storage)) if spread else {}
    draft = Draft(events.rank, ports, lane_of, sliced=sliced)
    return (draft_packets if storage.packets else draft_simple)(events, storage, draft)
