"""Constant learning rate, after a warm-up if there is one."""

from __future__ import annotations

from dataclasses import dataclass, field

from expkit.duration import Time, TimeUnit
from expkit.trainer.contracts import Scheduler
from expkit.trainer.schedule import Steps


@dataclass
class Constant(Scheduler):
    """The full learning rate all along; step k of a warm-up of W steps trains at (k + 1) / W of it."""

    warmup: Time = field(default=Time(0, TimeUnit.DURATION))
    """Span over which the rate rises in a straight line to its full value."""

    def factor(self, step: int, steps: Steps) -> float:
        num_warmup = round(steps.of(self.warmup))
        return (step + 1) / num_warmup if step < num_warmup else 1.0
