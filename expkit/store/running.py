"""A query at work: what it may take, and how it is stopped. It runs in a thread, so that any signal ends it at once.

DuckDB by itself heeds Ctrl-C alone, and that not as a KeyboardInterrupt; under a handler of ours it would go on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from expkit.errors import EnvironmentFault

T = TypeVar("T")
AGAIN_S = 0.05


@dataclass(frozen=True)
class Limits:
    """What a query may take; None for as much as there is."""

    seconds: float | None = None
    memory: str | None = None
    """As DuckDB reads it, `4GB`; what does not fit goes to the system's folder for temporary files. None: 80 %."""
    threads: int | None = None


UNLIMITED = Limits()


class _Work(threading.Thread):
    def __init__(self, work: Callable[[], object]) -> None:
        super().__init__(name="expkit-query", daemon=True)
        self.result: object = None
        self.error: BaseException | None = None
        self.done = threading.Event()  # a join that a signal interrupts takes the thread for ended, up to Python 3.12
        self._work = work

    def run(self) -> None:
        try:
            self.result = self._work()
        except BaseException as e:
            self.error = e
        finally:
            self.done.set()


def run(work: Callable[[], T], interrupt: Callable[[], None], seconds: float | None = None) -> T:
    """The result of `work`, or its error. A signal, and the end of its time, call `interrupt` until it has ended.

    EnvironmentFault where the time was up. Costs 0.1 ms.
    """
    thread = _Work(work)
    thread.start()
    try:
        thread.done.wait(seconds)
    finally:
        late = not thread.done.is_set()
        while not thread.done.is_set():  # once is not enough: it may have come before the query began
            interrupt()
            thread.done.wait(AGAIN_S)
    if late and thread.error is not None:
        raise EnvironmentFault(f"the query was stopped after {seconds:g} s, its time limit") from None
    if thread.error is not None:
        raise thread.error
    return thread.result  # type: ignore[return-value]
