"""Intervals: something is due every so often, counted in any unit, once per crossing and never twice for a batch."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from expkit.duration import Time, Timestamp, TimeUnit
from expkit.errors import UsageError
from expkit.trainer.schedule import OPEN_ENDED

if TYPE_CHECKING:
    from expkit.duration import Timestamp
    from expkit.trainer.state import State

_COUNTERS = {TimeUnit.SAMPLE: "sample", TimeUnit.TOKEN: "token", TimeUnit.SECOND: "train_s"}


class Every:
    """Due at the first batch end at or after each multiple of an interval; ask at every batch end.

    Several multiples within one batch make it due once. What is due follows from where training is and nothing else,
    so a resumed training is due where it would have been.
    """

    def __init__(self, interval: Time, state: State, *, since: Timestamp | None = None) -> None:
        """`interval` is taken as the recipe has it and scaled by the state's ssr.

        `since`: where the last multiple was looked for, by default where training is.
        """
        if interval.value <= 0:
            raise UsageError(f"an interval must be positive, but got {interval}")
        self._iterations = 1
        if interval.unit is TimeUnit.ITERATION:
            self._iterations, interval = int(interval.value), _iteration_length(interval, state)
        self._counter, self._length = resolve(interval.scaled(state.steps.ssr), state)
        self._next = self._after(getattr(since or state.timestamp, self._counter))
        self._last = -1

    def due(self, state: State, *, ended: bool = False) -> bool:
        """Whether a multiple of the interval was reached since the last time it was due, or training has `ended`.

        No batch is due twice, the last one neither where it is also a multiple.
        """
        position = getattr(state.timestamp, self._counter)
        reached = position >= self._next
        if reached:
            self._next = self._after(position)
            reached = self._iterations == 1 or (state.timestamp.iteration + 1) % self._iterations == 0
        if not reached and (not ended or self._last == state.timestamp.batch):
            return False
        self._last = state.timestamp.batch
        return True

    def _after(self, position: float) -> float:
        following = next_multiple(position, self._length)
        if self._counter != "train_s":
            return math.ceil(following)
        near = float(following)
        return near if near >= following else math.nextafter(near, math.inf)  # a hair early would be due twice


def next_multiple(position: float, length: Fraction) -> Fraction:
    """The first multiple of `length` beyond `position`: after 7 batches of every 2.5 it is 7.5, after 7.5 it is 10."""
    return (math.floor(Fraction(position) / length) + 1) * length


def _iteration_length(interval: Time, state: State) -> Time:
    if state.iteration_length is None:
        raise UsageError(f"an interval of {interval} needs to know how long an iteration is; give iteration_length")
    return state.iteration_length


def resolve(interval: Time, state: State) -> tuple[str, Fraction]:
    """The counter of the timestamp that measures an interval, scaled already, and how far it is on that counter."""
    length = Fraction(repr(interval.value))  # 0.1 means a tenth, not the float next to it
    if interval.unit is TimeUnit.DURATION:
        if state.max_duration.unit in OPEN_ENDED:
            return _COUNTERS[state.max_duration.unit], length * Fraction(repr(state.max_duration.value))
        return "batch", length * state.steps.total
    if interval.unit is TimeUnit.EPOCH:
        return "batch", length * state.steps.per_epoch
    return _COUNTERS.get(interval.unit, "batch"), length
