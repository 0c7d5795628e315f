"""A power of what is left of training, after a warm-up if there is one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from expkit.duration import Time, TimeUnit
from expkit.functional import schedules
from expkit.trainer.contracts import WarmScheduler
from expkit.trainer.schedule import Steps


@dataclass
class Polynomial(WarmScheduler):
    """From the full learning rate down as a power of what is left."""

    power: Annotated[float, Field(gt=0)] = 2.0
    """1 is a straight line; more falls faster at the start."""
    alpha_f: Annotated[float, Field(ge=0)] = 0.0
    """Share of the full rate at `t_max` and after it."""
    t_max: Time = field(default=Time(1, TimeUnit.DURATION))
    """Where the curve ends, warm-up included; the rate stays there."""

    def factor(self, step: int, steps: Steps) -> float:
        num_warmup, end = self.num_warmup(steps), steps.of(self.t_max)
        return schedules.polynomial(step, num_warmup, end, self.power, self.alpha_f)
