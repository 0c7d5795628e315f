"""Group: the ranks of one job, which live and die together. Knows no process, only numbers, codes and a way to send.

The first rank that ends with another code than 0 decides: the others get TERM, and KILL when the grace is over.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class RankEnd:
    """How a rank ended: its exit code, negative for a signal, None where nobody could see it."""

    rank: int
    code: int | None


class Group:
    """`send(rank, number)` reaches a rank; SIGKILL is meant for its whole session."""

    def __init__(
        self,
        size: int,
        send: Callable[[int, int], None],
        grace_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.first: RankEnd | None = None
        """The first failure in time."""
        self.early: int | None = None
        """A rank that had ended with 0 before that."""
        self.running = set(range(size))
        self._send = send
        self._grace_s = grace_s
        self._clock = clock
        self._deadline: float | None = None

    @property
    def over(self) -> bool:
        """Whether every rank has ended."""
        return not self.running

    @property
    def code(self) -> int | None:
        """0 where no rank has failed, else the code of the first that did."""
        return 0 if self.first is None else self.first.code

    def ended(self, rank: int, code: int | None) -> None:
        """A rank has ended; the first failure is the end of the others."""
        self.running.discard(rank)
        if code == 0 and self.first is None and self.early is None:
            self.early = rank
        if code != 0 and self.first is None:
            self.first = RankEnd(rank, code)
            self.stop()

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Ask all ranks for an end, once; after the grace they are killed."""
        if self._deadline is None:
            self._deadline = self._clock() + self._grace_s
            self.send(number)

    def send(self, number: int) -> None:
        """Any signal to all that run."""
        for rank in sorted(self.running):
            self._send(rank, number)

    def tick(self) -> None:
        """Kill those whose grace is over; to be called now and then."""
        if self._deadline is not None and self._clock() > self._deadline:
            self.send(signal.SIGKILL)
