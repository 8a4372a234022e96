"""The verdicts on real public files must be those of `data/programs/LIST.tsv`, per runtime and by meaning.

`python -m tests.golden.test_public_programs` prints them as a table.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from forestsyn.frontend.msccl_xml import parse_msccl_xml
from forestsyn.verify.program import verify_program
from forestsyn.verify.program_report import Report
from tests.conftest import SHARED

PROGRAMS = SHARED / "data" / "programs"
RUNTIMES = ("msccl", "executor", "rccl")


def _rows() -> list[dict[str, str]]:
    if not PROGRAMS.is_dir():
        return []
    with (PROGRAMS / "LIST.tsv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [row for row in rows if row["file"].endswith(".xml") and (PROGRAMS / row["file"]).is_file()]


def _verify(name: str, **options: object) -> Report:
    read = parse_msccl_xml(Path(PROGRAMS / name).read_bytes(), source=name)
    return verify_program(read.program, findings=read.findings, source=name, **options)


def _verdict(report: Report, runtime: str) -> str:
    """The words of the list: FAIL is refused by the loader, LOADS-BUT loads and does not run."""
    if runtime not in report.loads:
        return "FAIL"
    return "OK" if runtime in report.accepts else "LOADS-BUT"


_ROWS = _rows()
_GOOD = [row for row in _ROWS if row["label"] == "good"]
_CONDITIONAL = [row for row in _ROWS if row["label"].startswith(("SIZE-BAD", "DEPTH-BAD"))]
_BAD = [row for row in _ROWS if row not in _GOOD and row not in _CONDITIONAL]


def _by_name(row: dict[str, str]) -> str:
    return row["file"]


pytestmark = pytest.mark.shared


@pytest.mark.parametrize("row", _GOOD, ids=_by_name)
def test_good_files_are_accepted_where_their_loaders_take_them(row: dict[str, str]) -> None:
    report = _verify(row["file"])
    assert report.accepted
    assert [_verdict(report, runtime) for runtime in RUNTIMES] == [row[runtime] for runtime in RUNTIMES]


@pytest.mark.parametrize("row", _BAD, ids=_by_name)
def test_bad_files_are_rejected(row: dict[str, str]) -> None:
    report = _verify(row["file"])
    assert not report.accepted
    loaded = [_verdict(report, runtime) != "FAIL" for runtime in RUNTIMES]
    assert loaded == [row[runtime] not in ("FAIL", "-") for runtime in RUNTIMES]


@pytest.mark.parametrize("row", _CONDITIONAL, ids=_by_name)
def test_files_bad_at_some_size_or_depth_are_accepted_with_a_warning(row: dict[str, str]) -> None:
    report = _verify(row["file"])
    assert report.accepted
    warnings = [warning for warning in report.warnings if warning.fifo_depth or warning.chunk_bytes]
    assert warnings
    assert not _verify(row["file"], strict=True).accepted


@pytest.mark.parametrize(
    ("file", "kind", "words"),
    [
        ("teccl/*strict.xml", "deadlock", "rank 0 threadblock 0 step 0 (receives from rank 1)"),
        ("ns3-msccl/allreduce_ring_2_1.xml", "wrong-result", "expected chunk 0 summed over all ranks"),
        ("ns3-msccl-data/all2all.xml", "chunk-count", "14 chunks do not divide evenly among 8 ranks"),
        ("msccl-tools/alltonext_forward_2_1.xml", "race", "i[0]"),
        ("msccl-tools/allreduce_a100_pcie_hier_4_1.xml", "counted-twice", "a second time"),
        ("msccl_tools_lyd/allreduce_binary_tree_p_*.xml", "no-algorithm", "an empty file"),
    ],
)
def test_the_fault_is_named(file: str, kind: str, words: str) -> None:
    name = next(path for path in PROGRAMS.glob(file)).relative_to(PROGRAMS)
    report = _verify(str(name), target="msccl")
    assert any(violation.kind == kind and words in violation.message for violation in report.violations)


def test_the_size_from_which_a_file_hangs_is_named() -> None:
    report = _verify("msccl-tools/allgather_recursive_doubling_8_1.xml", target="msccl")
    (warning,) = report.warnings
    assert (warning.kind, warning.fifo_depth, warning.chunk_bytes) == ("deadlock-size", 2, 2**20)
    assert "chunks larger than 1 MiB" in warning.message


def print_table() -> None:
    """One line a file: the verdict of each runtime, the label of the list, warnings."""
    for row in _ROWS:
        report = _verify(row["file"])
        verdicts = " ".join(f"{_verdict(report, runtime):9}" for runtime in RUNTIMES)
        warnings = ", ".join(sorted({warning.kind for warning in report.warnings}))
        print(f"{verdicts} {row['file'][-60:]:60} {row['label'][:50]} {warnings}")


if __name__ == "__main__":
    print_table()
