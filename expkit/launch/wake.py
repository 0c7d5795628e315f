"""Wake: a descriptor that becomes readable when a signal has come, for loops that wait with select."""

from __future__ import annotations

import os
import signal


class Wake:
    """Signals wake whoever waits for `descriptor`; their handlers run as ever. One for a process."""

    def __init__(self) -> None:
        self.descriptor, self._write = os.pipe()
        os.set_blocking(self.descriptor, False)
        os.set_blocking(self._write, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # a handler must be there for the pipe to be written
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)

    def clear(self) -> None:
        """Make it unreadable again; look at what has happened after that."""
        try:
            while os.read(self.descriptor, 4096):
                pass
        except BlockingIOError:
            return

    def forget(self) -> None:
        """In a child that goes its own way."""
        signal.set_wakeup_fd(-1)
        os.close(self.descriptor)
        os.close(self._write)
