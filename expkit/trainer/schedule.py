"""Schedules: durations resolved to steps once, learning rates as pure functions of the step. No torch here.

Step k, counted from 0, trains at f(k). `table` gives all rates of a training before it is started.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from expkit.duration import Time, TimeUnit
from expkit.errors import UsageError

OPEN_ENDED = frozenset({TimeUnit.SECOND, TimeUnit.TOKEN})
"""Units of a max_duration whose steps only training itself can count."""
Factor = Callable[[int, "Steps"], float]
"""(step, steps) -> what to multiply the learning rate with."""


@dataclass(frozen=True)
class Steps:
    """How long a training is and how its units convert, known once the loader and the ssr are."""

    total: int
    """Optimizer steps of the whole training; an estimate that moves where its length is in seconds or tokens."""
    per_epoch: int
    batch_size: int = 1
    """Samples of a full batch, summed over ranks."""
    tokens_per_batch: float = 0.0
    ssr: float = 1.0
    """Scale-schedule ratio; `total` is scaled already."""

    def of(self, time: Time, *, scale: bool = True) -> float:
        """A duration of the recipe in steps, under the ssr: `2ep` of 100 batches is 200.0, 50.0 at ssr 0.25.

        `scale`: whether the ssr applies; a share of the whole scales with it in any case.
        """
        scaled = time.scaled(self.ssr) if scale and self.ssr != 1 else time
        return round(scaled.value * self._each(scaled), 9)  # 0.7dur of 10 is 7 steps, not a hair more

    def _each(self, time: Time) -> float:
        """Steps of one of the unit."""
        if time.unit is TimeUnit.DURATION:
            return self.total
        if time.unit is TimeUnit.BATCH:
            return 1
        if time.unit is TimeUnit.EPOCH:
            return self.per_epoch
        if time.unit is TimeUnit.SAMPLE:
            return 1 / self.batch_size
        if time.unit is not TimeUnit.TOKEN:
            raise UsageError(f"{time} cannot be counted in steps; use ep, ba, sp, tok or dur")
        if not self.tokens_per_batch:
            raise UsageError(f"{time} cannot be counted in steps: the loader does not say how many tokens a batch has")
        return 1 / self.tokens_per_batch


def total_steps(duration: Time, per_epoch: int, batch_size: int, num_samples: int) -> int | None:
    """Steps until `duration` is reached, None where only training itself can tell (seconds, tokens).

    Counts every batch, the smaller last one of an epoch too; an epoch's fraction is rounded up to a whole batch.
    """
    if duration.unit is TimeUnit.BATCH:
        return int(duration.value)
    if duration.unit is TimeUnit.EPOCH:
        return math.ceil(Fraction(repr(duration.value)) * per_epoch)
    if duration.unit is TimeUnit.SAMPLE:
        epochs, rest = divmod(int(duration.value), num_samples)
        return epochs * per_epoch + math.ceil(rest / batch_size)
    return None


def table(factor: Factor, steps: Steps, base: float = 1.0) -> list[float]:
    """The learning rate of every step, before a launch: base * f(k) for k from 0 to total - 1."""
    return [base * factor(step, steps) for step in range(steps.total)]
