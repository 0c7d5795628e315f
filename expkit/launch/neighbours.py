"""Neighbours: whether another trial ran on this host at any moment of this one. Exact, without a driver's help.

Each trial keeps a locked file in the host's lock folder while it measures, and marks the files of all others that
are there when it comes: so the later of two that overlap marks both.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self


class Neighbours:
    """`with Neighbours(folder) as n: train(); n.seen()`; the folder is the host's, not the store's."""

    def __init__(self, folder: Path, key: str | None = None) -> None:
        """`key` is ours alone among all trials of the host; by default the process id."""
        self._folder = folder
        self._path = folder / f"expkit-trial-{key or os.getpid()}"
        self._fd = -1

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        aside = self._folder / f".{self._path.name}"
        self._fd = os.open(aside, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o666)
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        aside.replace(self._path)  # never there unlocked, or a newcomer would take us for dead
        for other in self._folder.glob("expkit-trial-*"):
            if other != self._path and _mark_if_alive(other):
                os.write(self._fd, b"x")
        return self

    def seen(self) -> bool:
        """Whether any other trial has overlapped with us so far."""
        return os.fstat(self._fd).st_size > 0

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, trace: TracebackType | None) -> None:
        with contextlib.suppress(OSError):
            self._path.unlink()
        os.close(self._fd)


def _mark_if_alive(other: Path) -> bool:
    """Mark the file of a living trial; one whose owner was killed is removed."""
    try:
        fd = os.open(other, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.write(fd, b"x")
        return True
    else:
        with contextlib.suppress(OSError):
            other.unlink()  # nobody holds it
        return False
    finally:
        os.close(fd)
