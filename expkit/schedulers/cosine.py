"""Half a cosine down, after a warm-up if there is one. Loshchilov and Hutter 2016, arXiv 1608.03983."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from expkit.duration import Time, TimeUnit
from expkit.functional import schedules
from expkit.trainer.contracts import WarmScheduler
from expkit.trainer.schedule import Steps


@dataclass
class Cosine(WarmScheduler):
    """From the full learning rate down half a cosine."""

    alpha_f: Annotated[float, Field(ge=0)] = 0.0
    """Share of the full rate at `t_max` and after it."""
    t_max: Time = field(default=Time(1, TimeUnit.DURATION))
    """Where the cosine ends, warm-up included; the rate stays there."""

    def factor(self, step: int, steps: Steps) -> float:
        return schedules.cosine(step, self.num_warmup(steps), steps.of(self.t_max), self.alpha_f)
