"""YAML, expressions, patterns and quantities: the small readers below the topology file."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from forestsyn.errors import InputError
from forestsyn.frontend.document import MAXIMUM_BYTES, parse_document, read_text
from forestsyn.frontend.expression import evaluate, parse_range
from forestsyn.frontend.pattern import Namespace, expand_names
from forestsyn.frontend.quantity import parse_bandwidth, parse_latency

WRONG_EXPRESSIONS = [
    "",
    "1+",
    "a",
    "1/0",
    "1%0",
    "(1",
    "1)",
    "2.5",
    "010",
    "0x10",
    "1_000",
    "9" * 30,
    "1" * 200,
    "-",
    "--1",
]
WRONG_BANDWIDTHS = [
    "",
    "x",
    "1,5",
    "0x10",
    "1..5",
    "1/0",
    "1e400",
    "nan",
    "-.inf",
    "NaN GB/s",
    "25 gb/s",
    "25 GB",
    "1/3/5",
    "25GB/s!",
    "0",
    "0.0",
    "-1",
    -1,
    0,
    100_001,
    "100001 Gb/s",
]


def test_scalars_stay_as_written() -> None:
    text = "a: 12.3456789\nb: 010\nc: on\nd: 1:30\ne: 0x10\nf: 7\ng: true\nh: null\ni: '7'\nj: .nan\nk: 2001-01-01\n"
    assert parse_document(text, source="f").value == {
        "a": "12.3456789",
        "b": "010",
        "c": "on",
        "d": "1:30",
        "e": "0x10",
        "f": 7,
        "g": True,
        "h": None,
        "i": "7",
        "j": ".nan",
        "k": "2001-01-01",
    }


def test_lines_are_remembered() -> None:
    document = parse_document("a: 1\nb:\n  - x\n  - {y: 1,\n     z: 2}\n", source="f.yaml")
    assert document.where("a") == "f.yaml:1"
    assert document.where("b", 1, "z") == "f.yaml:5"
    assert document.where("b", 7) == "f.yaml:2"
    assert document.where("missing") == "f.yaml:1"


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "bom.yaml"
    path.write_bytes(b"\xef\xbb\xbfforestsyn: 1\n")
    assert read_text(path) == "forestsyn: 1\n"


@pytest.mark.parametrize("kind", ["missing", "folder", "binary", "large"])
def test_files_that_cannot_be_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / kind
    if kind == "folder":
        path.mkdir()
    elif kind == "binary":
        path.write_bytes(bytes(range(256)))
    elif kind == "large":
        path.write_bytes(b"#" * (MAXIMUM_BYTES + 1))
    with pytest.raises(InputError, match=kind):
        read_text(path)


@pytest.mark.parametrize(
    "text", ["a: \ud800", "[" * 1000, "a: *x", "? [a]\n: b", "%YAML 9\n---\na", "\x07", "a: b: c"]
)
def test_bad_yaml(text: str) -> None:
    with pytest.raises(InputError):
        parse_document(text, source="f")


@pytest.mark.parametrize(
    ("text", "value"), [("7", 7), ("2*N-1", 7), ("N/3", 1), ("(N+1)%3", 2), ("1+2*3", 7), ("0-5", -5), (12, 12)]
)
def test_expressions(text: int | str, value: int) -> None:
    assert evaluate(text, {"N": 4}) == value


@pytest.mark.parametrize("text", WRONG_EXPRESSIONS)
def test_wrong_expressions(text: str) -> None:
    with pytest.raises(InputError):
        evaluate(text, {"N": 4})


def test_ranges() -> None:
    assert parse_range("0..N-1", {"N": 4}) == range(4)
    assert parse_range("3", {}) == range(3, 4)
    with pytest.raises(InputError, match="empty"):
        parse_range("3..2", {})


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("gpu0", ["gpu0"]),
        ("gpu{0..2}", ["gpu0", "gpu1", "gpu2"]),
        ("gpu[0-1,10-11]", ["gpu0", "gpu1", "gpu10", "gpu11"]),
        ("n{0,0,r}", ["n0", "n0", "n5"]),
        ("ib{r%2}", ["ib1"]),
        ("n{0..1}/gpu{0..1}", ["n0/gpu0", "n0/gpu1", "n1/gpu0", "n1/gpu1"]),
        ("host[08-10]", ["host08", "host09", "host10"]),
        ("gpu*", ["gpu*"]),
    ],
)
def test_patterns(pattern: str, names: list[str]) -> None:
    assert expand_names(pattern, {"r": 5}) == names


@pytest.mark.parametrize("pattern", ["gpu{", "gpu}", "gpu[0", "gpu{}", "gpu{a}", "{0..99999}{0..9}", "x" * 300])
def test_wrong_patterns(pattern: str) -> None:
    with pytest.raises(InputError):
        expand_names(pattern, {})


def test_wildcards_stay_within_one_part_of_a_name() -> None:
    names = ["n0/gpu0", "n0/nic0", "n1/gpu0", "n10/gpu0", "spine0"]
    namespace = Namespace(names)

    def matches(pattern: str) -> list[str]:
        return [names[position] for position in namespace.select(pattern, {})]

    assert matches("n*/gpu*") == ["n0/gpu0", "n1/gpu0", "n10/gpu0"]
    assert matches("n?/gpu0") == ["n0/gpu0", "n1/gpu0"]
    assert matches("n0/*") == ["n0/gpu0", "n0/nic0"]
    assert matches("*") == ["spine0"]
    assert namespace.devices_of("n0") == (0, 1)
    assert namespace.select("tpu*", {}, optional=True) == []


@pytest.mark.parametrize(
    ("value", "unit", "bandwidth"),
    [
        (300, "GB/s", Fraction(300)),
        ("12.3456789", "GB/s", Fraction(123456789, 10**7)),
        ("3/7", "GB/s", Fraction(3, 7)),
        ("3/7 Gb/s", "GB/s", Fraction(3, 56)),
        ("400Gb/s", "GB/s", Fraction(50)),
        ("400 Gbps", "GB/s", Fraction(50)),
        ("25 GB/s", "Gb/s", Fraction(25)),
        (200, "Gb/s", Fraction(25)),
        ("1.5e1", "GB/s", Fraction(15)),
        ("1 GiB/s", "GB/s", Fraction(2**30, 10**9)),
        ("200000 Mb/s", "GB/s", Fraction(25)),
        (100_000, "GB/s", Fraction(100_000)),
    ],
)
def test_bandwidths_are_exact(value: int | str, unit: str, bandwidth: Fraction) -> None:
    assert parse_bandwidth(value, unit) == bandwidth


@pytest.mark.parametrize("value", WRONG_BANDWIDTHS)
def test_wrong_bandwidths(value: int | str) -> None:
    with pytest.raises(InputError):
        parse_bandwidth(value, "GB/s")


def test_latencies() -> None:
    assert parse_latency("500 ns") == Fraction(1, 2)
    assert parse_latency("0.7") == Fraction(7, 10)
    assert parse_latency("0.0005ms") == Fraction(1, 2)
    for wrong in ("-1", "1 s", "nan", "2000000"):
        with pytest.raises(InputError):
            parse_latency(wrong)
