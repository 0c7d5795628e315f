"""Pulse: whether somebody who cannot be seen from here still touches a file; what counts is that it changes.

Clocks of hosts differ, and clocks are set: an hour between two times says nothing about an hour. So silence is measured
on a clock of our own that only goes forward, from our first look on. A single look can but compare the file's time with
the time of day, which is good enough to show somebody a state, and never to take a trial away from somebody.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

UNSEEN_LOST_S = 90.0
"""How long the heartbeat of a process that cannot be seen from here may be silent."""
GONE_S = 86400.0
"""How old it must be to be silent at the first look, whoever asks; no clock is set by a day."""


@dataclass(frozen=True)
class _Seen:
    version: tuple[int, int, int]
    since_s: float
    changed: bool
    """It was another one before, so somebody was at work when we looked."""


class Pulse:
    """What one process has seen of the heartbeats of others."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[Path, _Seen] = {}

    def beats(self, path: Path, *, sure: bool) -> bool:
        """Whether somebody is behind a file; nobody is where there is none.

        With `sure` somebody is until the file was watched for UNSEEN_LOST_S, or is GONE_S old; without, at the first
        look, it must be younger than UNSEEN_LOST_S by the time of day.
        """
        try:
            stat = path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        seen = self._look(path, (stat.st_mtime_ns, stat.st_size, stat.st_ino))
        if self._clock() - seen.since_s >= UNSEEN_LOST_S:
            return False
        return seen.changed or time.time() - stat.st_mtime < (GONE_S if sure else UNSEEN_LOST_S)

    def _look(self, path: Path, version: tuple[int, int, int]) -> _Seen:
        before = self._seen.get(path)
        if before is None or before.version != version:
            self._seen[path] = _Seen(version, self._clock(), before is not None)
        return self._seen[path]


PULSE = Pulse()
"""That of this process."""
