"""The learning rate falls by the same share all the time, after a warm-up if there is one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from expkit.duration import Time, TimeUnit
from expkit.functional import schedules
from expkit.trainer.contracts import WarmScheduler
from expkit.trainer.schedule import Steps


@dataclass
class Exponential(WarmScheduler):
    """Multiplied by `gamma` over each `decay_period`, a little at every step."""

    gamma: Annotated[float, Field(gt=0)]
    """What the rate is multiplied with over one period."""
    decay_period: Time = field(default=Time(1, TimeUnit.EPOCH))
    """Span of one period."""

    def factor(self, step: int, steps: Steps) -> float:
        decayed = schedules.exponential(step, steps.of(self.decay_period), self.gamma)
        return schedules.warm_up(step, self.num_warmup(steps)) * decayed
