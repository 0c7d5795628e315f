"""Fork server: a process that has imported torch and run nothing, and forks a fresh process for each rank of a trial.

`python -P -m expkit.launch.forkserver FD fork|spawn [MODULE ...]`, started by `launch.workers`, which holds the other
end of the socket FD. Importing torch and torch._dynamo costs 3 s once, further modules of one's own go along; after
that a trial starts in 20 ms. It must never run a torch operation with more than one thread: libgomp would hang in the
children. With `spawn` it imports nothing and executes a fresh interpreter for each trial, which costs those 3 s every
time.

Lines of JSON, both ways:
    {"do": "start", "key": 1, "attempt": "/runs/...", "rank": 0, "env": {...}}    -> {"key": 1, "pid": 4711}
    {"do": "signal", "key": 1, "number": 15}                           a rank's whole session with 9, else its leader
    rank ended                                                         -> {"key": 1, "exit": 0}, negative for signals
The end of the socket is the end of everything: all sessions are killed, then the server leaves. It has a guard, so
that the same happens where the driver and the server are killed at once.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from pathlib import Path
from typing import Any

from expkit.launch import process
from expkit.launch.guard import guarded
from expkit.launch.wake import Wake
from expkit.store.layout import Layout

PRELOAD = ("torch", "torch._dynamo", "numpy", "pyarrow.parquet", "pydantic", "yaml", "expkit.launch.worker",
           "expkit.launch.reference", "expkit.store.metrics", "expkit.loggers.parquet")  # fmt: skip
"""What a trial would import before its first batch."""


def main(argv: list[str]) -> int:
    """Serve until the other end of the socket is closed."""
    channel = socket.socket(fileno=int(argv[0]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the driver's to handle
    process.die_with_parent(signal.SIGTERM)  # passed on to the server, which may be importing and hear nothing else
    code = guarded(lambda lifeline: _serve(channel, argv[1], argv[2:], lifeline), [signal.SIGTERM])
    return code if code >= 0 else 128 - code


def _serve(channel: socket.socket, isolation: str, preload: list[str], lifeline: int) -> int:
    process.die_with_parent()  # while importing, nobody looks at the lifeline
    if isolation == "fork":
        for module in (*PRELOAD, *preload):
            importlib.import_module(module)
    process.die_with_parent(0)  # from here on the lifeline and the socket say it, and we take the trials along
    process.call_yourself("expkit-server")
    _Server(channel, isolation, lifeline).run()
    return 0


class _Server:
    """The loop: requests from the socket, ends of children from SIGCHLD."""

    def __init__(self, channel: socket.socket, isolation: str, lifeline: int) -> None:
        self._channel = channel
        self._isolation = isolation
        self._lifeline = lifeline
        self._pids: dict[int, int] = {}  # key -> pid, of the living
        self._unread = b""
        self._warm = False
        self._own_pid = os.getpid()
        signal.signal(signal.SIGTERM, self._leave)
        self._wake = Wake()

    def run(self) -> None:
        """Until socket or lifeline end; no trial survives it."""
        sources = [self._channel.fileno(), self._wake.descriptor, self._lifeline]
        try:
            while True:
                ready, _, _ = select.select(sources, [], [])
                if self._wake.descriptor in ready:
                    self._wake.clear()
                    self._reap()
                if self._lifeline in ready or (self._channel.fileno() in ready and not self._read()):
                    return
        finally:
            self._kill_all()

    def _read(self) -> bool:
        """Answer what has come; False at the end of the socket."""
        chunk = self._channel.recv(65536)
        *lines, self._unread = (self._unread + chunk).split(b"\n")
        for line in lines:
            request = json.loads(line)
            if request["do"] == "start":
                self._start(request)
            elif request["key"] in self._pids:
                self._signal(self._pids[request["key"]], request["number"])
        return bool(chunk)

    def _start(self, request: dict[str, Any]) -> None:
        if self._isolation == "fork" and not self._warm:
            self._warm_up(Path(request["attempt"]))
        server = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._be_a_rank(request, server)
        self._pids[request["key"]] = pid
        self._send({"key": request["key"], "pid": pid})

    def _be_a_rank(self, request: dict[str, Any], server: int) -> None:
        """The child's whole life; never returns."""
        code = 70
        try:
            os.setsid()
            _redirect(Layout.log(Path(request["attempt"]), request["rank"]))
            process.die_with_parent()
            if os.getppid() != server:
                os._exit(128 + signal.SIGKILL)  # the server ended between fork and wish
            self._forget()
            os.environ.clear()
            os.environ.update(request["env"])
            if self._isolation == "spawn":
                command = [sys.executable, "-P", "-m", "expkit.launch.worker", request["attempt"]]
                os.execve(command[0], command, dict(os.environ))  # noqa: S606
            code = _train(request["attempt"])
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            with contextlib.suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    def _forget(self) -> None:
        """Nothing of the server stays open or listening in a rank."""
        self._wake.forget()
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._channel.close()
        os.close(self._lifeline)

    def _warm_up(self, attempt: Path) -> None:
        from expkit.launch import worker

        with contextlib.suppress(Exception):  # the trial will say it in its own log
            worker.warm_up(attempt)
        gc.collect()
        gc.freeze()  # the children share these pages; counting through them would copy each
        self._warm = True

    def _signal(self, pid: int, number: int) -> None:
        if number == signal.SIGKILL:
            process.kill_session(pid)
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)  # a worker tells its own helpers

    def _reap(self) -> None:
        """Report each ended trial after whatever it left running in its session has been killed."""
        while (ended := process.ended_child()) is not None:
            key = next((k for k, pid in self._pids.items() if pid == ended), None)
            if key is not None:
                process.kill_session(ended)  # not yet waited for: the id cannot have been given away
            _, status = os.waitpid(ended, 0)
            if key is not None:
                del self._pids[key]
                self._end_strays()
                self._send({"key": key, "exit": os.waitstatus_to_exitcode(status)})

    def _end_strays(self) -> None:
        """Kill processes of ended trials that left their session; while others run, theirs cannot be told apart."""
        if not self._pids:
            for pid in process.children(os.getpid()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _kill_all(self) -> None:
        for pid in self._pids.values():
            process.kill_session(pid)
        self._pids.clear()
        self._end_strays()

    def _leave(self, *_: object) -> None:
        if os.getpid() == self._own_pid:  # and not a rank that has not forgotten us yet
            self._kill_all()
        os._exit(128 + signal.SIGTERM)

    def _send(self, reply: dict[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the driver has gone: the next read ends us
            self._channel.sendall(json.dumps(reply).encode() + b"\n")


def _train(attempt: str) -> int:
    from expkit.launch import worker

    process.call_yourself("expkit-trial")
    return worker.main([attempt])


def _redirect(log: Path) -> None:
    """Standard input from nothing, both outputs to the log, line by line."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for source, target in ((nothing, 0), (out, 1), (out, 2)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(out)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
