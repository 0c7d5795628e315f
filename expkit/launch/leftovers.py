"""Leftovers: what a driver that was killed together with all its guards has left running; found by its mark.

Every process of a driver run carries the driver's mark in the environment that it was started with, also the helpers
of a trial that made a session of their own.
"""

from __future__ import annotations

import contextlib
import os
import signal

from expkit.launch import process
from expkit.store.owner import Owner

VARIABLE = "EXPKIT_DRIVER"


def mark(driver: Owner, server: int | str = "") -> str:
    """What `VARIABLE` holds in all processes of a driver's n-th server, or begins with in those of all of them."""
    return f"{driver.pid}-{driver.process_start:.0f}/" + (f"{server}/" if server != "" else "")


def end(driver: Owner) -> list[int]:
    """Kill what a dead driver of this machine has left; does nothing where it lives or cannot be seen from here."""
    return [] if driver.alive() is not False else end_marked(mark(driver))


def end_marked(begin: str) -> list[int]:
    """Kill every process whose mark begins like this."""
    found = [pid for pid in process.with_variable(VARIABLE, begin) if pid != os.getpid()]
    for pid in found:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    return found
