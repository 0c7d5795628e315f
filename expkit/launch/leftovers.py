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


def mark(driver: Owner) -> dict[str, str]:
    """The variable that all processes of this driver get."""
    return {VARIABLE: f"{driver.pid}-{driver.process_start:.0f}"}


def end(driver: Owner) -> list[int]:
    """Kill what a dead driver of this machine has left; does nothing where it lives or cannot be seen from here."""
    return [] if driver.alive() is not False else end_all(driver)


def end_all(driver: Owner) -> list[int]:
    """Kill every process of a driver run but the caller."""
    found = [pid for pid in process.with_variable(VARIABLE, mark(driver)[VARIABLE]) if pid != os.getpid()]
    for pid in found:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    return found
