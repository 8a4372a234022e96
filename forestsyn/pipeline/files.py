"""Output files: written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from forestsyn.errors import InputError


def check_writable(path: Path) -> None:
    """Refuse early, before long work, a path that `write_file` could not write.

    Raises InputError when the directory is missing or read-only, or `path` is a directory, or ``-``, which names no
    file: where it may stand for standard output the command line sees to it.
    """
    if path == Path("-"):
        raise InputError("this cannot go to standard output", where=str(path), hint="name a file")
    folder = path.resolve().parent
    if not folder.is_dir():
        raise InputError(f"the directory {folder} does not exist", where=str(path), hint="create it first")
    if path.is_dir():
        raise InputError("is a directory", where=str(path), hint="name a file inside it")
    if not os.access(path if _is_special(path) else folder, os.W_OK):
        raise InputError("no permission to write there", where=str(path), hint="choose another place with -o")


def write_file(path: Path, text: str | bytes) -> None:
    """Write `text` to `path`: a temporary file beside it, flushed to disk, then renamed over it.

    A symbolic link keeps pointing where it did; a device or pipe is written straight into. Raises InputError with
    the system's reason (disk full, no permission, …); then no part of the file is left behind.
    """
    check_writable(path)
    # A file name in the text need not be Unicode.
    data = text if isinstance(text, bytes) else text.encode("utf-8", "backslashreplace")
    target = path.resolve()
    try:
        if _is_special(target):
            target.write_bytes(data)
        else:
            _replace(target, data)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(
            f"cannot write the file: {reason}",
            where=str(path),
            hint="nothing was written; free space or choose another place",
        ) from error


def _is_special(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()


def _replace(target: Path, data: bytes) -> None:
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "xb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
