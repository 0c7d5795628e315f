"""What disturbs sweeps: drivers that are cheap to start and to kill, on hosts, clocks, terminals and listings of ours.

`Nursery` is a process that has imported all that a driver needs and forks one for each command, in 50 ms instead of the
4 s of imports that a command and its fork server cost. The server is forked as well; from there on all is as usual.
"""

# ruff: noqa: PTH100, PTH118  # it stands in for functions of os

from __future__ import annotations

import contextlib
import importlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

from expkit.launch import process
from tests.launch.lab import ROOT, Lab

MODULES = ("expkit.sweep", "expkit.cli.sweep", "expkit.executors.local", "expkit.report.clean", "rich.live")
VICTIMS = ("driver", "guard", "server", "trial")
"""By their depth below whoever started the driver."""


class Driver:
    """`expkit ...` at work in a lab; what it says goes to a file."""

    def __init__(self, pid: int, log: Path, wait: Callable[[], int]) -> None:
        self.pid, self.log, self._wait = pid, log, wait

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return process.is_running(self.pid)

    def end(self, timeout_s: float = 120) -> int:
        """The exit code, negative for a signal; killed with all that is below it where it takes too long."""
        deadline = time.monotonic() + timeout_s
        while self.running and time.monotonic() < deadline:
            time.sleep(0.01)
        late = self.running
        if late:
            self.kill("tree")
        code = self._wait()
        assert not late, f"still at work after {timeout_s} s: {self.said()}"
        return code

    def said(self) -> str:
        """All of its output so far."""
        return self.log.read_text(errors="replace")

    def victims(self, what: str) -> list[int]:
        """Process ids of the driver, its server's guard, the server, or its trials, those that there are."""
        found = [self.pid]
        for _ in range(VICTIMS.index(what)):
            found = [child for pid in found for child in process.children(pid) if _is_ours(child)]
        return found

    def kill(self, what: str, rng: random.Random | None = None) -> bool:
        """KILL to one of those, or to all at once for `tree`, so that none of them sees another go; False for none."""
        if what == "tree":
            pids = [pid for name in VICTIMS for pid in self.victims(name)]
        else:
            pids = self.victims(what)
            pids = [(rng or random.Random(0)).choice(pids)] if pids else []
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
        return bool(pids)


def _is_ours(pid: int) -> bool:
    """Not git, which a driver asks for the version of the code."""
    with contextlib.suppress(OSError):
        return not (Path("/proc") / str(pid) / "comm").read_text().startswith("git")
    return False


def command(lab: Lab, *arguments: str) -> Driver:
    """`expkit ...` as a user starts it."""
    log = lab.folder / f"driver-{time.monotonic_ns()}.log"
    with log.open("w") as out:
        started = subprocess.Popen(
            [sys.executable, "-m", "expkit.cli", *arguments], cwd=lab.folder, env=lab.env, stdin=subprocess.DEVNULL,
            stdout=out, stderr=out, start_new_session=True,
        )  # fmt: skip
    return Driver(started.pid, log, started.wait)


class Nursery:
    """`with Nursery() as nursery: nursery.start(lab, "sweep", "name")`; ends with all that it has started."""

    def __init__(self, inside: Sequence[str] = ()) -> None:
        """`inside` is a command that it is started by."""
        self._server = subprocess.Popen(
            [*inside, sys.executable, "-m", "tests.launch.chaos"], cwd=ROOT, stdin=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"},
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.communicate(timeout=30)

    def start(self, lab: Lab, *arguments: str, **oddities: Any) -> Driver:
        """`expkit ...` in a lab's folder, in a world that is odd in some ways: see `_Oddities`."""
        log = lab.folder / f"driver-{time.monotonic_ns()}.log"
        log.touch()
        env = {"EXPKIT_LOCK_DIR": str(lab.folder / "lock"), **oddities.pop("env", {})}
        order = {"cwd": str(lab.folder), "argv": ["expkit", *arguments], "log": str(log), "env": env, **oddities}
        pid = self._ask(order)
        return Driver(pid, log, lambda: self._ask({"wait": pid}))

    def _ask(self, order: dict[str, Any]) -> int:
        assert self._server.stdin is not None and self._server.stdout is not None
        self._server.stdin.write(json.dumps(order) + "\n")
        self._server.stdin.flush()
        return int(self._server.stdout.readline())


def serve() -> None:
    """The nursery's own life: a line comes in, an order or a process to wait for; a line goes out."""
    from expkit import sweep
    from expkit.launch import worker, workers
    from expkit.launch.forkserver import PRELOAD
    from expkit.launch.reference import Reference

    for module in (*PRELOAD, *MODULES):
        importlib.import_module(module)
    workers.subprocess = SimpleNamespace(  # type: ignore[attr-defined]
        Popen=ForkedServer, DEVNULL=subprocess.DEVNULL, TimeoutExpired=subprocess.TimeoutExpired
    )
    worker.measure = lambda: Reference(0.01, 0.01)  # neither how fast this machine is matters here, half a second a
    sweep.write_report = lambda store, name: store.layout.report(name)  # trial, nor the page, two seconds a sweep
    for line in sys.stdin:
        order = json.loads(line)
        if "wait" in order:
            answer = os.waitstatus_to_exitcode(os.waitpid(order["wait"], 0)[1])
        else:
            answer = os.fork() or _be_a_driver(order)
        print(answer, flush=True)


def _be_a_driver(order: dict[str, Any]) -> int:
    """A whole life; never returns."""
    code = 70
    try:
        process.die_with_parent()
        os.setsid()
        _streams(order)
        os.chdir(order["cwd"])
        os.environ.update(order["env"])
        sys.argv = order["argv"]
        _Oddities.come(order)
        from expkit.cli import main

        main()
    except SystemExit as e:
        code = int(e.code or 0)
    except BaseException:
        with contextlib.suppress(OSError):
            traceback.print_exc()
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _streams(order: dict[str, Any]) -> None:
    """Both outputs to the log, or all three a terminal that becomes ours."""
    if "tty" in order:
        fds = [os.open(order["tty"], os.O_RDWR)] * 3
    else:
        out = os.open(order["log"], os.O_WRONLY | os.O_APPEND)
        fds = [os.open(os.devnull, os.O_RDONLY), out, out]
    for fd, ours in zip(fds, range(3), strict=True):
        os.dup2(fd, ours)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115


class ForkedServer:
    """What Popen is to a driver that starts its fork server, without the imports."""

    def __init__(self, command: Sequence[str], env: dict[str, str], pass_fds: Sequence[int], **_: Any) -> None:
        self.returncode: int | None = None
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            self._serve(command[-2:], env, pass_fds[0])

    def wait(self, timeout: float = 1e9) -> int:
        """As of Popen."""
        deadline = time.monotonic() + timeout
        while self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("forkserver", timeout)
            else:
                time.sleep(0.002)
        return self.returncode

    def kill(self) -> None:
        """As of Popen."""
        os.kill(self.pid, signal.SIGKILL)

    @staticmethod
    def _serve(argv: Sequence[str], env: dict[str, str], channel: int) -> None:
        """What exec would do, then the server's life; never returns."""
        from expkit.launch import forkserver

        code = 70
        try:
            os.setsid()
            os.closerange(3, channel)
            os.closerange(channel + 1, 4096)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(2, 1)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) is not signal.SIG_IGN:
                    signal.signal(number, signal.SIG_DFL)
            os.environ.clear()
            os.environ.update(env)
            code = forkserver.main(list(argv))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)


class _Oddities:
    """What may be odd in a driver's world, and in that of its trials."""

    @classmethod
    def come(cls, order: dict[str, Any]) -> None:
        """All that the order names."""
        for name, what in order.items():
            if (oddity := getattr(cls, name, None)) is not None:
                oddity(what)

    @staticmethod
    def ignored(numbers: Sequence[int]) -> None:
        """Signals that do nothing, as under nohup."""
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)

    @staticmethod
    def host(name: str) -> None:
        """Another host, so that drivers on two of them cannot see each other's processes."""
        from expkit.store import owner

        socket.gethostname = lambda: name
        owner.host_name.cache_clear()

    @staticmethod
    def jumps_s(width_s: float) -> None:
        """The time of day goes back and forth by so much whenever somebody looks at it."""
        genuine, rng = time.time, random.Random(1)
        time.time = lambda: genuine() + rng.choice((-width_s, 0.0, width_s))

    @staticmethod
    def lost_s(seconds: float) -> None:
        """Who is silent for so long is lost; a test cannot wait for 90 s."""
        from expkit.launch import drive
        from expkit.store import pulse

        pulse.UNSEEN_LOST_S, drive.HEARTBEAT_S = seconds, seconds / 4

    @staticmethod
    def late(order: Sequence[Any]) -> None:
        """(folder, seconds): listings below a folder are as old as that, and in no order."""
        late = Late(*order)
        os.listdir, os.scandir = late.listdir, late.scandir  # type: ignore[assignment]


class Late:
    """Listings of a store that is slow to say what is new and what has gone; files themselves are there at once."""

    def __init__(self, root: str, most_s: float) -> None:
        self._root, self._most_s = root, most_s
        self._rng = random.Random(2)
        self._shown: dict[str, dict[str, float]] = {}  # folder -> name -> when it can first be seen
        self._gone: dict[str, dict[str, float]] = {}  # folder -> name -> how long it can still be seen
        self._listdir, self._scandir = os.listdir, os.scandir

    def listdir(self, path: Any = ".") -> list[str]:
        """As of os."""
        if not self._is_late(path):
            return self._listdir(path)
        folder = os.path.abspath(path)
        names = [*self._visible(folder), *self._lingering(folder)]
        self._rng.shuffle(names)
        return names

    def scandir(self, path: Any = ".") -> Any:
        """As of os; what has gone has no entry."""
        if not self._is_late(path):
            return self._scandir(path)
        visible = self._visible(os.path.abspath(path))
        with self._scandir(path) as found:
            entries = [entry for entry in found if entry.name in visible]
        self._rng.shuffle(entries)
        return _Entries(entries)

    def _is_late(self, path: Any) -> bool:
        return not isinstance(path, int | bytes) and os.path.abspath(path).startswith(self._root)

    def _visible(self, folder: str) -> set[str]:
        now, known = time.time(), self._shown.setdefault(folder, {})
        there = set(self._listdir(folder))
        for name in there - known.keys():
            with contextlib.suppress(FileNotFoundError):
                born = os.lstat(os.path.join(folder, name)).st_ctime
                known[name] = born + self._rng.uniform(0, self._most_s)
        for name in known.keys() - there:
            del known[name]
            self._gone.setdefault(folder, {})[name] = now + self._rng.uniform(0, self._most_s)
        return {name for name, since in known.items() if since <= now}

    def _lingering(self, folder: str) -> list[str]:
        now = time.time()
        return [n for n, until in self._gone.get(folder, {}).items() if now < until and n not in self._shown[folder]]


class _Entries:
    """An iterator over entries that can be closed, as of os.scandir."""

    def __init__(self, entries: Sequence[os.DirEntry[str]]) -> None:
        self._entries = iter(entries)

    def __iter__(self) -> Iterator[os.DirEntry[str]]:
        return self._entries

    def __next__(self) -> os.DirEntry[str]:
        return next(self._entries)

    def close(self) -> None:
        """As of os.scandir."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


if __name__ == "__main__":
    serve()
