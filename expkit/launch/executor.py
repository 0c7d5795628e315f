"""Executor: the contract of ways to start a trial. An attempt's folder is all that one needs."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from expkit import plugins
from expkit.launch.failure import DISK_FULL
from expkit.plugins import Plugin


@dataclass(frozen=True)
class Outcome:
    """How the process of an attempt ended; what the trial itself thought of it stands in its status."""

    attempt: Path
    code: int | None
    """Exit code, negative for a signal; None where it was lost together with its server."""
    out_of_memory: bool = False
    """The kernel killed something for memory while it ran."""
    rank: int = 0
    """The first rank that failed, where one did."""
    early: int | None = None
    """A rank that had ended with 0 before, and without which the others could not go on."""

    def cause(self) -> str:
        """One of the store's causes, for a trial that could not say it itself."""
        if self.out_of_memory:
            return "oom"
        if self.code == DISK_FULL:
            return "disk"
        return "signal" if self.code is not None and self.code < 0 else "ended-early"

    def sentence(self) -> str:
        """What happened, for a trial that could not say it itself."""
        if self.out_of_memory:
            return "killed by the kernel: out of memory"
        if self.code is None:
            return "the process was lost together with its fork server"
        if self.code < 0:
            return f"killed by signal {-self.code} ({signal.Signals(-self.code).name})"
        return f"the process ended with exit code {self.code} and left no result"


class Executor(Plugin):
    """Starts attempts, at most `slots` at a time, each in a session of its own, and ends all of them on `close`."""

    @property
    def slots(self) -> int:
        """How many attempts may run at once."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Begin whatever makes the first submission fast; returns at once."""

    def submit(self, attempt: Path) -> None:
        """Start the trial of this attempt's folder; rank r writes rank<r>.log there."""
        raise NotImplementedError

    def poll(self, timeout_s: float) -> list[Outcome]:
        """The attempts that ended, as soon as one does; empty after the time-out."""
        raise NotImplementedError

    def running(self) -> list[Path]:
        """Attempts submitted and not reported by `poll` yet."""
        raise NotImplementedError

    def cancel(self, attempt: Path) -> None:
        """Ask for an end after the current step (TERM); after the grace everything of it is killed."""
        raise NotImplementedError

    def kill(self, attempt: Path) -> None:
        """End everything of this attempt at once."""
        raise NotImplementedError

    def close(self) -> None:
        """End everything that still runs, at once."""
        raise NotImplementedError


def open_executor(name: str, **settings: Any) -> Executor:
    """An executor by name with its settings."""
    executor = plugins.build("executors", name, settings)
    assert isinstance(executor, Executor)
    return executor
