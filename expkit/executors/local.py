"""Local executor: trials on this machine, each a fresh process out of one fork server."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from expkit.launch.executor import Executor, Outcome
from expkit.launch.group import Group
from expkit.launch.port import Port
from expkit.launch.world import World
from expkit.store.layout import Layout


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
    _trials: Any = field(init=False, default_factory=dict, repr=False)
    _ranks: Any = field(init=False, default_factory=dict, repr=False)

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
        """Start the ranks of this attempt's trial."""
        self.prepare()
        trial = _Trial(attempt, _nproc(attempt), self._signal, self.grace_s)
        self._trials[attempt] = trial
        for rank in range(trial.world.nproc):
            variables = trial.world.env(rank) if trial.world.nproc > 1 else None
            key = self._workers.start(attempt, rank, variables)
            trial.keys[rank] = key
            self._ranks[key] = (trial, rank)

    def poll(self, timeout_s: float) -> list[Outcome]:
        """The attempts that ended; those whose grace is over are killed on the way."""
        if not self._trials:
            time.sleep(timeout_s)
            return []
        for ended in self._workers.wait(timeout_s):
            trial, rank = self._ranks.pop(ended.key)
            trial.group.ended(rank, ended.code)
        for trial in self._trials.values():
            trial.group.tick()
        over = [trial for trial in self._trials.values() if trial.group.over]
        for trial in over:
            del self._trials[trial.attempt]
            trial.close()
        return [trial.outcome() for trial in over]

    def running(self) -> list[Path]:
        """Attempts submitted and not reported by `poll` yet."""
        return list(self._trials)

    def cancel(self, attempt: Path) -> None:
        """TERM to each rank now, KILL to their sessions after the grace."""
        if attempt in self._trials:
            self._trials[attempt].group.stop()

    def kill(self, attempt: Path) -> None:
        """KILL to all sessions of this attempt."""
        if attempt in self._trials:
            self._trials[attempt].group.send(signal.SIGKILL)

    def close(self) -> None:
        """End everything that still runs, and the server."""
        if self._workers is not None:
            self._workers.close()
            self._workers = None
        for trial in self._trials.values():
            trial.close()
        self._trials.clear()
        self._ranks.clear()

    def _signal(self, key: int, number: int) -> None:
        self._workers.signal(key, number)


class _Trial:
    """The ranks of one attempt, and the port that is kept for them."""

    def __init__(self, attempt: Path, nproc: int, signal_key: Callable[[int, int], None], grace_s: float) -> None:
        self.attempt = attempt
        self.keys: dict[int, int] = {}
        self.group = Group(nproc, lambda rank, number: signal_key(self.keys[rank], number), grace_s)
        self._port = Port() if nproc > 1 else None
        self.world = World(nproc, nproc, 0, 0, "127.0.0.1", self._port.number if self._port else 0)
        self._oom_kills = _oom_kills()

    def outcome(self) -> Outcome:
        """How it ended, from its first failing rank."""
        rank = self.group.first.rank if self.group.first else 0
        code = self.group.code
        out_of_memory = code == -signal.SIGKILL and _oom_kills() > self._oom_kills
        return Outcome(self.attempt, code, out_of_memory, rank, self.group.early if self.group.first else None)

    def close(self) -> None:
        """Let others have the port."""
        if self._port:
            self._port.close()


def _nproc(attempt: Path) -> int:
    """Ranks of a trial, as its attempt.json says."""
    try:
        return int(json.loads(Layout.attempt_record(attempt).read_text())["nproc"])
    except (OSError, ValueError, KeyError):
        return 1  # the worker will say what is wrong with the folder


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
