"""What the kernel knows of a process: its session, its start, and the wish to die with its parent. Linux, /proc."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from pathlib import Path

_PR_SET_PDEATHSIG, _PR_SET_NAME, _PR_SET_CHILD_SUBREAPER = 1, 15, 36


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """Have the kernel send us `number` when the thread that started us ends; 0 takes the wish back. Survives exec."""
    _prctl(_PR_SET_PDEATHSIG, number)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent has ended, so that none can hide behind a double fork."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def call_yourself(name: str) -> None:
    """The name that `ps` and `top` show, cut to 15 bytes."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode()[:15], 0, 0, 0)


def members(session: int) -> list[int]:
    """Ids of all processes of a session, zombies left out; about 2 ms where 200 processes run."""
    found = []
    for folder in Path("/proc").iterdir():
        fields = _stat(int(folder.name)) if folder.name.isdigit() else []
        if fields and fields[3] == str(session) and fields[0] != "Z":
            found.append(int(folder.name))
    return found


def children(parent: int) -> list[int]:
    """Ids of the direct children of a process, zombies included."""
    pids = [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit()]
    return [pid for pid in pids if (fields := _stat(pid)) and fields[1] == str(parent)]


def ended_child() -> int | None:
    """A child that has ended and is still to be waited for, which keeps its id from being given away."""
    try:
        found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT | os.WNOHANG)
    except ChildProcessError:
        return None
    return found.si_pid if found else None


def end_children() -> None:
    """Kill and wait for every child of ours until none is left; with `adopt_orphans` that means all descendants."""
    while pids := children(os.getpid()):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, 0)


def with_variable(name: str, begin: str) -> list[int]:
    """Ids of all processes that were started with a variable whose value begins so, as far as we may look."""
    wanted = f"{name}={begin}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                if any(entry.startswith(wanted) for entry in (folder / "environ").read_bytes().split(b"\0")):
                    found.append(int(folder.name))
    return found


def is_running(pid: int) -> bool:
    """Whether there is such a process and it has not ended."""
    fields = _stat(pid)
    return bool(fields) and fields[0] not in "ZX"


def kill_session(session: int, number: int = signal.SIGKILL) -> None:
    """Send `number` to a session's group, and to its other members until none is left where it is SIGKILL."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(session, number)
    for pid in members(session):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the state on (state, parent, group, session ...); empty where it has gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    return text.rpartition(")")[2].split()  # the name before it may hold spaces and brackets


def _prctl(option: int, value: int) -> None:
    with contextlib.suppress(AttributeError, OSError):  # not Linux: the channel's end is all we have
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def started_s() -> float:
    """When this process began, on the clock of `perf_counter`, to 10 ms; a forked one counts from its fork."""
    ticks = int(_stat(os.getpid())[19])
    age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return time.perf_counter() - age_s
