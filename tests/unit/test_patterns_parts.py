"""The parts of patterns: trees, paths, rounds, and the waits of composed programs."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from forestsyn.backends import emit_msccl_xml
from forestsyn.frontend import load_topology
from forestsyn.ir.collective import Collective
from forestsyn.ir.program import Buffer, Location, Operation, Program, Threadblock
from forestsyn.ir.target import EXECUTOR, MSCCL, RCCL, Target
from forestsyn.lowering.instances import replicate
from forestsyn.patterns import Exchange, Form, Pattern
from forestsyn.patterns.binary_trees import double_tree
from forestsyn.patterns.composer import LOCAL, RankComposer
from forestsyn.patterns.exchange import gather_rounds, talking_pairs
from forestsyn.patterns.hamiltonian import find_row
from forestsyn.patterns.network import Loads, Network
from forestsyn.patterns.ring_search import find_rings
from forestsyn.pipeline.verify_file import verify_own_text
from forestsyn.verify import verify_program
from tests.lowering_machine import Machine
from tests.patterns import lower_pattern


@pytest.mark.parametrize("rooted", [False, True])
@pytest.mark.parametrize("count", range(2, 40))
def test_double_trees_span_and_nodes_are_leaves_in_one(count: int, rooted: bool) -> None:
    trees = double_tree(count, rooted=rooted)
    leaves: set[int] = set()
    for parents in trees:
        assert parents.count(-1) == 1
        assert all(reaches_root(parents, node) for node in range(count))
        children = Counter(parent for parent in parents if parent >= 0)
        assert max(children.values()) <= 2
        leaves |= {node for node in range(count) if not children[node]}
    always_inner = set(range(count)) - leaves
    assert always_inner <= ({0} if rooted or count % 2 else set())
    if rooted:
        assert all(parents[0] == -1 for parents in trees)


def reaches_root(parents: list[int], node: int) -> bool:
    for _ in parents:
        node = parents[node] if parents[node] >= 0 else node
    return parents[node] == -1


def test_paths_are_short_then_wide_and_pass_no_rank() -> None:
    network = Network(load_topology("dgx-a100:2"))
    (inside,) = network.paths(0, 1)
    assert len(inside.links) == 2
    (across,) = network.paths(0, 10)
    assert len(across.links) == 4
    assert network.paths(0, 9) == ()  # NICs of odd and even GPUs are on two planes
    assert not network.complete


def test_a_host_that_holds_together_keeps_to_itself() -> None:
    network = Network(load_topology("dgx1v:2"))
    assert not network.joined(0, 5)  # no NVLink; a way over two NICs exists
    assert network.joined(0, 13)


def test_paths_are_balanced() -> None:
    network = Network(load_topology("fat-tree:4"))
    assert len(network.paths(0, 15)) == 4
    loads = Loads(network)
    taken = set()
    for source in (0, 1):
        best = loads.best(source, 15 - source)
        assert best is not None
        loads.add(best[1])
        taken.add(best[1].vertices[1:-1])
    # The second pair takes another of the ways up and down, for they share switches.
    assert len({path[1] for path in taken}) == 2


def test_rows_and_rings() -> None:
    network = Network(load_topology("torus:4x4"))
    row = find_row(network, Loads(network), range(16), 3, 5)
    assert row is not None
    assert (row.ranks[0], row.ranks[-1], sorted(row.ranks), len(row.paths)) == (3, 5, list(range(16)), 15)
    ring = find_row(network, Loads(network), range(16), 0, 0)
    assert ring is not None
    assert len(ring.paths) == 16
    assert find_row(network, Loads(network), range(16), 0, 5) is None  # equal colours of a chessboard


def test_failed_searches_leave_no_load() -> None:
    network = Network(load_topology("mesh:3x3"))
    loads = Loads(network)
    assert find_row(network, loads, range(9), 0, 0) is None
    assert not any(loads.costs)
    assert find_rings(network) is None


def test_four_rings_of_a_torus_share_no_link() -> None:
    found = find_rings(Network(load_topology("torus:4x4")))
    assert found is not None
    used = Counter(number for ring in found.rings[:4] for path in ring.paths for number in path.links)
    assert len(used) == 64
    assert set(used.values()) == {1}


@pytest.mark.parametrize("count", range(2, 20))
def test_rounds_gather_everything(count: int) -> None:
    form = Form.DOUBLING if count & (count - 1) == 0 else Form.BRUCK
    order = tuple(reversed(range(count)))
    exchange = Exchange(form=form, collective=Collective.ALLGATHER, order=order)
    held = [{rank} for rank in range(count)]
    rounds = gather_rounds(exchange)
    assert len(rounds) == (count - 1).bit_length()
    for messages in rounds:
        before = [set(chunks) for chunks in held]
        for source, destination, chunks in messages:
            assert before[source].issuperset(chunks)
            assert not held[destination] & set(chunks), "sent twice"
            held[destination].update(chunks)
    assert all(len(chunks) == count for chunks in held)


FORMS = [
    (Form.ONE_SHOT, Collective.ALLREDUCE),
    (Form.TWO_LEVEL, Collective.ALLREDUCE),
    (Form.VECTORS, Collective.ALLREDUCE),
    *(
        (form, collective)
        for form in (Form.DOUBLING, Form.BRUCK)
        for collective in Collective
        if not collective.rooted
    ),
]


def exchange_of(form: Form, collective: Collective, count: int) -> Exchange | None:
    size = 0
    if form is Form.TWO_LEVEL:
        size = next((size for size in (2, 3) if count % size == 0 and count > size), 0)
    if (form is Form.DOUBLING and count & (count - 1)) or (form is Form.TWO_LEVEL and not size):
        return None
    return Exchange(form=form, collective=collective, order=tuple(range(count)), host_size=size)


@pytest.mark.parametrize("target", [MSCCL, EXECUTOR, RCCL], ids=lambda target: target.name)
@pytest.mark.parametrize(("form", "collective"), FORMS)
def test_exchanges_run_in_any_order(form: Form, collective: Collective, target: Target) -> None:
    for count in (2, 3, 4, 5, 6, 7, 8, 9):
        exchange = exchange_of(form, collective, count)
        if exchange is None:
            continue
        for out_of_place in (False, True):
            program = lower_pattern(Pattern(name="x", exchange=exchange), target, out_of_place=out_of_place)
            report = verify_program(program, target=target.name, strict=True)
            report.raise_if_rejected()
            for seed, (depth, split) in enumerate(((2, 1), (2, 71), (8, 2))):
                Machine(program, in_place=not out_of_place, depth=depth, split=split, seed=seed).run()


@pytest.mark.parametrize(("form", "collective"), FORMS)
def test_programs_send_between_the_pairs_that_are_told(form: Form, collective: Collective) -> None:
    exchange = exchange_of(form, collective, 8)
    assert exchange is not None
    program = lower_pattern(Pattern(name="x", exchange=exchange), EXECUTOR)
    sending = {
        (rank, block.send_peer)
        for rank, own in enumerate(program.ranks)
        for block in own.threadblocks
        if any(step.operation.sends for step in block.steps)
    }
    assert sending == set(talking_pairs(exchange))


def test_doubling_moves_runs_of_chunks_in_one_step() -> None:
    exchange = exchange_of(Form.DOUBLING, Collective.ALLGATHER, 16)
    program = lower_pattern(Pattern(name="x", exchange=exchange), EXECUTOR)
    for rank in program.ranks:
        counts = [s.count for block in rank.threadblocks for s in block.steps if s.operation is Operation.SEND]
        assert sorted(counts) == [1, 2, 4, 8]


def test_one_shot_adds_in_the_same_order_everywhere() -> None:
    exchange = exchange_of(Form.ONE_SHOT, Collective.ALLREDUCE, 6)
    program = lower_pattern(Pattern(name="x", exchange=exchange), EXECUTOR)
    for number, rank in enumerate(program.ranks):
        peers = [
            block.receive_peer if step.operation is not Operation.REDUCE else number
            for block in rank.threadblocks
            for step in block.steps
            if step.operation in (Operation.RECV, Operation.RECV_REDUCE_COPY, Operation.REDUCE)
        ]
        others = [peer for peer in range(6) if peer != number]
        assert peers == (others if number < 2 else list(range(6)))


def without_waits(program: Program) -> Program:
    def freed(block: Threadblock) -> Threadblock:
        steps = [msgspec.structs.replace(step, depends_on=None, flagged=False) for step in block.steps]
        return msgspec.structs.replace(block, steps=tuple(steps))

    ranks = [
        msgspec.structs.replace(rank, threadblocks=tuple(freed(block) for block in rank.threadblocks))
        for rank in program.ranks
    ]
    return msgspec.structs.replace(program, ranks=tuple(ranks))


@pytest.mark.parametrize(("form", "collective"), FORMS)
def test_the_waits_are_needed(form: Form, collective: Collective) -> None:
    exchange = exchange_of(form, collective, 8)
    program = lower_pattern(Pattern(name="x", exchange=exchange), EXECUTOR)
    assert verify_program(program, target="executor", strict=True).accepted
    assert not verify_program(without_waits(program), target="executor", strict=True).accepted


def at(buffer: Buffer, offset: int) -> Location:
    return Location(buffer=buffer, offset=offset)


def test_a_second_wait_is_put_on_a_nop() -> None:
    composer = RankComposer(output_start=None, fused=True)
    scratch = composer.take_scratch(3)
    composer.receive((-1, 1), scratch, at(Buffer.SCRATCH, 0))
    composer.receive((-1, 2), scratch, at(Buffer.SCRATCH, 1))
    composer.receive((-1, 3), scratch, at(Buffer.SCRATCH, 2))
    composer.copy(LOCAL, at(Buffer.SCRATCH, 0), at(Buffer.OUTPUT, 0), 3)
    blocks = composer.program(input_chunks=1, output_chunks=3).threadblocks
    assert [step.operation for step in blocks[-1].steps] == [Operation.NOP, Operation.NOP, Operation.COPY]
    waited = {(step.depends_on.threadblock, step.depends_on.step) for step in blocks[-1].steps if step.depends_on}
    assert waited == {(0, 0), (1, 0), (2, 0)}
    assert all(block.steps[0].flagged for block in blocks[:3])


def test_writes_wait_for_reads_where_the_buffers_may_be_one() -> None:
    composer = RankComposer(output_start=0, fused=True)
    composer.send((1, -1), at(Buffer.INPUT, 0), at(Buffer.OUTPUT, 0))
    composer.receive((-1, 1), at(Buffer.OUTPUT, 0), at(Buffer.OUTPUT, 0))
    blocks = composer.program(input_chunks=1, output_chunks=1).threadblocks
    assert blocks[1].steps[0].depends_on is not None


@pytest.mark.parametrize("target", [MSCCL, EXECUTOR, RCCL], ids=lambda target: target.name)
@pytest.mark.parametrize("form", Form)
def test_allreduces_can_be_replicated(form: Form, target: Target) -> None:
    for count in (4, 5, 8):
        exchange = exchange_of(form, Collective.ALLREDUCE, count)
        if exchange is not None:
            program = replicate(lower_pattern(Pattern(name="x", exchange=exchange), target), 4)
            verify_own_text(emit_msccl_xml(program, target), source="x", target=target.name, root=None)
