"""Launcher: starts the ranks of a command on this machine, shows the first, keeps the logs of the others.

Each rank is the leader of a session of its own. Signals are passed on to all ranks; the first that fails ends the
others (TERM, after the grace KILL) and decides the exit code. A guard sees to it that nothing is left running, even
after `kill -9`. Loads no torch.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from expkit.errors import EnvironmentFault, UsageError
from expkit.launch import process
from expkit.launch.group import Group
from expkit.launch.guard import guarded
from expkit.launch.port import Port
from expkit.launch.progress import last_lines
from expkit.launch.wake import Wake
from expkit.launch.world import World
from expkit.speech import say

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals after which ranks have the grace to end; the same again kills them."""
NUM_LOG_LINES = 20
_TICK_S = 0.2


@dataclass(frozen=True)
class Launch:
    """What is to be run, and how."""

    command: Sequence[str]
    world: World
    stdout: str | None = None
    """Name of the log of each rank but the first, with {rank}, {local_rank}, ...; None: in a folder of its own, which
    stays where a rank failed, or with `verbose`."""
    stderr: str | None = None
    """The same for stderr; None: where stdout goes."""
    grace_s: float = 30.0
    verbose: bool = False


def command_of(target: Sequence[str], *, module: bool, bare: bool) -> list[str]:
    """The command line of a rank: a script of Python's, a module, or a command as it stands."""
    if module and bare:
        raise UsageError("-m and -c exclude each other: what follows is either a module or a command")
    if not target:
        raise UsageError("there is nothing to launch; name a script, or -m MODULE, or -c COMMAND")
    if bare:
        return list(target)
    return [sys.executable, "-m", *target] if module else [sys.executable, *target]


def launch(what: Launch) -> int:
    """Run all ranks to their end; the exit code: 0, or that of the first rank that failed, 128+n for signal n."""
    folder = Path(tempfile.mkdtemp(prefix="expkit-launch-")) if what.world.nproc > 1 and what.stdout is None else None
    logs = _logs(what, folder)
    code = guarded(lambda lifeline: _Launcher(what, logs).run(lifeline), FORWARDED, on_fork=os.setsid)
    if folder is not None and code == 0 and not what.verbose:
        shutil.rmtree(folder, ignore_errors=True)
    return code if code >= 0 else 128 - code


def environment(what: Launch, local_rank: int, base: Mapping[str, str]) -> dict[str, str]:
    """What a rank is told beside what we were; each gets its share of the cores unless OMP_NUM_THREADS says another."""
    threads = max(1, (os.cpu_count() or 1) // what.world.nproc)
    return {"OMP_NUM_THREADS": str(threads), **base, **what.world.env(local_rank), "PYTHONUNBUFFERED": "1"}


def _logs(what: Launch, folder: Path | None) -> list[tuple[Path, Path] | None]:
    """Files for stdout and stderr of each rank, None for the first one, which is shown."""
    if what.world.nproc == 1:
        return [None]
    out = what.stdout if what.stdout is not None else f"{folder}/rank{{rank}}.log"
    ranks = range(1, what.world.nproc)
    outs = [_filled(out, what.world, rank) for rank in ranks]
    errs = [_filled(what.stderr or out, what.world, rank) for rank in ranks]
    for name, paths in (("--stdout", outs), ("--stderr", errs)):
        if len(set(paths)) < len(paths):
            raise UsageError(f"{name} gives several ranks the same file, {paths[0]}; put {{rank}} into it")
    return [None, *zip(outs, errs, strict=True)]


def _filled(pattern: str, world: World, local_rank: int) -> Path:
    fields = world.fields(local_rank)
    try:
        return Path(pattern.format(**fields))
    except (KeyError, IndexError, ValueError):
        known = ", ".join(f"{{{name}}}" for name in fields)
        raise UsageError(f"{pattern!r} is no name for logs; it may hold {known}") from None


class _Launcher:
    """The ranks of one launch, in a process of its own."""

    def __init__(self, what: Launch, logs: Sequence[tuple[Path, Path] | None]) -> None:
        self._what = what
        self._logs = logs
        self._group = Group(what.world.nproc, self._send, what.grace_s)
        self._pids: dict[int, int] = {}  # local rank -> pid
        self._asked: list[int] = []
        self._stopped = False

    def run(self, lifeline: int) -> int:
        """Until all ranks have ended, or whoever called us has."""
        for number in FORWARDED:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, lambda n, _: self._asked.append(n))
        wake = Wake()
        with self._port() as world:
            try:
                self._start(world)
            except OSError as e:
                say(f"error: cannot start {self._what.command[0]}: {e.strerror}")
                return EnvironmentFault.exit_code
            while not self._group.over:
                ready, _, _ = select.select([wake.descriptor, lifeline], [], [], _TICK_S)
                if lifeline in ready:
                    return 128 + signal.SIGKILL  # nobody waits for us; the guard's half here ends all ranks
                wake.clear()
                self._pass_on()
                self._reap()
                self._group.tick()
        self._report()
        code = self._group.code or 0
        return code if code >= 0 else 128 - code

    @contextlib.contextmanager
    def _port(self) -> Iterator[World]:
        """The world with a port, ours where none was asked for."""
        if self._what.world.master_port:
            yield self._what.world
            return
        with Port(self._what.world.master_addr) as port:
            yield dataclasses.replace(self._what.world, master_port=port.number)

    def _start(self, world: World) -> None:
        what = dataclasses.replace(self._what, world=world)
        for rank, log in enumerate(self._logs):
            with contextlib.ExitStack() as files:
                out, err = _opened(log, files)
                started = subprocess.Popen(
                    what.command,
                    env=environment(what, rank, os.environ),
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,
                    preexec_fn=_as_a_rank(os.getpid()),  # noqa: PLW1509  # this process has one thread
                )
            self._pids[rank] = started.pid
            started.returncode = 0  # it is waited for below, and Popen must not do so as well
            if what.verbose:
                variables = " ".join(f"{k}={v}" for k, v in world.env(rank).items())
                say(f"rank {world.base_rank + rank}: pid {started.pid}, {variables}, log {log[0] if log else '-'}")

    def _send(self, rank: int, number: int) -> None:
        if number == signal.SIGKILL:
            process.kill_session(self._pids[rank])
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pids[rank], number)

    def _pass_on(self) -> None:
        while self._asked:
            number = self._asked.pop(0)
            if number not in _ENDING:
                self._group.send(number)
            elif not self._stopped:
                self._stopped = True
                self._group.stop(number)
            else:
                self._group.send(signal.SIGKILL)

    def _reap(self) -> None:
        """Take note of ranks that have ended, in the order in which they did; their sessions end with them."""
        ranks = {pid: rank for rank, pid in self._pids.items()}
        while (pid := process.ended_child()) is not None:
            if pid in ranks:
                process.kill_session(pid)  # not yet waited for: the id cannot have been given away
            _, status = os.waitpid(pid, 0)
            if pid in ranks:
                self._group.ended(ranks[pid], os.waitstatus_to_exitcode(status))

    def _report(self) -> None:
        """Which rank failed first, and what it said last where nobody has seen it."""
        base, first = self._what.world.base_rank, self._group.first
        kept = [log for log in self._logs if log]
        if first is not None and first.code is not None:
            how = f"exit code {first.code}" if first.code >= 0 else signal.Signals(-first.code).name
            say(f"expkit launch: rank {base + first.rank} ended first, with {how}; the others were ended because of it"
                if self._what.world.nproc > 1 else f"expkit launch: ended with {how}")  # fmt: skip
            if self._group.early is not None:
                say(f"expkit launch: rank {base + self._group.early} had ended before, with exit code 0")
            if (log := self._logs[first.rank]) is not None:
                for path in dict.fromkeys(log):
                    lines = last_lines(path, NUM_LOG_LINES)
                    say("\n".join([f"last lines of {path}:", *(f"    {line}" for line in lines)]))
        if kept and (first is not None or self._what.verbose):
            say(f"logs of the other ranks: {', '.join(str(out) for out, _ in kept)}")


def _opened(log: tuple[Path, Path] | None, files: contextlib.ExitStack) -> tuple[IO[bytes] | None, IO[bytes] | None]:
    """Both outputs of a rank; None: ours."""
    if log is None:
        return None, None
    opened = {}
    for path in dict.fromkeys(log):
        path.parent.mkdir(parents=True, exist_ok=True)
        opened[path] = files.enter_context(path.open("wb"))
    return opened[log[0]], opened[log[1]]


def _as_a_rank(launcher: int) -> Callable[[], None]:
    """What happens between fork and exec: the rank dies with its launcher, and hears signals like any process."""

    def prepare() -> None:
        process.die_with_parent()
        if os.getppid() != launcher:
            os._exit(128 + signal.SIGKILL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    return prepare
