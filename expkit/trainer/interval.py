"""Intervals: something is due every so often, counted in any unit, once per crossing and never twice for a batch."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from expkit.duration import Time, TimeUnit
from expkit.errors import UsageError
from expkit.trainer.schedule import OPEN_ENDED

if TYPE_CHECKING:
    from expkit.trainer.state import State

_COUNTERS = {TimeUnit.SAMPLE: "sample", TimeUnit.TOKEN: "token", TimeUnit.SECOND: "train_s"}


class Every:
    """Due at the first batch end at or after each multiple of an interval; ask once at every batch end."""

    def __init__(self, interval: Time, state: State) -> None:
        """`interval` is taken as the recipe has it and scaled by the state's ssr."""
        if interval.value <= 0:
            raise UsageError(f"an interval must be positive, but got {interval}")
        self._counter, self._length = _resolve(interval.scaled(state.steps.ssr), state)
        self._next = self._after(getattr(state.timestamp, self._counter))

    def due(self, state: State) -> bool:
        """Whether a multiple of the interval was reached since the last time it was due."""
        position = getattr(state.timestamp, self._counter)
        if position < self._next:
            return False
        self._next = self._after(position)
        return True

    def _after(self, position: float) -> float:
        """Where it is due next: the first multiple beyond `position`, rounded up to a whole count."""
        multiple = (math.floor(Fraction(position) / self._length) + 1) * self._length
        return float(multiple) if self._counter == "train_s" else math.ceil(multiple)


def _resolve(interval: Time, state: State) -> tuple[str, Fraction]:
    length = Fraction(repr(interval.value))  # 0.1 means a tenth, not the float next to it
    if interval.unit is TimeUnit.DURATION:
        if state.max_duration.unit in OPEN_ENDED:
            return _COUNTERS[state.max_duration.unit], length * Fraction(repr(state.max_duration.value))
        return "batch", length * state.steps.total
    if interval.unit is TimeUnit.EPOCH:
        return "batch", length * state.steps.per_epoch
    if interval.unit is TimeUnit.ITERATION:
        raise UsageError(f"an interval is counted in ep, ba, sp, tok, dur or sec, but got {interval}")
    return _COUNTERS.get(interval.unit, "batch"), length
