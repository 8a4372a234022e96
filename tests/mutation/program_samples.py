"""Small correct programs, written by hand, that the tests of the program verifier start from."""

from __future__ import annotations

from collections.abc import Sequence

from forestsyn.ir.program import (
    Buffer,
    Dependency,
    Location,
    Operation,
    Program,
    Protocol,
    RankProgram,
    Step,
    Threadblock,
)


def at(text: str) -> Location:
    """``o3`` is chunk 3 of the output."""
    return Location(buffer=Buffer(text[0]), offset=int(text[1:]))


def step(
    operation: str,
    source: str,
    destination: str,
    count: int = 1,
    wait: tuple[int, int] | None = None,
    flag: bool = False,
) -> Step:
    """A step in the words of the file; `wait` is (threadblock, step)."""
    return Step(
        operation=Operation(operation),
        source=at(source),
        destination=at(destination),
        count=count,
        depends_on=None if wait is None else Dependency(threadblock=wait[0], step=wait[1]),
        flagged=flag,
    )


def nop(wait: tuple[int, int]) -> Step:
    """A step that only waits."""
    return step("nop", "i-1", "o-1", 0, wait)


def block(send: int, receive: int, steps: Sequence[Step], channel: int = 0) -> Threadblock:
    """A threadblock."""
    return Threadblock(send_peer=send, receive_peer=receive, channel=channel, steps=tuple(steps))


def program(
    collective: str,
    chunks: int,
    ranks: Sequence[Sequence[Threadblock]],
    *,
    in_place: bool = True,
    out_of_place: bool | None = None,
    scratch: int = 0,
    root: int | None = None,
    protocol: Protocol = Protocol.SIMPLE,
    maximum_bytes: int = 2**27,
) -> Program:
    """A program whose buffers have the sizes that its collective gives them."""
    count = len(ranks)
    inputs = chunks // count if collective == "allgather" else chunks
    outputs = chunks // count if collective == "reduce-scatter" else chunks
    channels = 1 + max(threadblock.channel for blocks in ranks for threadblock in blocks)
    return Program(
        name="sample",
        collective=collective,
        protocol=protocol,
        chunk_count=chunks,
        channel_count=channels,
        in_place=in_place,
        out_of_place=not in_place if out_of_place is None else out_of_place,
        minimum_bytes=0,
        maximum_bytes=maximum_bytes,
        ranks=tuple(
            RankProgram(
                input_chunks=inputs, output_chunks=outputs, scratch_chunks=scratch, threadblocks=tuple(blocks)
            )
            for blocks in ranks
        ),
        root=root,
    )


def ring_allgather(n: int = 4, count: int = 1) -> Program:
    """One threadblock a rank: send the own shard, then pass on what comes. In place."""
    ranks = []
    for rank in range(n):
        cells = [f"o{(rank - distance) % n * count}" for distance in range(n)]
        steps = [step("s", cells[0], cells[0], count)]
        steps += [step("rcs", cell, cell, count) for cell in cells[1:-1]]
        steps.append(step("r", cells[-1], cells[-1], count))
        ranks.append([block((rank + 1) % n, (rank - 1) % n, steps)])
    return program("allgather", n * count, ranks)


def ring_allgather_apart(n: int = 4) -> Program:
    """The same ring out of place without fused steps: one threadblock receives, one sends what that has received."""
    ranks = []
    for rank in range(n):
        cells = [f"o{(rank - distance) % n}" for distance in range(n)]
        receiving = [step("r", cell, cell, flag=position < n - 2) for position, cell in enumerate(cells[1:])]
        sending = [step("cpy", "i0", cells[0]), step("s", cells[0], cells[0])]
        sending += [step("s", cell, cell, wait=(0, position)) for position, cell in enumerate(cells[1:-1])]
        ranks.append([block(-1, (rank - 1) % n, receiving), block((rank + 1) % n, -1, sending)])
    return program("allgather", n, ranks, in_place=False)


def ring_allreduce(n: int = 4) -> Program:
    """Reduce-scatter, then allgather, round one ring in one threadblock. In place, on the input."""
    ranks = []
    for rank in range(n):
        cells = [f"i{(rank - distance) % n}" for distance in range(n)]
        steps = [step("s", cells[0], cells[0])]
        steps += [step("rrs", cell, cell) for cell in cells[1:-1]]
        steps.append(step("rrcs", cells[-1], cells[-1]))
        steps += [step("rcs", cell, cell) for cell in cells[:-2]]
        steps.append(step("r", cells[-2], cells[-2]))
        ranks.append([block((rank + 1) % n, (rank - 1) % n, steps)])
    return program("allreduce", n, ranks)


def pairs_reduce_scatter(n: int = 4) -> Program:
    """Every rank sends chunk q to rank q, which gathers them in scratch and adds them up in another threadblock."""
    ranks = []
    for rank in range(n):
        peers = [peer for peer in range(n) if peer != rank]
        blocks = [
            block(peer, peer, [step("s", f"i{peer}", f"s{slot}"), step("r", f"s{slot}", f"s{slot}", flag=True)])
            for slot, peer in enumerate(peers)
        ]
        waits = [(slot, 1) for slot in range(n - 1)]
        adding = [nop(wait) for wait in waits[:-1]]
        adding.append(step("re", "s0", f"i{rank}", wait=waits[-1]))
        adding += [step("re", f"s{slot}", f"i{rank}") for slot in range(1, n - 1)]
        ranks.append([*blocks, block(-1, -1, adding)])
    return program("reduce-scatter", n, ranks, scratch=n - 1)


def pairs_allreduce(n: int = 3) -> Program:
    """Two threadblocks a peer and buffer sharing: partial sums move through scratch, results come back. In place."""
    ranks = []
    for rank in range(n):
        peers = [peer for peer in range(n) if peer != rank]
        blocks = []
        for slot, peer in enumerate(peers):
            steps = [
                step("s", f"i{peer}", f"s{slot}"),
                step("r", f"s{slot}", f"s{slot}", flag=True),
                step("s", f"i{rank}", f"i{rank}", wait=(n - 1, n + len(peers) - 3)),
                step("r", f"i{peer}", f"i{peer}"),
            ]
            blocks.append(block(peer, peer, steps))
        adding = [nop((slot, 1)) for slot in range(n - 2)]
        adding.append(step("re", "s0", f"i{rank}", wait=(n - 2, 1), flag=n == 2))
        adding += [step("re", f"s{slot}", f"i{rank}", flag=slot == n - 2) for slot in range(1, n - 1)]
        ranks.append([*blocks, block(-1, -1, adding)])
    return program("allreduce", n, ranks, scratch=n - 1)


def pairs_allgather(n: int = 3, count: int = 2) -> Program:
    """Every rank sends its shard of `count` chunks straight to every other. In place."""
    ranks = []
    for rank in range(n):
        own = f"o{rank * count}"
        peers = [(peer, f"o{peer * count}") for peer in range(n) if peer != rank]
        ranks.append(
            [block(peer, peer, [step("s", own, own, count), step("r", cell, cell, count)]) for peer, cell in peers]
        )
    return program("allgather", n * count, ranks)


def broadcast_chain(n: int = 4, chunks: int = 2) -> Program:
    """From rank 0 along the chain 0, 1, 2, …; out of place, chunk after chunk."""
    ranks = []
    for rank in range(n):
        names = [f"{chunk}" for chunk in range(chunks)]
        if rank == 0:
            steps = [step("s", f"i{name}", f"o{name}") for name in names]
            local = [block(-1, -1, [step("cpy", "i0", "o0", chunks)])]
        else:
            steps = [step("rcs" if rank < n - 1 else "r", f"o{name}", f"o{name}") for name in names]
            local = []
        ranks.append([block(rank + 1 if rank < n - 1 else -1, rank - 1, steps), *local])
    return program("broadcast", chunks, ranks, in_place=False, root=0)


def reduce_chain(n: int = 4) -> Program:
    """Towards rank 0 along the chain; out of place, so that the input stays as it is."""
    ranks = []
    for rank in range(n):
        sending, receiving = rank - 1, rank + 1 if rank < n - 1 else -1
        if rank == n - 1:
            steps = [step("s", "i0", "i0")]
        else:
            steps = [step("rrs" if rank else "rrc", "i0", "o0")]
        ranks.append([block(sending, receiving, steps)])
    return program("reduce", 1, ranks, in_place=False, root=0)


def pairs_alltoall(n: int = 3) -> Program:
    """Every chunk goes straight to its place; out of place."""
    ranks = []
    for rank in range(n):
        blocks = [
            block(peer, peer, [step("s", f"i{peer}", f"o{rank}"), step("r", f"o{peer}", f"o{peer}")])
            for peer in range(n)
            if peer != rank
        ]
        ranks.append([*blocks, block(-1, -1, [step("cpy", f"i{rank}", f"o{rank}")])])
    return program("alltoall", n, ranks, in_place=False)


def bidirectional_reduce_scatter(n: int = 3) -> Program:
    """Out of place, on 'rrc' from input to output: each rank adds what two peers send, one after the other."""
    ranks = []
    for rank in range(n):
        up, down = (rank + 1) % n, (rank - 1) % n
        first = [step("s", f"i{up}", "o0"), step("rrc", f"i{rank}", "o0", flag=True)]
        second = [step("s", f"i{down}", "o0"), step("rrc", "o0", "o0", wait=(0, 1))]
        ranks.append([block(up, down, first), block(down, up, second, channel=1)])
    return program("reduce-scatter", n, ranks, in_place=False)


SAMPLES = {
    "ring allgather": ring_allgather(),
    "ring allgather, two chunks a step": ring_allgather(4, 2),
    "ring allgather, threadblocks apart": ring_allgather_apart(),
    "ring allreduce": ring_allreduce(),
    "pairs reduce-scatter": pairs_reduce_scatter(),
    "pairs allreduce": pairs_allreduce(),
    "pairs allgather, two chunks a step": pairs_allgather(),
    "broadcast chain": broadcast_chain(),
    "reduce chain": reduce_chain(),
    "pairs alltoall": pairs_alltoall(),
    "reduce-scatter of three": bidirectional_reduce_scatter(),
}
