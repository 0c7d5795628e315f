"""What a user who is not root may do, tried by whoever runs the tests."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from pathlib import Path

_VERSION = 0x20080522
_DAC = 1 << 1 | 1 << 2
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: root reads and writes whatever the mode says, by these two."""


@contextlib.contextmanager
def forbidden(path: Path, mode: int = 0o000) -> Iterator[None]:
    """A file or folder has this mode, and it holds for root as well, in this thread."""
    before, libc = path.stat().st_mode, ctypes.CDLL(None, use_errno=True)
    header, held = (ctypes.c_uint32 * 2)(_VERSION, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, held) == 0
    path.chmod(mode)
    try:
        assert libc.capset(header, (ctypes.c_uint32 * 6)(held[0] & ~_DAC, *held[1:])) == 0
        yield
    finally:
        libc.capset(header, held)
        path.chmod(before)
