"""The switch channels of all ranks must meet: the executor joins them one after the other.

Each rank works through its own list. The lowest rank of a group makes it and sends word to each member; a member
waits for the next word from the lowest rank of the group that stands next in its list, whatever group that word is
about. So lists in different orders join groups that do not belong together, or wait for ever.
"""

from __future__ import annotations

from collections import deque

from forestsyn.ir.plan import ChannelType, Plan
from forestsyn.ir.program import Buffer
from forestsyn.verify.program_report import Effect, Place, ProgramLog

Group = tuple[Buffer | None, tuple[int, ...]]


def check_switches(plan: Plan, log: ProgramLog) -> None:
    """Adds a fault for every rank whose switch channels do not meet those of the others."""
    lists = [
        deque(
            (channels.buffer, tuple(sorted(group.ranks)))
            for channels in gpu.channels
            if channels.channel_type is ChannelType.SWITCH
            for group in channels.rank_groups
        )
        for gpu in plan.gpus
    ]
    words: dict[tuple[int, int], deque[Group]] = {}
    moved = True
    while moved:
        moved = False
        for rank, own in enumerate(lists):
            while own:
                group = own[0]
                lowest = group[1][0]
                if rank == lowest:
                    for member in group[1][1:]:
                        words.setdefault((lowest, member), deque()).append(group)
                else:
                    sent = words.get((lowest, rank))
                    if not sent:
                        break
                    if sent.popleft() != group:
                        text = f"its switch channel of ranks {list(group[1])} meets another one of rank {lowest}"
                        log.violate("switch-order", text, Place(rank=rank), effect=Effect.RUN, blocks=True)
                own.popleft()
                moved = True
    for rank, own in enumerate(lists):
        if own:
            text = f"its switch channel of ranks {list(own[0][1])} waits for rank {own[0][1][0]} for ever"
            log.violate("switch-order", text, Place(rank=rank), effect=Effect.RUN, blocks=True)
    for (lowest, member), sent in words.items():
        if sent:
            text = f"rank {lowest} lists a switch channel of ranks {list(sent[0][1])}, this rank does not"
            log.violate("switch-order", text, Place(rank=member), effect=Effect.RUN, blocks=True)
