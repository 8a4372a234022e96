"""Progress on standard error, for people who wait: only on a terminal, and only once the work has taken a while."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_PATIENCE = 1.0
_PERIOD = 0.2
_CLEAR = "\r\033[K"


class Progress:
    """An observer of the pipeline that remembers how far it has come."""

    def __init__(self) -> None:
        self.text = "starting"

    def __call__(self, stage: str, value: object) -> None:
        """`stage` is done."""
        self.text = f"{stage} done, working on the next stage"


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
