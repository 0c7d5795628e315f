"""The host's lock: `shared` drivers run side by side, an `exclusive` one is alone on the machine, so its times count.

An flock on a file in EXPKIT_LOCK_DIR (default: the system's folder for temporary files). It ends with the process,
however that ends, and no child inherits it: exec closes the file, and so does fork, by a hook.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import tempfile
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from expkit.errors import EnvironmentFault
from expkit.store.owner import Owner, host_name

Kind = Literal["shared", "exclusive"]
_open: weakref.WeakSet[HostLock] = weakref.WeakSet()


class HostLock:
    """A lock that is held; `with` it, or release it. `acquire` makes one."""

    def __init__(self, path: Path, kind: Kind, descriptor: int) -> None:
        self.path = path
        self.kind = kind
        self._descriptor: int | None = descriptor
        _open.add(self)

    def release(self) -> None:
        """Let others in; a second call does nothing."""
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)  # closing would leave it with a child that was just forked
            self.forget()

    def forget(self) -> None:
        """Close this process's copy of the file; the lock stays with the process that took it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> HostLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def acquire(
    kind: Kind, *, wait: bool = False, on_wait: Callable[[str], None] = lambda _: None, poll_s: float = 0.2
) -> HostLock:
    """Take the host's lock. Held by others: EnvironmentFault that names them, or with `wait` a wait of any length.

    `on_wait` is told once who is waited for.
    """
    path = lock_path()
    told = False
    while True:
        descriptor = _file(path)
        if _try(descriptor, kind):
            _sign(descriptor, kind)
            return HostLock(path, kind, descriptor)
        message = f"this machine is held by {_holders(descriptor)}; --wait waits for it"
        os.close(descriptor)
        if not wait:
            raise EnvironmentFault(f"{message} (lock: {path})")
        if not told:
            on_wait(message)
            told = True
        time.sleep(poll_s)


def lock_dir() -> Path:
    """EXPKIT_LOCK_DIR, or the system's folder for temporary files."""
    return Path(os.environ.get("EXPKIT_LOCK_DIR") or tempfile.gettempdir())


def lock_path() -> Path:
    """One file a host and user; in a folder of the user's choice one a host, for all who may write there."""
    whose = "" if os.environ.get("EXPKIT_LOCK_DIR") else f"-{os.getuid()}"
    return lock_dir() / f"expkit-{host_name()}{whose}.lock"


def _file(path: Path) -> int:
    """The lock file, made where it is missing; refuses a link, which somebody else could have laid there."""
    flags = os.O_RDWR | os.O_NOFOLLOW
    shared = bool(os.environ.get("EXPKIT_LOCK_DIR"))
    try:
        if shared:
            path.parent.mkdir(parents=True, exist_ok=True)
        try:
            return os.open(path, flags)  # without O_CREAT first: kernels refuse it on others' files in sticky folders
        except FileNotFoundError:
            descriptor = os.open(path, flags | os.O_CREAT, 0o600)
    except OSError as e:
        raise EnvironmentFault(
            f"cannot open the lock {path}: {e.strerror}; EXPKIT_LOCK_DIR names another folder"
        ) from e
    if shared and os.fstat(descriptor).st_uid == os.getuid():
        os.fchmod(descriptor, 0o666)  # all who may write in that folder share the machine
    return descriptor


def _try(descriptor: int, kind: Kind) -> bool:
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_EX if kind == "exclusive" else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sign(descriptor: int, kind: Kind) -> None:
    """Write who holds it, for the message to others; lines of holders that are gone are dropped."""
    me = Owner.this_process()
    line = {"pid": me.pid, "process_start": me.process_start, "kind": kind, "command": _command()}
    others = [] if kind == "exclusive" else [entry for entry in _entries(descriptor) if _lives(entry)]
    text = "".join(json.dumps(entry) + "\n" for entry in [*others, line])
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text.encode(), 0)


def _holders(descriptor: int) -> str:
    alive = [entry for entry in _entries(descriptor) if _lives(entry)]
    named = [f"pid {e['pid']} ({e['kind']}: {e['command']})" for e in alive]
    return " and ".join(named) or "another driver that has not given its name"


def _entries(descriptor: int) -> list[dict[str, object]]:
    entries = []
    for line in os.pread(descriptor, 65536, 0).splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue  # being written by another
        if isinstance(entry, dict) and {"pid", "process_start", "kind", "command"} <= entry.keys():
            entries.append(entry)
    return entries


def _lives(entry: dict[str, object]) -> bool:
    pid = entry["pid"]
    return isinstance(pid, int) and Owner.of(pid).process_start == entry["process_start"]


def _command() -> str:
    return " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])[:200]


def _close_in_child() -> None:
    for lock in list(_open):
        lock.forget()


os.register_at_fork(after_in_child=_close_in_child)
