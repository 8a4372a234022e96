"""Every kind of error has its exit code; unexpected ones ask for a report."""

from __future__ import annotations

import pytest

import forestsyn.frontend
from forestsyn.cli.main import main
from forestsyn.errors import (
    InfeasibleError,
    InputError,
    InternalError,
    UnsupportedError,
    VerificationError,
)
from tests.cli.conftest import Run


def _fail_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(forestsyn.frontend, "rate_table", fail)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError("wrong", where="x.yaml:3", hint="mend it"), 2),
        (InfeasibleError("no way", cut=("a", "b")), 3),
        (UnsupportedError("too many", target="rccl", limit="steps_max", value=99), 4),
        (VerificationError("bad", violations=("first", "second")), 5),
        (InternalError("broken"), 70),
        (ZeroDivisionError("division by zero"), 70),
        (MemoryError(), 70),
        (FileNotFoundError(2, "No such file or directory", "gone.yaml"), 2),
        (KeyboardInterrupt(), 130),
    ],
)
def test_exit_codes(run: Run, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int) -> None:
    _fail_with(monkeypatch, error)
    outcome = run("rates")
    assert outcome.code == code
    assert outcome.out == ""
    assert outcome.err.lstrip().startswith("forestsyn: ")


def test_json_errors_carry_their_data(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    _fail_with(monkeypatch, UnsupportedError("too many", target="rccl", limit="steps_max", value=99, rank=3))
    error = run("rates", "--json").data["error"]
    assert error == {
        "code": 4,
        "kind": "UnsupportedError",
        "message": "too many",
        "where": None,
        "hint": None,
        "target": "rccl",
        "limit": "steps_max",
        "value": 99,
        "rank": 3,
    }


def test_a_bug_asks_for_a_report(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    _fail_with(monkeypatch, ZeroDivisionError("division by zero"))
    outcome = run("rates")
    assert "unexpected ZeroDivisionError: division by zero" in outcome.err
    assert "please report" in outcome.err


def test_debugging_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    _fail_with(monkeypatch, ZeroDivisionError())
    monkeypatch.setenv("FORESTSYN_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main(["rates"])
