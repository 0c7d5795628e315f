"""Time to target of one trial: when its evaluations reach a quality and, by the rule asked for, keep it.

Formulas: speedup-science A3. A trial that never gets there is right-censored at its last evaluation: a miss is never
dropped and never imputed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from expkit.analysis.intervals import Array
from expkit.errors import UsageError, unknown

Rule = Literal["first", "sustained", "to_end", "median3"]
Mode = Literal["max", "min"]
RULES: tuple[str, ...] = get_args(Rule)


@dataclass(frozen=True)
class Crossing:
    """Where a trial reached the target, in the unit of its clock."""

    hit: bool
    t: float | None
    """The time, None for a miss."""
    known_at: float | None
    """When the rule was satisfied: for `sustained` the last evaluation of the streak, for `to_end` the trial's last."""
    bracket: tuple[float, float] | None
    """(last evaluation below, first one there]: the true crossing lies in it."""
    left_censored: bool
    """There at the first evaluation already: the true time is at most `t`."""
    horizon: float | None
    """The last evaluation; a miss means `t > horizon`. None for a trial without evaluations."""


def time_to_target(
    clock_s: ArrayLike,
    quality: ArrayLike,
    target: float,
    mode: Mode = "max",
    *,
    rule: Rule = "sustained",
    r: int = 2,
    interpolate: bool = True,
) -> Crossing:
    """When one trial's evaluations (m clock readings, m values) reach `target`.

    first: the first evaluation there. sustained: the first of `r` in succession, or of a shorter streak that lasts to
    the end. to_end: the first after which none misses. median3: the first where the median of the last three (causal)
    is there. Interpolated: u_{j-1} + (g - z_{j-1}) / (z_j - z_{j-1}) * (u_j - u_{j-1}), and u_1 where j = 1.
    NaN evaluations are dropped; infinite ones miss; equality hits. UsageError for an unknown rule or mode, r < 1, or
    a target that is no finite number.
    """
    _check(target, mode, rule, r)
    clock, height = _series(clock_s, quality, mode)
    goal = target if mode == "max" else -target
    if rule == "median3":
        height = _median3(height)
    streak = {"sustained": r, "to_end": len(height)}.get(rule, 1)
    j = _start(height >= goal, streak)
    horizon = float(clock[-1]) if len(clock) else None
    if j is None:
        return Crossing(False, None, None, None, False, horizon)
    return _crossing(clock, height, goal, j, min(j + streak, len(clock)) - 1, interpolate)


def _check(target: float, mode: str, rule: str, r: int) -> None:
    if rule not in RULES:
        raise UsageError(unknown("rule of time to target", rule, RULES))
    if mode not in ("max", "min"):
        raise UsageError(f"mode must be max or min, but got {mode!r}")
    if r < 1:
        raise UsageError(f"a streak must be of at least 1 evaluation, but got r={r}")
    if not math.isfinite(target):
        raise UsageError(f"a target must be a finite number, but got {target}")


def _series(clock_s: ArrayLike, quality: ArrayLike, mode: str) -> tuple[Array, Array]:
    """Finite clock readings in order, and heights of which more is better, -inf for whatever is infinite."""
    clock, height = np.asarray(clock_s, dtype=float), np.asarray(quality, dtype=float)
    if clock.shape != height.shape or clock.ndim != 1:
        raise UsageError(f"clock and quality must be series of one length, but got {clock.shape} and {height.shape}")
    kept = np.isfinite(clock) & ~np.isnan(height)
    clock, height = clock[kept], height[kept] if mode == "max" else -height[kept]
    order = np.argsort(clock, kind="stable")
    return clock[order], np.where(np.isinf(height[order]), -np.inf, height[order])


def _median3(height: Array) -> Array:
    trailing = [np.median(height[max(0, j - 2) : j + 1]) for j in range(len(height))]
    return np.asarray(trailing, dtype=float)


def _start(there: np.typing.NDArray[np.bool_], streak: int) -> int | None:
    """First j with `streak` successive hits, or with hits to the end where fewer are left."""
    if not there.any():
        return None
    misses = np.flatnonzero(~there)
    starts = np.concatenate(([0], misses + 1))
    ends = np.concatenate((misses, [len(there)]))
    long_enough = (ends - starts >= streak) | ((ends == len(there)) & (starts < len(there)))
    found = np.flatnonzero(long_enough)
    return int(starts[found[0]]) if len(found) else None


def _crossing(clock: Array, height: Array, goal: float, j: int, known: int, interpolate: bool) -> Crossing:
    at = float(clock[j])
    before = float(clock[j - 1]) if j else 0.0
    if interpolate and j and np.isfinite(height[j - 1]):
        share = (goal - height[j - 1]) / (height[j] - height[j - 1])
        at = min(before + float(share) * (at - before), at)
    return Crossing(True, at, float(clock[known]), (before, float(clock[j])), j == 0, float(clock[-1]))
