"""The driver's end of the fork server: start a rank in a process of its own, signal it, hear how it ended."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import signal
import site
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from expkit.errors import EnvironmentFault
from expkit.launch import leftovers, process
from expkit.launch.world import without_ranks
from expkit.store.owner import Owner

Isolation = Literal["fork", "spawn"]
MALLOC = {
    "MALLOC_MMAP_THRESHOLD_": "1073741824",
    "MALLOC_TRIM_THRESHOLD_": "8589934592",
    "MALLOC_TOP_PAD_": "67108864",
}
"""Keep freed memory in the process: without it each large activation is mapped and faulted in again at every step."""

ONE_THREAD = {"JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""pyarrow's allocator would start a thread on import, and a process that forks had better have one."""


_servers = itertools.count()


@dataclass(frozen=True)
class Ended:
    """How a rank's process ended: its exit code, negative for a signal, None where the server was lost with it."""

    key: int
    code: int | None


class Workers:
    """Processes for ranks, all gone when this is closed or its owner dies. Starts the server at the first trial."""

    preload: tuple[str, ...] = ()
    """Modules that the server imports beside those that every trial needs."""

    def __init__(self, isolation: Isolation = "fork", threads: int = 1) -> None:
        self._isolation = isolation
        self._threads = threads
        self.server: subprocess.Popen[bytes] | None = None
        """The server's guard; the server itself is its child."""
        self._channel: socket.socket | None = None
        self._unread = b""
        self._pids: dict[int, int | None] = {}  # key -> pid, None until the server has told
        self._next = 0
        self._mark = leftovers.mark(Owner.this_process(), next(_servers))

    def warm(self) -> None:
        """Start the server now, so that it imports while the driver does other things."""
        if self._channel is not None:
            return
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-P", "-m", "expkit.launch.forkserver", str(theirs.fileno()), self._isolation]
        command += self.preload
        self.server = subprocess.Popen(
            command,
            env=self._env(),
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=2,  # data on stdout is the driver's alone
            start_new_session=True,  # Ctrl-C in the terminal is the driver's to handle
        )
        theirs.close()
        self._channel = ours

    def start(self, attempt: Path, rank: int = 0, variables: Mapping[str, str] | None = None) -> int:
        """Start a rank of an attempt's trial; the key by which `signal` and `wait` know it.

        `variables` tell it of the others (World.env); a trial of one rank needs none.
        """
        self.warm()
        self._next += 1
        self._pids[self._next] = None
        env = {**self._env(), **(variables or {})}
        self._send({"do": "start", "key": self._next, "attempt": str(attempt.resolve()), "rank": rank, "env": env})
        return self._next

    def signal(self, key: int, number: int) -> None:
        """SIGKILL goes to the rank's whole session, any other signal to its first process."""
        if key in self._pids:
            self._send({"do": "signal", "key": key, "number": int(number)})

    def pid(self, key: int) -> int | None:
        """The process id, which is its session's as well; None before it was started and after it ended."""
        return self._pids.get(key)

    def wait(self, timeout_s: float) -> list[Ended]:
        """The ranks that ended, as soon as one does; empty after the time-out."""
        if self._channel is None:
            return []
        ready, _, _ = select.select([self._channel], [], [], timeout_s)
        if not ready:
            return []
        chunk = self._receive()
        if not chunk:
            return self._lost()
        *lines, self._unread = (self._unread + chunk).split(b"\n")
        return [ended for line in lines if (ended := self._note(json.loads(line))) is not None]

    def close(self) -> None:
        """End everything that still runs, at once."""
        self._end()

    def _end(self) -> None:
        if self._channel is None or self.server is None:
            return
        self._channel.close()
        try:
            self.server.wait(10)
        except subprocess.TimeoutExpired:
            self.server.kill()
            self.server.wait()
        self._sweep_up()
        self._channel = self.server = None

    def _env(self) -> dict[str, str]:
        return {**worker_env(without_ranks(os.environ), self._threads), leftovers.VARIABLE: self._mark}

    def _note(self, reply: dict[str, Any]) -> Ended | None:
        if "pid" in reply:
            self._pids[reply["key"]] = reply["pid"]
            return None
        self._pids.pop(reply["key"], None)
        return Ended(reply["key"], reply["exit"])

    def _lost(self) -> list[Ended]:
        """The server has died: its trials die with it; the next start begins a new one."""
        keys, told, server = list(self._pids), any(self._pids.values()), self.server
        self._end()
        leftovers.end_marked(self._mark)  # its guard has done so, unless that was killed as well
        if not told:
            assert server is not None
            raise EnvironmentFault(f"the fork server {_ending(server.returncode)} before it could start a trial")
        return [Ended(key, None) for key in keys]

    def _sweep_up(self) -> None:
        for pid in self._pids.values():
            if pid is not None:
                process.kill_session(pid, signal.SIGKILL)
        self._pids.clear()
        self._unread = b""

    def _send(self, request: dict[str, Any]) -> None:
        assert self._channel is not None
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # `wait` will find the end of the socket
            self._channel.sendall(json.dumps(request).encode() + b"\n")

    def _receive(self) -> bytes:
        assert self._channel is not None
        try:
            return self._channel.recv(65536)
        except ConnectionResetError:
            return b""


def _ending(code: int) -> str:
    """How the server ended; its guard passes a signal on as 128 + n, and may be killed itself."""
    number = -code if code < 0 else code - 128
    if number > 0:
        return f"was killed by signal {number} ({signal.Signals(number).name})"
    return f"ended with exit code {code}, its reason stands above,"


def worker_env(base: Mapping[str, str], threads: int) -> dict[str, str]:
    """The environment of trials: the driver's, with malloc settings, threads, hash seed, and the way to expkit."""
    env = {**base, **MALLOC, **ONE_THREAD, "PYTHONHASHSEED": "0", "PYTHONUNBUFFERED": "1"}
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        env[name] = str(threads)
    home = str(Path(__file__).parents[2])
    if home not in site.getsitepackages():  # a checkout; -P keeps the working folder's modules from hiding ours
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [base.get("PYTHONPATH"), home]))
    return env
