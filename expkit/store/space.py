"""Space: a write that finds the disk full waits until there is room, says so, and loses nothing meanwhile.

What was stored stays as it is: every write is made beside and renamed, and one that did not fit is removed. Nobody
waits for ever: after EXPKIT_DISK_WAIT seconds (an hour where it is not set; 0 does not wait) the error goes its way.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from expkit.speech import say

T = TypeVar("T")
FULL = (errno.ENOSPC, errno.EDQUOT)
WAIT_S = 3600.0
POLL_S = 0.5


_stops: list[Callable[[], bool]] = []


@contextmanager
def unless(stop: Callable[[], bool]) -> Iterator[None]:
    """No write of this process waits while `stop` is true: somebody wants it to end."""
    _stops.append(stop)
    try:
        yield
    finally:
        _stops.remove(stop)


def when_there_is_space(write: Callable[[], T], folder: Path, *, waited: Callable[[float], None] = lambda _: None) -> T:
    """What `write` gives, called again and again while the disk of `folder` is full; it must leave nothing half done.

    `waited` is told the seconds when the wait is over and was worth it.
    """
    started: float | None = None
    while True:
        try:
            result = write()
        except OSError as e:
            now = time.monotonic()
            if started is None and e.errno in FULL:
                started = now
                say(f"the disk of {folder} is full: waiting for space, up to {_wait_s() / 60:.0f} minutes")
            if started is None or e.errno not in FULL or now - started >= _wait_s() or any(stop() for stop in _stops):
                raise
            time.sleep(POLL_S)
            continue
        if started is not None:
            say(f"there is space again on the disk of {folder}: going on after {time.monotonic() - started:.0f} s")
            waited(time.monotonic() - started)
        return result


def _wait_s() -> float:
    try:
        return float(os.environ.get("EXPKIT_DISK_WAIT") or WAIT_S)
    except ValueError:
        return WAIT_S
