"""Local executor: trials on this machine, each a fresh process out of one fork server."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from expkit.launch.executor import Executor, Outcome


@dataclass
class Local(Executor):
    """Runs `jobs` trials at a time on this machine."""

    jobs: Annotated[int, Field(ge=1)] = 1
    """Trials at a time."""
    threads: Annotated[int, Field(ge=1)] = 1
    """CPU threads of each; jobs x threads should not be more than there are cores."""
    isolation: Literal["fork", "spawn"] = "fork"
    """fork starts a trial in 20 ms from a server that has imported torch; spawn runs a fresh interpreter, in 3 s."""
    grace_s: Annotated[float, Field(ge=0)] = 30.0
    """Seconds between TERM and KILL."""
    _workers: Any = field(init=False, default=None, repr=False)
    _running: Any = field(init=False, default_factory=dict, repr=False)
    _deadlines: Any = field(init=False, default_factory=dict, repr=False)

    @property
    def slots(self) -> int:
        """How many attempts may run at once."""
        return self.jobs

    def prepare(self) -> None:
        """Start the server, which imports torch while the driver goes on."""
        from expkit.launch.workers import Workers

        if self._workers is None:
            self._workers = Workers(self.isolation, self.threads)
        self._workers.warm()

    def submit(self, attempt: Path) -> None:
        """Start the trial of this attempt's folder."""
        self.prepare()
        self._running[self._workers.start(attempt)] = (attempt, _oom_kills())

    def poll(self, timeout_s: float) -> list[Outcome]:
        """The attempts that ended; those whose grace is over are killed on the way."""
        self._kill_overdue()
        if not self._running:
            time.sleep(timeout_s)
            return []
        outcomes = []
        for ended in self._workers.wait(timeout_s):
            attempt, before = self._running.pop(ended.key)
            self._deadlines.pop(ended.key, None)
            killed_for_memory = ended.code == -signal.SIGKILL and _oom_kills() > before
            outcomes.append(Outcome(attempt, ended.code, killed_for_memory))
        return outcomes

    def running(self) -> list[Path]:
        """Attempts submitted and not reported by `poll` yet."""
        return [attempt for attempt, _ in self._running.values()]

    def cancel(self, attempt: Path) -> None:
        """TERM now, KILL to its whole session after the grace."""
        key = self._key(attempt)
        if key is not None and key not in self._deadlines:
            self._workers.signal(key, signal.SIGTERM)
            self._deadlines[key] = time.monotonic() + self.grace_s

    def kill(self, attempt: Path) -> None:
        """KILL to the whole session of this attempt."""
        if (key := self._key(attempt)) is not None:
            self._workers.signal(key, signal.SIGKILL)

    def close(self) -> None:
        """End everything that still runs, and the server."""
        if self._workers is not None:
            self._workers.close()
            self._workers = None
        self._running.clear()
        self._deadlines.clear()

    def _key(self, attempt: Path) -> int | None:
        return next((key for key, (path, _) in self._running.items() if path == attempt), None)

    def _kill_overdue(self) -> None:
        for key, deadline in list(self._deadlines.items()):
            if time.monotonic() > deadline:
                self._workers.signal(key, signal.SIGKILL)


def _oom_kills() -> int:
    """How many processes the kernel has killed for memory, here and in our control group; 0 where it does not say."""
    total = 0
    for path in ("/proc/vmstat", "/sys/fs/cgroup/memory.events"):
        try:
            lines = Path(path).read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
    return total
