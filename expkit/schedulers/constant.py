"""Constant learning rate, after a warm-up if there is one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from expkit.duration import Time, TimeUnit
from expkit.functional import schedules
from expkit.trainer.contracts import WarmScheduler
from expkit.trainer.schedule import Steps


@dataclass
class Constant(WarmScheduler):
    """The same share of the learning rate all along, or up to `t_max`."""

    alpha: Annotated[float, Field(ge=0)] = 1.0
    """Share of the full rate."""
    t_max: Time = field(default=Time(1, TimeUnit.DURATION))
    """Span after which the rate is the full one, as of torch's ConstantLR."""

    def factor(self, step: int, steps: Steps) -> float:
        return schedules.constant(step, self.num_warmup(steps), steps.of(self.t_max), self.alpha)
