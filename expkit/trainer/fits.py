"""Fits: where each call of `fit` ends. A resumed training ends each of its fits where it would have ended."""

from __future__ import annotations

import warnings

from expkit.duration import Time, Timestamp, TimeUnit
from expkit.errors import UsageError
from expkit.trainer.loaders import Sizes
from expkit.trainer.parts import duration_of, steps_of
from expkit.trainer.schedule import OPEN_ENDED, total_steps
from expkit.trainer.state import State


class Fits:
    """The fits of one training, in this process and those before it."""

    def __init__(self, state: State, sizes: Sizes, *, replayed: bool) -> None:
        """`replayed`: the script calls all its fits again, those too that were over when the checkpoint was taken."""
        self._state, self._sizes, self._replayed = state, sizes, replayed
        self._count = 0 if replayed else len(state.fit_starts) - state.fit_open

    def begin(self, duration: str | Time | None, until: str | Time | None) -> bool:
        """Set the end of the next fit; False where there is nothing left to do in it.

        UsageError where it was never to do anything.
        """
        if duration is not None and until is not None:
            raise UsageError(f"give fit duration or until, but not both: duration={duration}, until={until}")
        state = self._state
        again = self._count < len(state.fit_starts)  # it began in another process
        inside = state.resuming and state.fit_open and self._count == len(state.fit_starts) - 1
        start = state.fit_starts[self._count] if again and (duration is None or self._replayed) else state.timestamp
        ahead = self._set_end(duration, until, start, inside)
        if not (ahead or again):
            self._refuse(until)
            return False
        self._count += 1
        if not again:
            state.fit_starts.append(state.timestamp)
        if not inside:
            state.stop_reason = None
        return ahead or inside

    def _refuse(self, until: str | Time | None) -> None:
        if until is None:
            raise UsageError(f"training has reached its {self._state.max_duration}; fit(duration=...) goes on")
        warnings.warn(f"fit(until={until}) does nothing: training has come to {_place(self._state)}", stacklevel=5)

    def _set_end(self, duration: str | Time | None, until: str | Time | None, start: Timestamp, inside: bool) -> bool:
        """Where the fit ends that begins or began at `start`; whether that lies ahead."""
        ssr = self._state.steps.ssr
        if duration is not None:
            return self._move_end(self._after(duration_of(duration, ssr, "duration"), start), inside)
        if until is not None:
            return self._move_end(duration_of(until, ssr, "until"), inside)
        return self._state.progress < 1

    def _after(self, duration: Time, start: Timestamp) -> Time:
        """`duration` from there, in its unit (whole batches for epochs, which may be under way)."""
        per_epoch = self._state.steps.per_epoch
        more = total_steps(duration, per_epoch, 1, 1) if duration.unit is TimeUnit.EPOCH else None
        unit = TimeUnit.BATCH if more is not None else duration.unit
        return Time(start.get(unit) + (duration.value if more is None else more), unit)

    def _move_end(self, end: Time, inside: bool) -> bool:
        """Let training end there, in its schedules as well; False where it is there already.

        Then nothing is moved, unless it goes on `inside` a fit that has yet to be closed.
        """
        state = self._state
        steps = steps_of(end, self._sizes, state.steps.ssr)
        done = (
            state.timestamp.get(end.unit) / end.value if end.unit in OPEN_ENDED else state.timestamp.batch / steps.total
        )
        if done < 1 or inside:
            state.max_duration, state.steps = end, steps
        return done < 1


def _place(state: State) -> str:
    now = state.timestamp
    return f"epoch {now.epoch}, batch {now.batch}, of {state.max_duration}"
