"""Schedules of the learning rate as functions of the step, counted from 0: what it multiplies the rate with. No torch.

Step k of a warm-up of W steps trains at (k + 1) / W, so that none trains at 0 and the last one at the full rate.
Lengths are in steps, whole or not; `alpha_f` is the share of the full rate at the end and after it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from expkit.duration import Time, TimeUnit


def warm_up(step: int, num_warmup: int) -> float:
    """A straight line up to 1 at the last step of the warm-up, 1 after it."""
    return (step + 1) / num_warmup if step < num_warmup else 1.0


def constant(step: int, num_warmup: int, num_steps: float, alpha: float) -> float:
    """`alpha` up to step `num_steps`, the full rate from there on."""
    return warm_up(step, num_warmup) * (alpha if step < num_steps else 1.0)


def linear(step: int, num_warmup: int, num_steps: float, alpha_i: float, alpha_f: float) -> float:
    """A straight line from `alpha_i` at the end of the warm-up to `alpha_f` at step `num_steps`, flat after it."""
    if step < num_warmup:
        return alpha_i * warm_up(step, num_warmup)
    return alpha_i + (alpha_f - alpha_i) * _share(step, num_warmup, num_steps)


def polynomial(step: int, num_warmup: int, num_steps: float, power: float, alpha_f: float) -> float:
    """A power of what is left, from 1 at the end of the warm-up to `alpha_f` at step `num_steps`, flat after it."""
    if step < num_warmup:
        return warm_up(step, num_warmup)
    return alpha_f + (1 - alpha_f) * math.pow(1 - _share(step, num_warmup, num_steps), power)


def cosine(step: int, num_warmup: int, num_steps: float, alpha_f: float) -> float:
    """Half a cosine from 1 at the end of the warm-up to `alpha_f` at step `num_steps`, flat after it."""
    if step < num_warmup:
        return warm_up(step, num_warmup)
    return half_cosine(_share(step, num_warmup, num_steps), alpha_f)


def cosine_restarts(step: int, first: float, growth: float, alpha_f: float) -> float:
    """Half cosines from 1 to `alpha_f`, one after the other: `first` steps long, each `growth` times the one before."""
    position, length = cycle(step, first, growth)
    return half_cosine(position / length, alpha_f)


def exponential(step: int, period: float, gamma: float) -> float:
    """Multiplied by `gamma` over each period, a little at every step."""
    return math.pow(gamma, step / period)


def multi_step(step: int, milestones: Iterable[float], gamma: float) -> float:
    """Multiplied by `gamma` at each milestone; the first step at or after it trains at the new rate."""
    return math.pow(gamma, sum(step >= milestone for milestone in milestones))


def every_step(step: int, size: float, gamma: float) -> float:
    """Multiplied by `gamma` every `size` steps."""
    return math.pow(gamma, math.floor(step / size))


def half_cosine(share: float, alpha_f: float) -> float:
    """From 1 at share 0 to `alpha_f` at share 1."""
    return alpha_f + (1 - alpha_f) * (1 + math.cos(math.pi * share)) / 2


def cycle(step: int, first: float, growth: float) -> tuple[float, float]:
    """Where in its cycle a step lies, and how long that cycle is; the first has `first` steps, the next grow."""
    if growth == 1:
        return step % first, first
    position, length = float(step), first
    while position >= length:
        position -= length
        length *= growth
    return position, length


def require_steps(name: str, time: Time) -> None:
    """ValueError for a setting in a unit that is known only while training goes on."""
    if time.unit in (TimeUnit.SECOND, TimeUnit.ITERATION):
        raise ValueError(f"{name} is counted in ep, ba, sp, tok or dur, but got {time}")


def _share(step: int, start: float, end: float) -> float:
    return 1.0 if step >= end else (step - start) / (end - start)
