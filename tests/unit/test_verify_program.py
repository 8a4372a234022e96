"""The program verifier: each limit of each runtime, each kind of fault, and how it is reported."""

from __future__ import annotations

import random
import time

import msgspec
import pytest

from forestsyn.errors import InputError, VerificationError
from forestsyn.ir.program import Operation, Program, Protocol, RankProgram, Step, Threadblock
from forestsyn.verify.program import verify_program
from forestsyn.verify.program_report import Report
from tests.mutation.program_samples import (
    at,
    block,
    broadcast_chain,
    nop,
    pairs_allgather,
    pairs_allreduce,
    pairs_alltoall,
    pairs_reduce_scatter,
    program,
    reduce_chain,
    ring_allgather,
    ring_allgather_apart,
    ring_allreduce,
    step,
)

ALL = ("msccl", "executor", "rccl")
EXECUTORS = ("executor", "rccl")


def _change(original: Program, **changes: object) -> Program:
    return msgspec.structs.replace(original, **changes)


def _change_block(original: Program, rank: int, number: int, **changes: object) -> Program:
    blocks = list(original.ranks[rank].threadblocks)
    blocks[number] = msgspec.structs.replace(blocks[number], **changes)
    return _change_rank(original, rank, threadblocks=tuple(blocks))


def _change_rank(original: Program, rank: int, **changes: object) -> Program:
    ranks = list(original.ranks)
    ranks[rank] = msgspec.structs.replace(ranks[rank], **changes)
    return _change(original, ranks=tuple(ranks))


def _kinds(report: Report, *runtimes: str) -> set[str]:
    """Kinds of violations that concern exactly `runtimes` (default: all)."""
    return {violation.kind for violation in report.violations if violation.runtimes == (runtimes or ALL)}


def _idle(count: int) -> tuple[Threadblock, ...]:
    return tuple(block(-1, -1, []) for _ in range(count))


# Verdicts and reports.


def test_a_target_narrows_the_question() -> None:
    fused = ring_allreduce()
    assert verify_program(fused).accepts == ("msccl", "executor")
    assert verify_program(fused, target="executor").accepted
    report = verify_program(fused, target="rccl")
    assert not report.accepted
    assert report.loads == ("rccl",)
    assert _kinds(report, "rccl") == {"operation"}


def test_an_unknown_target_is_an_input_error() -> None:
    with pytest.raises(InputError, match="nccl"):
        verify_program(ring_allreduce(), target="nccl")


def test_rejection_raises_with_every_violation() -> None:
    verify_program(ring_allgather()).raise_if_rejected()
    broken = _change_block(ring_allgather(), 1, 0, send_peer=3)
    with pytest.raises(VerificationError) as caught:
        verify_program(broken, source="x.xml", target="msccl").raise_if_rejected()
    assert caught.value.exit_code == 5
    assert caught.value.where == "x.xml"
    assert any("connection rank 1 → rank 3 on channel 0" in text for text in caught.value.violations)


def test_violations_are_machine_readable() -> None:
    steps = ring_allgather().ranks[2].threadblocks[0].steps
    wrong = msgspec.structs.replace(steps[1], destination=at("o7"))
    report = verify_program(_change_block(ring_allgather(), 2, 0, steps=(steps[0], wrong, *steps[2:])))
    (violation,) = [violation for violation in report.violations if violation.kind == "offset"]
    assert (violation.rank, violation.threadblock, violation.step) == (2, 0, 1)
    assert (violation.buffer, violation.chunk) == ("o", 7)
    assert violation.message == "rank 2 threadblock 0 step 1: 'rcs' uses o[7], but o has 4 chunks"
    assert msgspec.json.decode(msgspec.json.encode(report), type=Report) == report


def test_violations_of_one_kind_are_capped() -> None:
    report = verify_program(ring_allreduce(12), target="rccl")
    assert len(report.violations) == 10
    assert report.notes == ("2 more violations of kind 'operation', not listed",)


def test_a_report_is_the_same_each_time() -> None:
    broken = _change_block(pairs_allreduce(4), 1, 0, channel=1)
    assert verify_program(broken) == verify_program(broken)


# Limits.


def test_steps_per_threadblock() -> None:
    def long(count: int) -> Program:
        return _change_block(pairs_alltoall(), 0, 2, steps=(step("cpy", "i0", "o0"),) * count)

    assert verify_program(long(64)).accepts == ALL
    assert verify_program(long(65)).accepts == ("msccl",)
    assert verify_program(long(256)).accepts == ("msccl",)
    assert verify_program(long(257)).loads == ()


def test_threadblocks_per_rank() -> None:
    def wide(count: int) -> Program:
        own = ring_allgather_apart().ranks[0]
        return _change_rank(ring_allgather_apart(), 0, threadblocks=own.threadblocks + _idle(count - 2))

    assert verify_program(wide(64)).accepts == ALL
    assert verify_program(wide(65)).accepts == ("msccl", "executor")
    assert verify_program(wide(108)).warnings == ()
    assert verify_program(wide(109)).warnings[0].kind == "threadblocks"
    assert verify_program(wide(217)).accepts == ("executor",)
    assert verify_program(wide(1025)).loads == ()


def test_waited_threadblocks_wrap_at_128() -> None:
    own = ring_allgather_apart().ranks[0]

    def apart(count: int) -> Program:
        moved = tuple(
            msgspec.structs.replace(one, depends_on=msgspec.structs.replace(one.depends_on, threadblock=count + 1))
            if one.depends_on
            else one
            for one in own.threadblocks[1].steps
        )
        sender = msgspec.structs.replace(own.threadblocks[1], steps=moved)
        blocks = (sender, *_idle(count), own.threadblocks[0])
        return _change_rank(ring_allgather_apart(), 0, threadblocks=blocks)

    assert "executor" in verify_program(apart(126)).accepts
    assert _kinds(verify_program(apart(127))) == {"waited-threadblock"}


def test_channels() -> None:
    def many(count: int, channel: int) -> Program:
        wide = _change(ring_allgather_apart(), channel_count=count)
        for rank in range(4):
            for number in range(2):
                wide = _change_block(wide, rank, number, channel=channel)
        return wide

    assert verify_program(many(32, 31)).accepts == ALL
    assert verify_program(many(33, 31)).accepts == ("msccl", "rccl")
    assert verify_program(many(33, 32)).accepts == ("rccl",)
    assert verify_program(many(129, 0)).accepts == ("msccl",)
    assert verify_program(many(2, 2)).accepts == ()
    assert verify_program(many(2, 2)).loads == ALL
    assert verify_program(many(0, 0)).accepts == ()


def test_peers_per_channel() -> None:
    assert "peers-per-channel" in _kinds(verify_program(pairs_allgather(34, 1)))
    assert verify_program(pairs_allgather(33, 1)).accepts == ALL


@pytest.mark.parametrize(("count", "loads"), [(0, ALL), (-1, ()), (72, ())])
def test_counts(count: int, loads: tuple[str, ...]) -> None:
    report = verify_program(_change_block(pairs_alltoall(), 0, 2, steps=(step("cpy", "i0", "o0", count),)))
    assert report.accepts == ()
    assert report.loads == loads


@pytest.mark.parametrize(
    ("location", "count", "loads"),
    [("o-1", 1, ALL), ("o-2", 1, ()), ("o3", 1, ()), ("o2", 2, ALL), ("s0", 1, ()), ("o40000", 1, ())],
)
def test_offsets(location: str, count: int, loads: tuple[str, ...]) -> None:
    report = verify_program(_change_block(pairs_alltoall(), 0, 2, steps=(step("cpy", "i0", location, count),)))
    assert "offset" in _kinds(report)
    assert report.loads == loads


def test_offsets_beyond_the_callers_memory() -> None:
    declared = ring_allgather_apart()
    for rank in range(4):
        declared = _change_rank(declared, rank, input_chunks=4)
    beyond = _change_block(
        declared, 0, 1, steps=(step("cpy", "i1", "o0"), *declared.ranks[0].threadblocks[1].steps[1:])
    )
    report = verify_program(beyond, target="executor")
    assert report.loads == ("executor",)
    assert _kinds(report, "executor") == {"offset"}


def test_declared_sizes() -> None:
    report = verify_program(_change_rank(pairs_alltoall(), 0, input_chunks=5))
    assert report.accepts == EXECUTORS
    assert report.loads == EXECUTORS
    assert verify_program(_change_rank(pairs_alltoall(), 0, scratch_chunks=-1)).loads == ()


def test_absurd_sizes() -> None:
    assert "size" in _kinds(verify_program(_change_rank(pairs_alltoall(), 0, scratch_chunks=2**31 - 1)))
    assert "size" in _kinds(verify_program(_change(pairs_alltoall(), chunk_count=3 * 2**29)))


def test_chunks_must_divide() -> None:
    assert _kinds(verify_program(_change(pairs_alltoall(), chunk_count=4))) >= {"chunk-count"}
    assert verify_program(_change(pairs_alltoall(), chunk_count=0)).loads == ()


@pytest.mark.parametrize("peer", [0, 3, -2])
def test_peers(peer: int) -> None:
    report = verify_program(_change_block(pairs_alltoall(), 0, 0, send_peer=peer))
    assert report.accepts == ()
    assert report.loads == (EXECUTORS if peer == 3 else ())


def test_fused_reductions() -> None:
    def fused(count: int) -> Program:
        sources = [step("cpy", "i0", f"s{index}") for index in range(count)]
        sums = [step("re", f"s{index}", "o0") for index in range(count)]
        return program("custom", 1, [[block(-1, -1, [*sources, *sums])], []], in_place=False, scratch=count)

    base = fused(16)
    assert _kinds(verify_program(base, target="msccl"), "msccl") == set()
    assert _kinds(verify_program(fused(17), target="msccl"), "msccl") == {"fusion"}


def test_nops() -> None:
    base = pairs_reduce_scatter()
    adding = base.ranks[0].threadblocks[3].steps
    bare = msgspec.structs.replace(adding[0], depends_on=None)
    for steps in ((bare, *adding[1:]), (*adding, nop((0, 1))), (nop((0, 1)), step("re", "s0", "i0"))):
        assert "nop" in _kinds(verify_program(_change_block(base, 0, 3, steps=steps)))


def test_flags_of_later_steps_also_end_a_wait() -> None:
    base = ring_allgather_apart()
    receiving = base.ranks[0].threadblocks[0].steps
    late = (msgspec.structs.replace(receiving[0], flagged=False), *receiving[1:])
    assert verify_program(_change_block(base, 0, 0, steps=late)).accepts == ALL


# Offers: windows of sizes, placements, collectives.


@pytest.mark.parametrize(
    ("low", "high", "accepts"),
    [
        (0, 0, EXECUTORS),
        (0, 1, ALL),
        (64, 64, EXECUTORS),
        (65, 64, ()),
        (64, 0, EXECUTORS),
        (0, 2**60, ALL),
        (-1, 64, ()),
    ],
)
def test_windows(low: int, high: int, accepts: tuple[str, ...]) -> None:
    assert verify_program(_change(pairs_alltoall(), minimum_bytes=low, maximum_bytes=high)).accepts == accepts


def test_scratch_that_msccl_would_allocate() -> None:
    report = verify_program(_change(pairs_reduce_scatter(), maximum_bytes=2**40))
    assert [(warning.kind, warning.runtimes) for warning in report.warnings] == [("scratch", ("msccl",))]


def test_alltoall_in_place() -> None:
    report = verify_program(_change(pairs_alltoall(), in_place=True, out_of_place=False))
    assert report.loads == report.accepts == EXECUTORS


def test_neither_placement() -> None:
    report = verify_program(_change(pairs_alltoall(), in_place=False, out_of_place=False))
    assert report.accepts == ("msccl",)
    assert report.loads == ALL


def test_both_placements_are_checked() -> None:
    good_for_both = []
    for rank in range(2):
        copy = step("cpy", "i0", f"o{rank}")
        steps = [step("s", "i0", f"o{rank}"), step("r", f"o{1 - rank}", f"o{1 - rank}")]
        good_for_both.append([block(1 - rank, 1 - rank, steps), block(-1, -1, [copy])])
    assert verify_program(program("allgather", 2, good_for_both, in_place=False)).accepts == ALL
    # In place the copy writes what the send reads, the same value, but nothing orders them.
    report = verify_program(program("allgather", 2, good_for_both, in_place=True, out_of_place=True))
    assert report.accepts == ()
    assert any("(in place)" in violation.message for violation in report.violations)
    ring = _change(ring_allgather(), out_of_place=True)
    report = verify_program(ring)
    assert report.accepts == ("msccl",)
    assert any("(out of place)" in violation.message for violation in report.violations)


def test_the_input_is_constant_out_of_place() -> None:
    base = pairs_alltoall()
    steps = (*base.ranks[0].threadblocks[2].steps, step("cpy", "o0", "i0"))
    report = verify_program(_change_block(base, 0, 2, steps=steps))
    assert _kinds(report) == {"input-overwritten"}


def test_custom_collectives_are_checked_for_races_and_progress_only() -> None:
    custom = program("custom", 1, [[block(1, -1, [step("s", "i0", "o0")])], [block(-1, 0, [step("r", "o0", "o0")])]])
    report = verify_program(custom)
    assert report.accepts == ("msccl",)
    assert any("not defined" in note for note in report.notes)


# Roots.


@pytest.mark.parametrize("sample", [broadcast_chain(), reduce_chain()])
def test_the_root_is_inferred_or_checked(sample: Program) -> None:
    assert verify_program(sample).root == 0
    inferred = verify_program(_change(sample, root=None))
    assert inferred.accepted
    assert inferred.root == 0
    assert "root 0, inferred from the result" in inferred.notes
    assert not verify_program(_change(sample, root=2)).accepted


def test_a_root_that_does_not_exist() -> None:
    for root in (-1, 4, 2**40):
        assert _kinds(verify_program(_change(broadcast_chain(), root=root))) == {"root"}
        assert _kinds(verify_program(_change(reduce_chain(), root=root))) == {"root"}


# Deadlock.


def _crossing(sends: int, count: int = 1, protocol: Protocol = Protocol.SIMPLE, **options: int) -> Program:
    """Both ranks send `sends` messages of `count` chunks before they receive."""
    ranks = []
    for rank in range(2):
        own, other = rank * sends * count, (1 - rank) * sends * count
        steps = [step("s", f"o{own + index * count}", "o0", count) for index in range(sends)]
        steps += [step("r", "o0", f"o{other + index * count}", count) for index in range(sends)]
        ranks.append([block(1 - rank, 1 - rank, steps)])
    return program("allgather", 2 * sends * count, ranks, protocol=protocol, **options)


def test_the_depth_is_named() -> None:
    assert verify_program(_crossing(2)).warnings == ()
    (warning,) = verify_program(_crossing(3)).warnings
    assert (warning.kind, warning.fifo_depth) == ("deadlock-depth", 2)
    assert "needs FIFO depth 3" in warning.message
    assert "which is what its protocol has" in warning.message
    (warning,) = verify_program(_crossing(8)).warnings
    assert warning.fifo_depth == 7
    assert _kinds(verify_program(_crossing(9))) == {"deadlock"}


def test_the_depth_matters_to_ll_as_advice() -> None:
    (warning,) = verify_program(_crossing(3, protocol=Protocol.LL)).warnings
    assert "which Simple has" in warning.message
    assert _kinds(verify_program(_crossing(9, protocol=Protocol.LL128))) == {"deadlock"}


def test_the_size_is_named() -> None:
    # Two messages of three chunks: at most one chunk, or two, in a message makes four or more of them.
    (warning,) = verify_program(_crossing(2, 3), target="msccl").warnings
    assert (warning.kind, warning.fifo_depth, warning.chunk_bytes) == ("deadlock-size", 2, 2 * 2**20 // 3)
    report = verify_program(_crossing(2, 3), strict=True)
    assert not report.accepted


def test_the_size_depends_on_runtime_and_protocol() -> None:
    report = verify_program(_crossing(5, 3, Protocol.LL))
    sizes = {warning.runtimes: warning.chunk_bytes for warning in report.warnings if warning.kind == "deadlock-size"}
    assert sizes == {("msccl", "executor"): 2**15 // 3, ("rccl",): 2**14 // 3}


def test_a_window_below_the_size_needs_no_warning() -> None:
    chunks = 12
    limit = 2 * 2**20 // 3
    assert verify_program(_crossing(2, 3, maximum_bytes=limit * chunks)).warnings == ()
    assert verify_program(_crossing(2, 3, maximum_bytes=2 * limit * chunks)).warnings
    assert verify_program(_crossing(2, 3, maximum_bytes=0), target="executor").warnings


def test_a_window_above_the_size_is_a_violation() -> None:
    above = _change(_crossing(2, 3, maximum_bytes=2**40), minimum_bytes=2**30)
    report = verify_program(above)
    assert _kinds(report, "msccl") == {"deadlock-size"}
    assert not report.accepted


def test_a_cycle_of_waits_is_shown() -> None:
    own = [
        block(-1, -1, [step("cpy", "i0", "o0", wait=(1, 0), flag=True)]),
        block(-1, -1, [step("cpy", "i0", "s0", wait=(0, 0), flag=True)]),
    ]
    report = verify_program(program("custom", 1, [own, []], in_place=False, scratch=1), target="msccl")
    (violation,) = report.violations
    assert violation.kind == "deadlock"
    assert "rank 0 threadblock 0 step 0 (depends on step 0 there) → rank 0 threadblock 1 step 0" in violation.message


# Races that appear only when actions are split.


def test_a_race_of_split_messages_is_a_warning() -> None:
    """Rank 1 returns the chunks at once; the first return may overwrite what rank 0 has not sent yet."""
    sending = block(1, -1, [step("s", "i0", "i0", 2)])
    returning = block(-1, 1, [step("r", "i1", "i1", 2)])
    passing = block(0, 0, [step("rcs", "o0", "o0", 2)])
    looped = program("custom", 3, [[sending, returning], [passing]])
    report = verify_program(looped, target="msccl")
    assert report.accepted
    (warning,) = report.warnings
    assert (warning.kind, warning.chunk_bytes) == ("race-size", 2**20)


def test_overlapping_sides() -> None:
    own = [block(-1, -1, [step("cpy", "i0", "i1", 2)])]
    report = verify_program(program("custom", 3, [own, []]), target="msccl")
    assert _kinds(report, "msccl") == {"overlap"}


# Size and speed.


def _many_rings(ranks: int, rings: int, rounds: int) -> Program:
    """`rings` threadblocks a rank, each an in-place ring allreduce of `rounds` × `ranks` chunks."""
    chunks = ranks * rings * rounds
    programs = []
    for rank in range(ranks):
        blocks = []
        for ring in range(rings):
            steps: list[Step] = []
            for turn in range(rounds):
                base = (ring * rounds + turn) * ranks
                names = [f"i{base + (rank - distance) % ranks}" for distance in range(ranks)]
                words = ["s", *["rrs"] * (ranks - 2), "rrcs", *["rcs"] * (ranks - 2), "r"]
                cells = [*names, *names[:-1]]
                steps += [step(word, cell, cell) for word, cell in zip(words, cells, strict=True)]
            blocks.append(block((rank + 1) % ranks, (rank - 1) % ranks, steps, ring))
        programs.append(blocks)
    return program("allreduce", chunks, programs)


def test_five_thousand_steps_take_a_moment() -> None:
    large = _many_rings(16, 5, 2)
    assert sum(len(one.steps) for own in large.ranks for one in own.threadblocks) == 4960
    start = time.perf_counter()
    assert verify_program(large).accepts == ("msccl", "executor")
    assert time.perf_counter() - start < 1


def test_no_ranks_and_no_threadblocks() -> None:
    empty = _change(ring_allgather(), ranks=())
    assert verify_program(empty).loads == ()
    nothing = RankProgram(input_chunks=1, output_chunks=2, scratch_chunks=0, threadblocks=())
    report = verify_program(_change(ring_allgather(), ranks=(nothing, nothing), chunk_count=2))
    assert _kinds(report) == {"wrong-result"}


def test_operations_of_rccl() -> None:
    plain = {Operation.SEND, Operation.RECV, Operation.COPY, Operation.REDUCE, Operation.NOP}
    used = {one.operation for own in pairs_allreduce().ranks for two in own.threadblocks for one in two.steps}
    assert used <= plain
    assert "rccl" in verify_program(pairs_allreduce()).accepts


# Hostile values.

_VALUES = (-(2**31), -2, -1, 0, 1, 2, 3, 31, 32, 71, 72, 127, 128, 255, 256, 32767, 32768, 2**31 - 1, 2**40)


def _with_hostile_numbers(original: Program, choose: random.Random) -> Program:
    """`original` with one to three of its numbers replaced, anywhere."""
    tree = msgspec.to_builtins(original)
    for _ in range(choose.randint(1, 3)):
        node = tree
        while True:
            key = choose.choice(list(node) if isinstance(node, dict) else range(len(node)))
            if isinstance(node[key], dict | list) and node[key]:
                node = node[key]
                continue
            if type(node[key]) is int:
                node[key] = choose.choice(_VALUES)
            break
    return msgspec.convert(tree, Program)


def test_hostile_numbers_never_give_a_traceback() -> None:
    choose = random.Random(11)
    samples = (ring_allgather(4, 2), ring_allgather_apart(), pairs_allreduce(), broadcast_chain(), pairs_alltoall())
    for _ in range(300):
        for sample in samples:
            report = verify_program(_with_hostile_numbers(sample, choose))
            assert report.accepted or report.violations
