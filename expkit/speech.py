"""Speech: what is said to a person while work goes on, which it does also where nobody hears it any more."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator

_FOR_A_WHILE = (errno.ENOSPC, errno.EDQUOT, errno.EAGAIN)


def say(text: str) -> None:
    """A line on stderr."""
    with unheard():
        print(text, file=sys.stderr, flush=True)  # noqa: T201


@contextlib.contextmanager
def unheard() -> Iterator[None]:
    """Around writing to stdout or stderr: a closed terminal, a pipe without a reader, a full disk are no errors."""
    try:
        yield
    except OSError as e:
        if e.errno not in _FOR_A_WHILE:
            for stream in (sys.stdout, sys.stderr):
                _mute_if_gone(stream)


def _mute_if_gone(stream: object) -> None:
    """Into nothing from now on; what is still buffered would else fail again, and once more when we leave."""
    try:
        stream.flush()  # type: ignore[attr-defined]
    except OSError:
        with contextlib.suppress(OSError):
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, stream.fileno())  # type: ignore[attr-defined]
            os.close(nothing)
