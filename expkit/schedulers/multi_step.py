"""The learning rate in steps at given moments, after a warm-up if there is one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from expkit.duration import Time
from expkit.functional import schedules
from expkit.trainer.contracts import WarmScheduler
from expkit.trainer.schedule import Steps


@dataclass
class MultiStep(WarmScheduler):
    """Multiplied by `gamma` at each milestone; the first step at or after it trains at the new rate."""

    milestones: Annotated[tuple[Time, ...], Field(min_length=1)]
    """Moments at which the rate changes, such as [0.5dur, 0.75dur]; one given twice counts twice."""
    gamma: Annotated[float, Field(ge=0)] = 0.1
    """What the rate is multiplied with each time."""

    def factor(self, step: int, steps: Steps) -> float:
        dropped = schedules.multi_step(step, map(steps.of, self.milestones), self.gamma)
        return schedules.warm_up(step, self.num_warmup(steps)) * dropped
