"""The learning rate in steps of equal length, after a warm-up if there is one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from expkit.duration import Time
from expkit.functional import schedules
from expkit.trainer.contracts import WarmScheduler
from expkit.trainer.schedule import Steps


@dataclass
class Step(WarmScheduler):
    """Multiplied by `gamma` every `step_size`."""

    step_size: Time
    """Span between two changes of the rate."""
    gamma: Annotated[float, Field(ge=0)] = 0.1
    """What the rate is multiplied with each time."""

    def factor(self, step: int, steps: Steps) -> float:
        dropped = schedules.every_step(step, steps.of(self.step_size), self.gamma)
        return schedules.warm_up(step, self.num_warmup(steps)) * dropped
