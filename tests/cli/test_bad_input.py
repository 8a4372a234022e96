"""Hostile and broken topology files: a clear message, the right code, never a traceback, and soon."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run

HEAD = "forestsyn: 1\ngpus: 2\n"
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + level)}: &{chr(98 + level)} [{', '.join(['*' + chr(97 + level)] * 9)}]\n" for level in range(12)
)


def _link(bandwidth: str) -> str:
    return f"{HEAD}links:\n  - {{from: gpu0, to: gpu1, bw: {bandwidth}}}\n"


FILES = {
    "empty": "",
    "bomb": BOMB,
    "not-yaml": "{{{{",
    "binary": "\x00\x01\x02",
    "no-version": "gpus: 2\n",
    "other-version": "forestsyn: 99\n",
    "unknown-key": HEAD + "linkz: []\n",
    "nan": _link(".nan"),
    "infinite": _link(".inf"),
    "negative": _link("-5"),
    "zero": _link("0"),
    "too-fast": _link("200Tb/s"),
    "no-number": _link("fast"),
    "huge-exponent": _link("1e999999999"),
    "bad-glob": HEAD + "links:\n  - {from: 'tpu*', to: gpu1, bw: 5}\n",
    "absurd-count": "forestsyn: 1\ngpus: 1000000000\nlinks: []\n",
    "negative-count": "forestsyn: 1\ngpus: -3\nlinks: []\n",
    "one-rank": "forestsyn: 1\ngpus: 1\nlinks: []\n",
    "deep": "forestsyn: 1\nx: " + "[" * 100_000 + "\n",
    "duplicate-key": HEAD + "gpus: 3\nlinks: []\n",
}


@pytest.mark.parametrize("verb", ["bound", "compile"])
@pytest.mark.parametrize("name", FILES)
def test_broken_files(run: Run, tmp_path: Path, name: str, verb: str) -> None:
    path = tmp_path / f"{name}.yaml"
    path.write_text(FILES[name])
    outcome = run(verb, path)
    assert outcome.code == 2, outcome.err
    assert outcome.out == ""
    assert outcome.err.startswith("forestsyn: error: ")
    assert path.name in outcome.err
    assert len(outcome.err) < 2000


@pytest.mark.parametrize(
    "spec",
    [
        "dgx-z9",
        "dgx-a100:0",
        "dgx-a100:1000000000",
        "dgx-a100:x",
        "dgx-a100:-1",
        "torus:4x",
        "ring:1",
        "",
        ":2",
        "a/b.yaml",
    ],
)
def test_wrong_names(run: Run, spec: str) -> None:
    outcome = run("bound", spec)
    assert outcome.code == 2, outcome.err
    assert outcome.err.startswith("forestsyn: error: ")


def test_a_file_that_cannot_be_read(run: Run, tmp_path: Path) -> None:
    assert run("bound", tmp_path / "missing.yaml").code == 2
    assert run("bound", tmp_path).code == 2
    (tmp_path / "latin.yaml").write_bytes(b"title: gr\xf6\xdfe\n")
    assert run("bound", tmp_path / "latin.yaml").code == 2


def test_nothing_is_written_after_bad_input(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(_link("0"))
    assert run("compile", tmp_path / "bad.yaml", "-o", tmp_path / "x.xml").code == 2
    assert not (tmp_path / "x.xml").exists()
