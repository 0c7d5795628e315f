"""Who holds something, and whether they still live: (host, boot, pid, start of the process).

A pid alone is reused, a pid with its start time is not. Processes of another host, or of another pid namespace of
this one, cannot be seen from here; for them a heartbeat has to answer.
"""

from __future__ import annotations

import functools
import os
import socket
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc/self/stat").exists()  # Linux


@dataclass(frozen=True)
class Owner:
    """One process, named so that it can never be mistaken for another."""

    host: str
    boot_id: str
    """Boot of the host, then the pid namespace: `<boot>/<namespace>`."""
    pid: int
    process_start: float
    """Clock ticks since boot on Linux, elsewhere seconds since 1970."""

    @classmethod
    def this_process(cls) -> Owner:
        """The calling process."""
        return cls.of(os.getpid())

    @classmethod
    def of(cls, pid: int) -> Owner:
        """A process of this host; start 0.0 where it is gone already."""
        return cls(host_name(), boot_id(), pid, _started(pid) or 0.0)

    def of_another_boot(self) -> bool:
        """Whether its host was this one, and was started anew since."""
        return self.host == host_name() and self.boot_id.partition("/")[0] != boot_id().partition("/")[0]

    def alive(self) -> bool | None:
        """True or False where this process can tell, None where only a heartbeat could."""
        if self.host != host_name():
            return None
        if self.of_another_boot():
            return False
        if self.boot_id.partition("/")[2] != boot_id().partition("/")[2]:
            return None  # the same host seen from another container
        return _started(self.pid) == self.process_start


@functools.cache
def host_name() -> str:
    """Name of this host."""
    return socket.gethostname()


@functools.cache
def boot_id() -> str:
    """What changes when the host is started anew, and which pids this process can see."""
    if _PROC:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        try:
            namespace = str(Path("/proc/self/ns/pid").readlink())
        except OSError:  # hardened kernels hide it
            namespace = ""
        return f"{boot}/{namespace}"
    import psutil

    return f"{psutil.boot_time():.0f}/"


def _started(pid: int) -> float | None:
    """Start of a running process, None where there is none; a zombie has ended."""
    if _PROC:
        try:
            stat = Path(f"/proc/{pid}/stat").read_bytes()
        except OSError:
            return None
        fields = stat[stat.rindex(b")") + 2 :].split()  # the command may hold blanks and brackets
        return None if fields[0] in (b"Z", b"X") else float(fields[19])
    import psutil

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.Error:
        return None
