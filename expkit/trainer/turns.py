"""Turns: who uses a trainer now. One fit at a time; Ctrl-C lets the step under way finish.

Nobody waits: whoever comes while a fit is under way is refused, for waiting inside a callback would be for ever.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator

from expkit.errors import Interruption, UsageError

_AT_WORK: set[int] = set()
"""Threads of this process that train."""


class Turns:
    """The turns at one trainer."""

    def __init__(self) -> None:
        self._thread: int | None = None  # that trains

    @contextlib.contextmanager
    def fit(self) -> Iterator[None]:
        """One fit; UsageError inside another of this trainer, a warning beside one of another thread."""
        self.refuse_during_fit("fit")
        here = threading.get_ident()
        if _AT_WORK - {here}:
            warnings.warn("two threads train at once and draw from the same generators of torch, so their dropout is "
                          "not what the seed says; use a process for each", stacklevel=5)  # fmt: skip
        inside = here in _AT_WORK  # another trainer may train in a callback of this one
        self._thread = here
        _AT_WORK.add(here)
        try:
            yield
        finally:
            self._thread = None
            if not inside:
                _AT_WORK.discard(here)

    def refuse_during_fit(self, what: str) -> None:
        """UsageError while a fit of this trainer is under way, whoever asks."""
        if self._thread is not None:
            raise UsageError(f"{what} must wait until fit has come back, but it is under way; a callback ends it with "
                             f"state.stop(reason), other threads with trainer.request_stop(reason)")  # fmt: skip

    def refuse_other_threads(self, what: str) -> None:
        """UsageError while a fit of this trainer is under way in another thread."""
        if self._thread not in (None, threading.get_ident()):
            self.refuse_during_fit(what)


@contextlib.contextmanager
def finishing_the_step(ask: Callable[[Interruption], None], is_whole: Callable[[], bool]) -> Iterator[None]:
    """While inside, Ctrl-C comes as KeyboardInterrupt when everything is whole; pressed again, it comes at once.

    `ask` has the Interruption raised after the step; where nothing is half done, as `is_whole` says, it is raised here.
    Only in the main thread, and only where Python's own handler would have been called.
    """
    usual = signal.default_int_handler
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is not usual:
        yield
        return
    pressed: list[Interruption] = []
    process = os.getpid()

    def press(_number: int, _frame: object) -> None:
        if pressed or os.getpid() != process:  # a worker of a loader has inherited this
            raise KeyboardInterrupt
        pressed.append(Interruption("training was stopped: Ctrl-C"))
        ask(pressed[0])
        if is_whole():
            raise pressed[0]
        with contextlib.suppress(RuntimeError, OSError, ValueError):  # it may have come while that was being written to
            sys.stderr.write("Ctrl-C: fit ends after this step; press it again to end at once\n")

    signal.signal(signal.SIGINT, press)
    try:
        yield
    except Interruption as e:
        if not pressed:
            raise
        raise KeyboardInterrupt(str(e)) from e
    finally:
        signal.signal(signal.SIGINT, usual)
    if pressed:
        raise KeyboardInterrupt
