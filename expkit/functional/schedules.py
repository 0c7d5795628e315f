"""Schedules of the learning rate as functions of whole steps: what step k, from 0, multiplies it with. No torch here.

Step k of a warm-up of W steps trains at (k + 1) / W, so that none trains at 0 and the last one at the full rate.
"""

from __future__ import annotations

import math

from expkit.duration import Time, TimeUnit


def constant(step: int, num_warmup: int) -> float:
    """The full rate once warm."""
    return (step + 1) / num_warmup if step < num_warmup else 1.0


def linear(step: int, num_warmup: int, num_steps: int, alpha_f: float) -> float:
    """A straight line from 1 at the end of the warm-up to `alpha_f` at step `num_steps`, flat after it."""
    if step < num_warmup:
        return constant(step, num_warmup)
    return 1 + (alpha_f - 1) * _share(step, num_warmup, num_steps)


def cosine(step: int, num_warmup: int, num_steps: int, alpha_f: float) -> float:
    """Half a cosine from 1 at the end of the warm-up to `alpha_f` at step `num_steps`, flat after it."""
    if step < num_warmup:
        return constant(step, num_warmup)
    return alpha_f + (1 - alpha_f) * (1 + math.cos(math.pi * _share(step, num_warmup, num_steps))) / 2


def require_steps(name: str, time: Time) -> None:
    """ValueError for a setting in a unit that is known only while training goes on."""
    if time.unit in (TimeUnit.SECOND, TimeUnit.ITERATION):
        raise ValueError(f"{name} is counted in ep, ba, sp, tok or dur, but got {time}")


def _share(step: int, num_warmup: int, num_steps: int) -> float:
    return min(1.0, (step - num_warmup) / max(1, num_steps - num_warmup))
