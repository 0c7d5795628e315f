"""Watch: what goes on beside training in a worker: signals that ask it to stop, a heartbeat, an eye on the driver."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

from expkit.errors import Interruption
from expkit.launch import process
from expkit.launch.attempt import Attempt

HEARTBEAT_S = 1.0
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Asked:
    """TERM and INT mean: finish the step, then leave. Before there is a step they end the trial where it is."""

    def __init__(self) -> None:
        self.number: int | None = None
        self._trainer: Any = None
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> Self:
        self._handlers = {number: signal.signal(number, self._hear) for number in _SIGNALS}
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, trace: TracebackType | None) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def watch(self, trainer: Any) -> None:
        """From now on a signal stops this trainer; one that came before ends the trial here."""
        self._trainer = trainer
        if self.number is not None:
            raise self.interruption()

    def interruption(self) -> Interruption:
        """The error of a trial that was asked to stop."""
        assert self.number is not None
        name = signal.Signals(self.number).name
        return Interruption(f"interrupted by a signal to the trial's own process ({name})", 128 + self.number)

    def _hear(self, number: int, _: FrameType | None) -> None:
        first = self.number is None
        self.number = self.number or number
        if self._trainer is not None:
            self._trainer.request_stop(signal.Signals(self.number).name)
        elif first:
            raise self.interruption()


class Heart:
    """A thread that says every second that we live and how far we are, and ends us when the driver has gone."""

    def __init__(self, attempt: Attempt, *, beats: bool = True) -> None:
        """`beats` is for one rank of a trial; the others only look for the driver."""
        self._attempt = attempt
        self._beats = beats
        self._trainer: Any = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, trace: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()

    def watch(self, trainer: Any) -> None:
        """From now on the heartbeat tells the progress of this trainer."""
        self._trainer = trainer

    def _beat(self) -> None:
        while True:
            if self._beats:
                with contextlib.suppress(OSError):  # a full disk must not end the trial from here
                    self._attempt.heartbeat(*self._progress())
            if self._stop.wait(HEARTBEAT_S):
                return
            if self._attempt.driver_owner.alive() is False and os.getsid(0) == os.getpid():
                process.kill_session(os.getpid())  # nobody waits for the result, and its lock on the host is gone

    def _progress(self) -> tuple[int, int]:
        if self._trainer is None:
            return 0, 0
        return self._trainer.state.timestamp.batch, self._trainer.state.max_steps
