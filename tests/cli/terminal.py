"""A program in a real pseudo-terminal: type, wait for what it shows, signal it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

ROOT = Path(__file__).parents[2]
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b[=>]|\x1b\][^\x07]*\x07|[\x07\x0f]")


class Terminal:
    """`expkit ...` with a terminal of 100 columns as stdin, stdout and stderr; use it in a `with`."""

    def __init__(self, *arguments: str, env: Mapping[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "expkit.cli", *arguments], stdin=theirs, stdout=theirs, stderr=theirs,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", **env},
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(theirs)
        self.shown = ""
        """What was shown since the last `wait_for`, without colours and cursor movements."""

    def type(self, text: str) -> None:
        """Keys, as they are: Enter is a carriage return, Ctrl-C is \\x03."""
        os.write(self._ours, text.encode())

    def wait_for(self, text: str, seconds: float = 60) -> str:
        """What was shown up to the end of `text`; AssertionError where it does not come."""
        deadline = time.monotonic() + seconds
        while text not in self.shown:
            assert time.monotonic() < deadline and self._read(), f"no {text!r} in: {self.shown!r}"
        before, _, self.shown = self.shown.partition(text)
        return before + text

    def end(self, seconds: float = 60) -> int:
        """The exit code; everything that is still shown is in `shown`."""
        while self._read():
            pass
        return self._process.wait(seconds)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the program."""
        self._process.send_signal(number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._ours)

    def _read(self) -> bool:
        """Take in what has come; False at the end, or when nothing comes for long."""
        if not select.select([self._ours], [], [], 60)[0]:
            return False
        data = b""
        with contextlib.suppress(OSError):  # the other side was closed
            data = os.read(self._ours, 65536)
        end = len(self.shown) - 20  # a sequence may have come in two pieces
        self.shown = self.shown[: max(0, end)] + _CONTROL.sub(
            "", self.shown[max(0, end) :] + data.decode(errors="replace")
        )
        return bool(data)
