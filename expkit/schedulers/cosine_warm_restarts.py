"""Cosines with restarts, SGDR. Loshchilov and Hutter 2016, arXiv 1608.03983."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from expkit.duration import Time
from expkit.functional import schedules
from expkit.trainer.contracts import WarmScheduler
from expkit.trainer.schedule import Steps


@dataclass
class CosineWarmRestarts(WarmScheduler):
    """Half a cosine down, again and again, each from the full learning rate."""

    t_0: Time
    """Length of the first cosine."""
    t_mult: Annotated[float, Field(ge=1)] = 1.0
    """How many times as long as the one before each further cosine is."""
    alpha_f: Annotated[float, Field(ge=0)] = 0.0
    """Share of the full rate where each cosine ends."""

    def factor(self, step: int, steps: Steps) -> float:
        restarts = schedules.cosine_restarts(step, steps.of(self.t_0), self.t_mult, self.alpha_f)
        return schedules.warm_up(step, self.num_warmup(steps)) * restarts
