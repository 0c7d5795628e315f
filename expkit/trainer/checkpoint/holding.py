"""Holding: a folder that a living process writes to, so that no other one sweeps it away or writes there too.

The lock is the folder's own (flock), so a killed process leaves none behind. Where a file system knows no such locks,
nobody is kept out, and nothing is taken for abandoned.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
from pathlib import Path

_held: set[int] = set()


def hold(folder: Path) -> int | None:
    """A descriptor to `release`; None where somebody who is alive holds it already."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError:
        pass  # it cannot be locked, and may be written to
    _let_children_forget()
    _held.add(descriptor)
    return descriptor


def release(descriptor: int) -> None:
    """Others may write there now."""
    _held.discard(descriptor)
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # for a child as well that was forked this very moment
    os.close(descriptor)


def is_held(folder: Path) -> bool:
    """Whether somebody who is alive writes there, or nobody can know."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


@functools.cache
def _let_children_forget() -> None:
    """A loader's worker lives on for a moment where we are killed, and holds nothing for us then."""
    os.register_at_fork(after_in_child=_forget)


def _forget() -> None:
    while _held:
        with contextlib.suppress(OSError):
            os.close(_held.pop())
