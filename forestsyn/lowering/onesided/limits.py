"""What a threadblock of MSCCL++ holds (mscclpp 0.9.0, execution_common.hpp), and refusals that name it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from forestsyn.errors import UnsupportedError
from forestsyn.ir.target import MSCCLPP
from forestsyn.lowering.onesided.draft import Draft

#: Channels, and remote buffers, of one type in a threadblock; the executor does not check and overruns.
CHANNELS_MAX = 16
REMOTE_BUFFERS_MAX = 16
#: Barriers of a rank.
BARRIERS_MAX = 16


def excess(draft: Draft) -> Fraction:
    """The largest share of a limit that `draft` uses; above 1 it does not fit."""
    return max(Fraction(value, limit) for _, value, limit in _uses(draft))


def check_limits(drafts: Iterable[Draft]) -> None:
    """Raises UnsupportedError for the first draft that does not fit."""
    for draft in drafts:
        for noun, value, limit in _uses(draft):
            if value > limit:
                raise UnsupportedError(
                    f"rank {draft.rank} needs {value} {noun} in one threadblock, {MSCCLPP.name} has at most {limit}",
                    target=MSCCLPP.name,
                    limit=noun.replace(" ", "_"),
                    value=value,
                    rank=draft.rank,
                    hint="ask for fewer peers with --max-peers, or for fewer trees with --trees or --tolerance",
                )


def count_shares(drafts: Sequence[Sequence[Draft]], threadblocks: int) -> int:
    """How many copies of all threadblocks share the data: as many as `threadblocks` of a rank and its barriers allow.

    drafts: by group and rank. Raises UnsupportedError where one copy alone is too many.
    """
    ranks = range(len(drafts[0]))
    blocks = max(sum(len(group[rank].lanes) for group in drafts) for rank in ranks)
    barriers = max(sum(len(group[rank].lanes) > 1 for group in drafts) for rank in ranks)
    for noun, value, limit in (
        ("threadblocks", blocks, MSCCLPP.threadblocks_max),
        ("barriers", barriers, BARRIERS_MAX),
    ):
        if value > limit:
            raise UnsupportedError(
                f"a rank needs {value} {noun}, {MSCCLPP.name} has at most {limit}",
                target=MSCCLPP.name,
                limit=noun,
                value=value,
                hint="ask for fewer peers with --max-peers, or for fewer trees with --trees or --tolerance",
            )
    return max(1, min(threadblocks // blocks, BARRIERS_MAX // barriers if barriers else threadblocks))


def _uses(draft: Draft) -> Iterator[tuple[str, int, int]]:
    for lane in draft.lanes:
        yield "operations", len(lane.steps) + (lane.body is not None), MSCCLPP.steps_max
        for way, peers in lane.peers.items():
            yield f"{way} channels", len(peers), CHANNELS_MAX
        for way, remotes in lane.remotes.items():
            yield f"remote buffers behind {way} channels", len(remotes), REMOTE_BUFFERS_MAX
        yield "switch channels", len(lane.groups), CHANNELS_MAX
