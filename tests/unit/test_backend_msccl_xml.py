"""The text of a small program, letter by letter."""

from __future__ import annotations

import msgspec
import pytest

from forestsyn.backends import emit_msccl_xml
from forestsyn.errors import UnsupportedError
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
from forestsyn.ir.target import EXECUTOR, MSCCL


def rank(peer: int) -> RankProgram:
    own, other = Location(buffer=Buffer.OUTPUT, offset=1 - peer), Location(buffer=Buffer.OUTPUT, offset=peer)
    send = Step(operation=Operation.SEND, source=own, destination=own, count=1, flagged=True)
    receive = Step(
        operation=Operation.RECV,
        source=other,
        destination=other,
        count=1,
        depends_on=Dependency(threadblock=0, step=0),
    )
    return RankProgram(
        input_chunks=1,
        output_chunks=2,
        scratch_chunks=0,
        threadblocks=(
            Threadblock(send_peer=peer, receive_peer=-1, channel=0, steps=(send,)),
            Threadblock(send_peer=-1, receive_peer=peer, channel=0, steps=(receive,)),
        ),
    )


PROGRAM = Program(
    name="two",
    collective="allgather",
    protocol=Protocol.LL128,
    chunk_count=2,
    channel_count=1,
    in_place=True,
    out_of_place=False,
    minimum_bytes=0,
    maximum_bytes=1 << 40,
    ranks=(rank(1), rank(0)),
)

TEXT = """\
<algo name="two" proto="LL128" nchannels="1" nchunksperloop="2" ngpus="2" coll="allgather" inplace="1" \
outofplace="0" minBytes="0" maxBytes="1099511627776">
  <gpu id="0" i_chunks="1" o_chunks="2" s_chunks="0">
    <tb id="0" send="1" recv="-1" chan="0">
      <step s="0" type="s" srcbuf="o" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="1"/>
    </tb>
    <tb id="1" send="-1" recv="1" chan="0">
      <step s="0" type="r" srcbuf="o" srcoff="1" dstbuf="o" dstoff="1" cnt="1" depid="0" deps="0" hasdep="0"/>
    </tb>
  </gpu>
  <gpu id="1" i_chunks="1" o_chunks="2" s_chunks="0">
    <tb id="0" send="0" recv="-1" chan="0">
      <step s="0" type="s" srcbuf="o" srcoff="1" dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="1"/>
    </tb>
    <tb id="1" send="-1" recv="0" chan="0">
      <step s="0" type="r" srcbuf="o" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="0" deps="0" hasdep="0"/>
    </tb>
  </gpu>
</algo>
"""


def test_every_letter() -> None:
    assert emit_msccl_xml(PROGRAM, EXECUTOR) == TEXT
    assert TEXT.isascii()
    assert "\t" not in TEXT
    assert max(line.count('="') for line in TEXT.splitlines()) <= 16


def test_dialects_spell_reduce_scatter() -> None:
    program = msgspec.structs.replace(PROGRAM, collective="reduce-scatter")
    assert 'coll="reducescatter"' in emit_msccl_xml(program, EXECUTOR)
    assert 'coll="reduce_scatter"' in emit_msccl_xml(program, MSCCL)


@pytest.mark.parametrize("name", ["", 'a"b', "a<b", "é", "x" * 64, "a\nb"])
def test_names_that_do_not_fit(name: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        emit_msccl_xml(msgspec.structs.replace(PROGRAM, name=name), EXECUTOR)
    assert caught.value.limit == "name"
