"""Guard: two processes instead of one, so that `kill -9` of either leaves nothing running.

The one that was called watches, its child works. Both adopt the orphans of what they started: when the child ends, in
whatever way, the watcher kills everything that is left below it; when the watcher ends, the child reads the end of its
lifeline and does the same. Costs a fork and some 10 MB, mostly shared; call it before anything heavy is imported.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterable

from expkit.launch import process


def guarded(work: Callable[[int], int], forwarded: Iterable[int], *, on_fork: Callable[[], None] | None = None) -> int:
    """Run `work(lifeline)` in a child and give its exit code, negative for a signal; nothing below it is left then.

    The lifeline is a descriptor that becomes readable when this process has ended. Signals in `forwarded` reach the
    child. `on_fork` is called in the child before anything else.
    """
    process.adopt_orphans()
    lifeline, ours = os.pipe()
    numbers = tuple(forwarded)
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)  # none is lost between fork and handler
    child = os.fork()
    if child == 0:
        os.close(ours)
        _work(work, lifeline, numbers, on_fork)
    os.close(lifeline)
    _hear(numbers, lambda number: _pass_on(child, number))
    _, status = os.waitpid(child, 0)
    process.end_children()
    os.close(ours)
    return os.waitstatus_to_exitcode(status)


def _work(
    work: Callable[[int], int], lifeline: int, numbers: tuple[int, ...], on_fork: Callable[[], None] | None
) -> None:
    """The child's whole life; never returns."""
    code = 70
    try:
        if on_fork is not None:
            on_fork()
        process.adopt_orphans()
        _hear(numbers, lambda number: os._exit(128 + number))  # until `work` wants it otherwise
        code = work(lifeline)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        process.end_children()
        os._exit(code)


def _hear(numbers: tuple[int, ...], handle: Callable[[int], None]) -> None:
    for number in numbers:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup wants it
            signal.signal(number, lambda n, _: handle(n))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)


def _pass_on(child: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, number)
