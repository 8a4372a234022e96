"""The reader of MSCCL XML: as strict as the runtimes' own parser, and never a traceback."""

from __future__ import annotations

import random

import pytest

from forestsyn.frontend.msccl_integers import read_c_integer
from forestsyn.frontend.msccl_xml import ReadProgram, parse_msccl_xml
from forestsyn.ir.program import Buffer, Dependency, Location, Operation, Protocol
from forestsyn.verify.program import verify_program

ALL = ("msccl", "executor", "rccl")
EXECUTORS = ("executor", "rccl")

ALGO = (
    '<algo name="pair" proto="Simple" nchannels="1" nchunksperloop="2" ngpus="2" coll="allgather" inplace="1" '
    'outofplace="0" minBytes="0" maxBytes="1048576">'
)
STEP0 = (
    '<step s="0" type="s" srcbuf="o" srcoff="{0}" dstbuf="o" dstoff="{0}" cnt="1" depid="-1" deps="-1" hasdep="0"/>'
)
STEP1 = (
    '<step s="1" type="r" srcbuf="o" srcoff="{0}" dstbuf="o" dstoff="{0}" cnt="1" depid="-1" deps="-1" hasdep="0"/>'
)


def _rank(rank: int) -> str:
    other = 1 - rank
    return (
        f'  <gpu id="{rank}" i_chunks="1" o_chunks="2" s_chunks="0">\n'
        f'    <tb id="0" send="{other}" recv="{other}" chan="0">\n'
        f"      {STEP0.format(rank)}\n      {STEP1.format(other)}\n    </tb>\n  </gpu>\n"
    )


GOOD = f"{ALGO}\n{_rank(0)}{_rank(1)}</algo>\n"


def _read(text: str | bytes) -> ReadProgram:
    return parse_msccl_xml(text, source="file.xml")


def _refusing(text: str) -> dict[str, tuple[str, ...]]:
    """kind -> dialects, of the findings that are more than a note."""
    return {finding.kind: finding.dialects for finding in _read(text).findings if finding.effect != "note"}


def test_a_good_file_reads_one_to_one() -> None:
    read = _read(GOOD)
    assert read.findings == ()
    program = read.program
    assert program is not None
    assert (program.name, program.collective, program.protocol) == ("pair", "allgather", Protocol.SIMPLE)
    assert (program.chunk_count, program.channel_count, len(program.ranks)) == (2, 1, 2)
    assert (program.in_place, program.out_of_place) == (True, False)
    assert (program.minimum_bytes, program.maximum_bytes, program.root) == (0, 2**20, None)
    rank = program.ranks[1]
    assert (rank.input_chunks, rank.output_chunks, rank.scratch_chunks) == (1, 2, 0)
    (threadblock,) = rank.threadblocks
    assert (threadblock.send_peer, threadblock.receive_peer, threadblock.channel) == (0, 0, 0)
    first = threadblock.steps[0]
    assert first.operation is Operation.SEND
    assert first.source == first.destination == Location(buffer=Buffer.OUTPUT, offset=1)
    assert (first.count, first.depends_on, first.flagged) == (1, None, False)
    assert verify_program(program).accepts == ALL


def test_dependencies_and_flags() -> None:
    text = GOOD.replace('depid="-1" deps="-1" hasdep="0"', 'depid="2" deps="5" hasdep="1"', 1)
    step = _read(text).program.ranks[0].threadblocks[0].steps[0]
    assert step.depends_on == Dependency(threadblock=2, step=5)
    assert step.flagged


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('<?xml version="1.0"?>\n' + GOOD, "declaration"),
        (GOOD.replace("  <gpu", "\t<gpu", 1), "a tab"),
        (GOOD.replace('name="pair"', "name='pair'"), "single quote"),
        (GOOD.replace(' proto="Simple"', '\n proto="Simple"'), "on its line"),
        (GOOD.replace('proto="Simple"', 'proto = "Simple"'), "spaces"),
        (GOOD.replace('proto="Simple"', "proto=Simple"), 'name="value"'),
        (GOOD.replace("</algo>", "text</algo>"), "expected '<'"),
        (GOOD.replace("</algo>", ""), "cut short"),
        (GOOD.replace("</gpu>", "</tb>", 1), "expected </gpu>"),
        (GOOD + "</algo>", "no closing tag"),
        (GOOD[: GOOD.index("</gpu>")], "cut short"),
        (GOOD[:300], "inside the tag"),
        (GOOD.replace('hasdep="0"/>', 'hasdep="0/>', 1), "found '1'"),
        (GOOD[: GOOD.rindex('"')], "never closed"),
        ("<!--a=b-->" + GOOD, "space right after"),
        ("<!-- endless" + GOOD.replace("-->", ""), "never ends"),
        ("< algo>", "name of an element"),
        ("", "an empty file"),
        ("  \n\r\n ", "an empty file"),
        ("<topology/>", "other names"),
        ("\x7fELF\0\0", "expected '<'"),
        ("<a>" * 100, "nest"),
    ],
)
def test_what_no_runtime_reads_is_explained(text: str, words: str) -> None:
    read = _read(text)
    assert read.program is None
    fatal = [finding for finding in read.findings if finding.dialects == ALL and finding.effect == "load"]
    assert any(words in finding.message for finding in fatal)
    report = verify_program(read.program, findings=read.findings)
    assert report.loads == ()
    assert not report.accepted


@pytest.mark.parametrize(
    "text",
    [
        GOOD.replace("\n", "\r\n"),
        GOOD.replace("\n", ""),
        "<!-- a comment -->\n" + GOOD,
        GOOD.replace("  <gpu", "<!-- a = b > c -->\n  <gpu"),
        GOOD.replace('hasdep="0"/>', 'hasdep="0" />'),
        GOOD.replace('hasdep="0"/>', 'hasdep="0"></step>'),
        GOOD.replace('<tb id="0"', '<tb  id="0"'),
    ],
)
def test_what_the_parsers_forgive_is_forgiven(text: str) -> None:
    assert _refusing(text) == {}
    assert verify_program(_read(text).program).accepts == ALL


def test_the_line_is_named() -> None:
    (finding,) = _read(GOOD.replace("    <tb", "\t<tb", 1)).findings
    assert finding.line == 3


@pytest.mark.parametrize("name", ["ngpus", "nchunksperloop", "nchannels", "proto", "coll", "inplace"])
def test_attributes_that_everybody_needs(name: str) -> None:
    text = GOOD.replace(f" {name}=", f" x{name}=")
    assert _read(text).program is None
    assert _refusing(text)["attribute"] == ALL


@pytest.mark.parametrize(
    "name", ["s", "type", "srcbuf", "srcoff", "dstbuf", "dstoff", "cnt", "depid", "deps", "hasdep"]
)
def test_every_attribute_of_a_step_is_needed(name: str) -> None:
    text = GOOD.replace(f" {name}=", f" x{name}=")
    assert _read(text).program is None
    assert any(f"'{name}'" in finding.message for finding in _read(text).findings)


@pytest.mark.parametrize(
    ("name", "dialects"),
    [("name", ("msccl",)), ("outofplace", EXECUTORS), ("minBytes", EXECUTORS), ("maxBytes", EXECUTORS)],
)
def test_attributes_that_some_need(name: str, dialects: tuple[str, ...]) -> None:
    read = _read(GOOD.replace(f" {name}=", f" x{name}="))
    report = verify_program(read.program, findings=read.findings)
    assert report.accepts == tuple(dialect for dialect in ALL if dialect not in dialects)
    assert any(f"'{name}'" in violation.message for violation in report.violations)


def test_defaults_of_msccl() -> None:
    text = GOOD.replace(' outofplace="0" minBytes="0" maxBytes="1048576"', "")
    program = _read(text).program
    assert (program.in_place, program.out_of_place) == (True, False)
    assert (program.minimum_bytes, program.maximum_bytes) == (0, 2**27)


@pytest.mark.parametrize(
    ("spelling", "dialects"), [("reduce_scatter", EXECUTORS), ("reducescatter", ("msccl",)), ("AllReduce", ALL)]
)
def test_spelling_of_collectives(spelling: str, dialects: tuple[str, ...]) -> None:
    text = GOOD.replace("allgather", spelling)
    assert _refusing(text)["collective"] == dialects
    if spelling != "AllReduce":
        assert _read(text).program.collective == "reduce-scatter"


@pytest.mark.parametrize("word", ["simple", "SIMPLE", "ll", "LL256", ""])
def test_protocols_are_case_sensitive(word: str) -> None:
    text = GOOD.replace('proto="Simple"', f'proto="{word}"')
    assert _refusing(text) == {"protocol": ALL}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("12", 12), ("-1", -1), ("abc", 0), ("010", 8), ("09", 0), ("0x1F", 31), ("0x", 0), ("12 apples", 12)),
        *(("  7", 7), ("+3", 3), ("", 0), ("9" * 400, 2**63 - 1), ("-" + "9" * 400, -(2**63)), ("0" * 400 + "7", 7)),
    ],
)
def test_integers_are_those_of_strtol(text: str, value: int) -> None:
    assert read_c_integer(text) == value


def test_odd_integers_are_reported() -> None:
    assert _refusing(GOOD.replace('cnt="1"', 'cnt="01"')) == {"integer": ALL}
    assert _refusing(GOOD.replace('maxBytes="1048576"', 'maxBytes="1MB"')) == {"integer": ALL}
    assert "integer" in _refusing(GOOD.replace('srcoff="0"', 'srcoff="99999999999"'))
    assert _refusing(GOOD.replace('maxBytes="1048576"', 'maxBytes="1152921504606846976"')) == {}


def test_only_sixteen_attributes_are_kept() -> None:
    crowded = GOOD.replace("<algo ", "<algo " + " ".join(f'a{index}="0"' for index in range(16)) + " ")
    read = _read(crowded)
    assert read.program is None
    assert any("26 attributes" in finding.message for finding in read.findings)
    assert _refusing(GOOD.replace("<algo ", "<algo " + " " * 7)) == {"attribute": EXECUTORS}


def test_long_values_overflow() -> None:
    assert _refusing(GOOD.replace('name="pair"', f'name="{"x" * 255}"')) == {"attribute-length": ALL}
    assert _refusing(GOOD.replace('name="pair"', f'name="{"x" * 254}"')) == {}


def test_threadblock_ids_have_no_gap_and_no_twin() -> None:
    assert _refusing(GOOD.replace('<tb id="0"', '<tb id="1"')) == {"threadblock-id": ALL}
    block = GOOD[GOOD.index("    <tb") : GOOD.index("  </gpu>")]
    assert _refusing(GOOD.replace(block, block + block, 1)) == {"threadblock-id": ALL}


def test_threadblocks_are_sorted_by_id() -> None:
    block = GOOD[GOOD.index("    <tb") : GOOD.index("  </gpu>")]
    second = block.replace('<tb id="0"', '<tb id="1"').replace('chan="0"', 'chan="3"')
    program = _read(GOOD.replace(block, second + block, 1)).program
    assert [threadblock.channel for threadblock in program.ranks[0].threadblocks] == [0, 3]


@pytest.mark.parametrize(
    ("numbers", "refusing"),
    [
        ((0, 0), {"step-number": ALL}),
        ((1, 0), {"step-number": ALL}),
        ((0, 5), {}),
        ((0, 64), {"step-number": EXECUTORS}),
    ],
)
def test_step_numbers(numbers: tuple[int, int], refusing: dict[str, tuple[str, ...]]) -> None:
    text = GOOD.replace('s="0" type="s"', f's="{numbers[0]}" type="s"').replace(
        's="1" type', f's="{numbers[1]}" type'
    )
    assert _refusing(text) == refusing
    program = _read(text).program
    assert [step.operation.value for step in program.ranks[0].threadblocks[0].steps] == ["s", "r"]


def test_ranks() -> None:
    assert _refusing(GOOD.replace(_rank(1), "")) == {"missing-rank": ALL}
    assert _refusing(GOOD.replace(_rank(1), _rank(0))) == {"ranks": ALL, "missing-rank": ALL}
    assert _refusing(GOOD.replace('ngpus="2"', 'ngpus="1000000000"')) == {"ranks": ALL}
    assert _refusing(GOOD.replace('ngpus="2"', 'ngpus="0"')) == {"ranks": ALL}


def test_the_node_budget() -> None:
    def padded(ranks: int) -> str:
        extra = "".join(f'<gpu id="{rank}" i_chunks="0" o_chunks="0" s_chunks="0"/>' for rank in range(2, ranks))
        step = STEP1.format(0)
        body = GOOD.replace(STEP1.format(1), step * 4000, 1).replace("</algo>", extra + "</algo>")
        return body.replace('ngpus="2"', f'ngpus="{ranks}"')

    # 1 <algo>, the ranks, 1 <tb>, 4001 <step>: 4095 with 92 ranks.
    assert "nodes" not in _refusing(padded(92))
    assert _refusing(padded(93))["nodes"] == ALL


def test_words_in_steps() -> None:
    assert _refusing(GOOD.replace('type="s"', 'type="send"')) == {"operation": ALL}
    assert _refusing(GOOD.replace('srcbuf="o"', 'srcbuf="out"')) == {"buffer": ALL}
    assert _refusing(GOOD.replace('hasdep="0"', 'hasdep="2"')) == {"switch": ALL}
    read = _read(GOOD.replace('type="s"', 'type="ra"'))
    report = verify_program(read.program, findings=read.findings)
    assert not report.accepted


def test_unknown_things_are_noted_and_ignored() -> None:
    text = GOOD.replace("  <gpu", '  <copy i_off="0"><step s="9"/></copy>\n  <gpu').replace(
        "<algo ", '<algo color="x" '
    )
    read = _read(text)
    assert read.program == _read(GOOD).program
    assert {finding.kind for finding in read.findings} == {"unknown-element", "unknown-attribute"}
    assert all(finding.effect == "note" for finding in read.findings)


def test_the_executors_read_the_first_element_only() -> None:
    assert _refusing("<note/>\n" + GOOD) == {"first-element": EXECUTORS}


def test_the_name() -> None:
    assert _read(GOOD.replace("pair", "Grüße").encode()).program.name == "Grüße"
    assert _read(GOOD.replace('name="pair"', 'name="a" name="b"')).program.name == "a"
    assert [finding.kind for finding in _read(GOOD.replace("pair", "x" * 64)).findings] == ["name"]
    assert _refusing(GOOD.replace("pair", "2D").replace("allgather", "alltoall")) == {"name": ("msccl",)}


def test_threads() -> None:
    assert _refusing(GOOD.replace("<algo ", '<algo nthreads="96" ')) == {"threads": ("msccl",)}
    assert _refusing(GOOD.replace("<algo ", '<algo nthreads="256" ')) == {}


def test_findings_of_one_kind_are_capped() -> None:
    read = _read(GOOD.replace("<step ", "<stap />" * 30 + "<step ").replace('cnt="1"', 'cnt="0x1"' * 1))
    assert len(read.findings) < 20
    many = GOOD.replace(STEP0.format(0), STEP0.format(0).replace('cnt="1"', 'cnt="01"') * 100)
    assert any("more of this kind" in finding.message for finding in _read(many).findings)


def test_damaged_text_never_gives_a_traceback() -> None:
    choose = random.Random(7)
    junk = '<>"=/ \n\t\0abc0-1é'
    for _ in range(600):
        text = list(GOOD)
        for _ in range(choose.randint(1, 4)):
            place = choose.randrange(len(text))
            match choose.randrange(3):
                case 0:
                    text[place] = choose.choice(junk)
                case 1:
                    del text[place : place + choose.randint(1, 60)]
                case _:
                    text[place:place] = choose.choice(junk) * choose.randint(1, 3)
        read = _read("".join(text))
        report = verify_program(read.program, findings=read.findings)
        assert report.accepted or report.violations


@pytest.mark.parametrize(
    "data", [b"", b"\xff\xfe<\0a", bytes(range(256)), b"<" * 100_000, b"<a " * 50_000, b'<a b="' + b"x" * 10**6]
)
def test_bytes_that_are_no_text(data: bytes) -> None:
    assert _read(data).program is None


def test_a_large_file_reads_fast() -> None:
    import time

    steps = "".join(STEP0.format(0).replace('s="0"', f's="{index}"') for index in range(250))
    blocks = "".join(f'<tb id="{number}" send="1" recv="-1" chan="{number}">{steps}</tb>' for number in range(2))
    ranks = "".join(f'<gpu id="{rank}" i_chunks="1" o_chunks="64" s_chunks="0">{blocks}</gpu>' for rank in range(64))
    text = ALGO.replace('ngpus="2"', 'ngpus="64"') + ranks + "</algo>"
    assert len(text) > 3_000_000
    start = time.perf_counter()
    assert _read(text).program is not None
    assert time.perf_counter() - start < 5
