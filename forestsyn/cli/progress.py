"""Progress on standard error, for people who wait: only on a terminal, and only once the work has taken a while."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from forestsyn.units import format_bytes, format_count

_PATIENCE = 1.0
_PERIOD = 0.2
#: What follows each stage; a stage that is not listed is the last of its verb.
_NEXT = {
    "topology": "finding the optimum",
    "optimum": "finding the thinnest border",
    "cut": "packing trees",
    "forest": "checking the trees",
    "check forest": "ordering the transfers",
    "schedule": "dealing out threadblocks and steps",
    "program": "writing the text",
    "text": "reading the text back and checking it",
}
_CLEAR = "\r\033[K"


class Progress:
    """An observer of the pipeline that remembers how far it has come."""

    def __init__(self) -> None:
        self.text = "reading the topology"

    def __call__(self, stage: str, value: object) -> None:
        """`stage` is done and gave `value`."""
        self.text = f"{_NEXT.get(stage, f'{stage} done')}{_size(stage, value)}"


def _size(stage: str, value: object) -> str:
    """How much the next stage has to do, where that takes long."""
    if stage == "schedule":
        return f" of {format_count(getattr(value, 'transfer_count', 0), 'transfer')}"
    if stage == "text" and isinstance(value, str):
        return f" ({format_bytes(len(value))})"
    return ""


@contextmanager
def progress() -> Iterator[Progress]:
    """Show the state of the yielded observer, and the seconds so far, until the block ends."""
    observer = Progress()
    if not sys.stderr.isatty():
        yield observer
        return
    done = threading.Event()
    reporter = threading.Thread(target=_report, args=(observer, done), daemon=True)
    reporter.start()
    try:
        yield observer
    finally:
        done.set()
        reporter.join()


def _report(observer: Progress, done: threading.Event) -> None:
    start = time.monotonic()
    if done.wait(_PATIENCE):
        return
    while not done.wait(_PERIOD):
        sys.stderr.write(f"{_CLEAR}forestsyn: {time.monotonic() - start:.0f} s, {observer.text}")
        sys.stderr.flush()
    sys.stderr.write(_CLEAR)
    sys.stderr.flush()
