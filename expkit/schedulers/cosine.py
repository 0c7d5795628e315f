"""Half a cosine down, after a warm-up if there is one. Loshchilov and Hutter 2016, arXiv 1608.03983."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from expkit.duration import Time, TimeUnit
from expkit.functional import schedules
from expkit.trainer.contracts import Scheduler
from expkit.trainer.schedule import Steps


@dataclass
class Cosine(Scheduler):
    """From the full learning rate down half a cosine; step k of a warm-up of W steps trains at (k + 1) / W of it."""

    warmup: Time = field(default=Time(0, TimeUnit.DURATION))
    """Span over which the rate rises in a straight line to its full value."""
    alpha_f: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of the full rate where the cosine ends, one step after the last."""

    def __post_init__(self) -> None:
        super().__post_init__()
        schedules.require_steps("warmup", self.warmup)

    def factor(self, step: int, steps: Steps) -> float:
        num_warmup = round(steps.of(self.warmup))
        return schedules.cosine(step, num_warmup, steps.total, self.alpha_f)
