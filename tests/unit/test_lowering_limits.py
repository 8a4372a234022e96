"""What a target cannot hold is refused with the rank, the limit and the value; what it can hold fits."""

from __future__ import annotations

import msgspec
import pytest

from forestsyn.errors import UnsupportedError
from forestsyn.ir.collective import Collective
from forestsyn.ir.forest import Direction
from forestsyn.ir.program import Program, Protocol
from forestsyn.ir.target import EXECUTOR, MSCCL, RCCL, TARGETS, Target
from forestsyn.lowering import lower_forests, lower_schedule
from forestsyn.verify import verify_program
from tests.lowering_forests import Shape, random_forest, random_tree, reversed_forest, ring, star, two_level


def compile_forest(
    collective: Collective,
    demand: list[int],
    target: Target,
    shapes: tuple[Shape, ...],
    *,
    out_of_place: bool = False,
) -> Program:
    forest = random_forest(3, len(demand), demand, Direction.OUT, shapes)
    schedule = lower_forests(collective, out_forest=forest, in_forest=reversed_forest(forest), root=None)
    return lower_schedule(
        schedule,
        target=target,
        out_of_place=out_of_place,
        protocol=Protocol.SIMPLE,
        name="limits",
        minimum_bytes=0,
        maximum_bytes=0,
    )


def refusal(target: Target, **limits: int) -> UnsupportedError:
    tight = msgspec.structs.replace(target, **limits)
    with pytest.raises(UnsupportedError) as caught:
        compile_forest(Collective.ALLREDUCE, [5] * 8, tight, (random_tree,))
    assert caught.value.target == target.name
    assert str(getattr(tight, str(caught.value.limit))) in caught.value.message
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize("target", [EXECUTOR, RCCL], ids=lambda target: target.name)
@pytest.mark.parametrize(
    ("limit", "value"),
    [
        ("threadblocks_max", 5),
        ("nodes_max", 60),
        ("offset_max", 30),
        ("ranks_max", 7),
        ("channels_max", 1),
    ],
)
def test_limits_are_refused(target: Target, limit: str, value: int) -> None:
    others = {"steps_max": 2} if limit == "channels_max" else {}
    error = refusal(target, **{limit: value}, **others)
    assert error.limit == limit
    assert error.value is not None
    assert error.value > value
    assert (error.rank is None) == (limit == "ranks_max")


def test_peers_are_refused_when_channels_run_out() -> None:
    assert refusal(EXECUTOR, peers_per_channel_max=2, channels_max=2).limit == "channels_max"
    assert refusal(EXECUTOR, peers_per_channel_max=5, channels_max=1).limit == "peers_per_channel_max"


def test_steps_are_refused_when_channels_run_out() -> None:
    error = refusal(EXECUTOR, steps_max=3, channels_max=2, threadblocks_max=1000)
    assert error.limit in ("steps_max", "channels_max")


def test_more_channels_when_steps_do_not_fit() -> None:
    tight = msgspec.structs.replace(EXECUTOR, steps_max=4)
    program = compile_forest(Collective.ALLGATHER, [9] * 8, tight, (random_tree,))
    assert program.channel_count > 1
    assert max(len(block.steps) for own in program.ranks for block in own.threadblocks) <= 4


@pytest.mark.parametrize("target", [EXECUTOR, RCCL, MSCCL], ids=lambda target: target.name)
@pytest.mark.parametrize("k", [10_000, 10**12])
def test_more_chunks_than_offsets_are_refused_at_once(k: int, target: Target) -> None:
    """However many: nothing of that size may be laid out before the refusal."""
    with pytest.raises(UnsupportedError) as caught:
        compile_forest(Collective.ALLGATHER, [k] * 4, target, (star,))
    assert (caught.value.limit, caught.value.value) == ("offset_max", 4 * k - 1)


def test_crowded_ranks_share_threadblocks() -> None:
    program = compile_forest(Collective.ALLGATHER, [1] * 12, EXECUTOR, (star,))
    assert {len(own.threadblocks) for own in program.ranks} == {22}
    tight = msgspec.structs.replace(EXECUTOR, threadblocks_max=11)
    program = compile_forest(Collective.ALLGATHER, [1] * 12, tight, (star,))
    assert {len(own.threadblocks) for own in program.ranks} == {11}


@pytest.mark.parametrize("collective", [Collective.ALLREDUCE, Collective.ALLGATHER, Collective.REDUCE_SCATTER])
@pytest.mark.parametrize("target", [EXECUTOR, RCCL], ids=lambda target: target.name)
def test_crowded_ranks_are_right(collective: Collective, target: Target) -> None:
    """Sharing threadblocks must not join transfers on a runtime that cannot receive and send in one step."""
    tight = msgspec.structs.replace(target, threadblocks_max=12)
    program = compile_forest(collective, [3] * 10, tight, (star,))
    assert max(len(own.threadblocks) for own in program.ranks) <= 12
    report = verify_program(program, target=target.name, strict=True)
    report.raise_if_rejected()


def test_stars_wider_than_a_channel() -> None:
    """72 GPUs under one switch."""
    program = compile_forest(Collective.ALLREDUCE, [1] * 72, EXECUTOR, (star,))
    assert program.channel_count == 3
    for own in program.ranks:
        for channel in range(3):
            blocks = [block for block in own.threadblocks if block.channel == channel]
            assert sum(block.send_peer >= 0 for block in blocks) <= 32
            assert sum(block.receive_peer >= 0 for block in blocks) <= 32


@pytest.mark.parametrize("ranks", [32, 64])
def test_eight_gpu_hosts_fit_the_executor(ranks: int) -> None:
    shape: Shape = lambda source, count, root: two_level(source, count, root, 8)  # noqa: E731
    program = compile_forest(Collective.ALLREDUCE, [1] * ranks, EXECUTOR, (shape,))
    assert program.channel_count <= 2


def test_many_trees_fit() -> None:
    """32 ranks with 83 unit trees each, in a few trees of several chunks."""
    for target in (EXECUTOR, MSCCL):
        program = compile_forest(Collective.ALLGATHER, [83] * 32, target, (random_tree, two_level), out_of_place=True)
        assert program.chunk_count == 2656


def test_waited_threadblocks_have_ids_that_fit() -> None:
    for target in TARGETS.values():
        assert target.threadblocks_max <= target.waited_threadblock_max + 1


def test_window_of_sizes() -> None:
    assert compile_forest(Collective.ALLGATHER, [1] * 3, EXECUTOR, (ring,)).maximum_bytes == 0
    assert compile_forest(Collective.ALLGATHER, [1] * 3, MSCCL, (ring,)).maximum_bytes == 1 << 40
    assert compile_forest(Collective.REDUCE_SCATTER, [1] * 3, MSCCL, (star,)).maximum_bytes == 1 << 40
    with_scratch = compile_forest(Collective.REDUCE_SCATTER, [1] * 6, MSCCL, (random_tree,))
    assert any(own.scratch_chunks for own in with_scratch.ranks)
    assert with_scratch.maximum_bytes == 1 << 30
