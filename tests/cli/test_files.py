"""Output files are whole or absent."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from forestsyn.errors import InputError
from forestsyn.pipeline.files import check_writable, write_file


def test_a_file_is_written_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "x.xml"
    write_file(path, "one\n")
    write_file(path, "zwölf\n")
    assert path.read_bytes() == "zwölf\n".encode()
    assert list(tmp_path.iterdir()) == [path]


def test_a_symbolic_link_stays_a_link(tmp_path: Path) -> None:
    link = tmp_path / "link.xml"
    link.symlink_to(tmp_path / "target.xml")
    write_file(link, "text")
    assert link.is_symlink()
    assert (tmp_path / "target.xml").read_text() == "text"


def test_the_mode_follows_the_umask(tmp_path: Path) -> None:
    umask = os.umask(0o022)
    try:
        write_file(tmp_path / "x", "text")
    finally:
        os.umask(umask)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("failing", ["fsync", "replace"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_a_failure_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str, code: int
) -> None:
    path = tmp_path / "x.xml"
    path.write_text("old")

    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, failing, fail)
    with pytest.raises(InputError, match=os.strerror(code)) as caught:
        write_file(path, "new")
    assert caught.value.where == str(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupt_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_file(tmp_path / "x", "text")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_device_stays_a_device() -> None:
    with pytest.raises(InputError, match="No space left"):
        write_file(Path("/dev/full"), "text")
    assert Path("/dev/full").is_char_device()


def test_a_null_device_stays_a_device() -> None:
    write_file(Path(os.devnull), "text")
    assert Path(os.devnull).is_char_device()


def test_places_that_cannot_be_written_are_refused_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="does not exist"):
        check_writable(tmp_path / "missing" / "x")
    with pytest.raises(InputError, match="is a directory"):
        check_writable(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="does not exist"):
        check_writable(tmp_path / "file" / "x")
    with pytest.raises(InputError, match="cannot go to standard output"):
        check_writable(Path("-"))
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InputError, match="no permission"):
        check_writable(tmp_path / "x")
