"""A straight line down, after a warm-up if there is one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from expkit.duration import Time, TimeUnit
from expkit.functional import schedules
from expkit.trainer.contracts import WarmScheduler
from expkit.trainer.schedule import Steps


@dataclass
class Linear(WarmScheduler):
    """From one share of the learning rate straight to another; by default from all of it to nothing."""

    alpha_i: Annotated[float, Field(ge=0)] = 1.0
    """Share of the full rate at the start, or at the end of the warm-up."""
    alpha_f: Annotated[float, Field(ge=0)] = 0.0
    """Share of the full rate at `t_max` and after it."""
    t_max: Time = field(default=Time(1, TimeUnit.DURATION))
    """Where the line ends, warm-up included; the rate stays there."""

    def factor(self, step: int, steps: Steps) -> float:
        num_warmup, end = self.num_warmup(steps), steps.of(self.t_max)
        return schedules.linear(step, num_warmup, end, self.alpha_i, self.alpha_f)
