"""Time at equal quality and quality at equal time, from whole runs at several budgets; never extrapolated.

One point a budget: its mean log-time and mean quality over seeds. Between budgets quality is taken for linear in
log-time, after the isotonic fit that makes it rise. Intervals by the delta method: every result is linearised in the
points, so each seed has a value of its own and Student's t over seeds applies. speedup-science A6.
Shapes: K budgets, S seeds; qualities so that more is better.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from expkit.analysis.estimates import Interval
from expkit.analysis.intervals import Array, exp, t_interval

METHOD = "paired t, delta method"


@dataclass(frozen=True)
class TradeOff:
    """The curve of one arm: by budget mean log-time and the isotonic fit of mean quality, from the shortest up."""

    log_time_K: Array
    quality_K: Array
    """Never falling."""
    pool_KK: Array
    """quality_K = pool_KK @ means: budgets at which quality fell share one level."""
    seeds_log_time_KS: Array
    seeds_quality_KS: Array


def trade_off(log_time_KS: ArrayLike, quality_KS: ArrayLike) -> TradeOff:
    """The curve of K budgets by S seeds, tables without holes; isotonic by pooling neighbours, Ayer et al. (1955)."""
    times, qualities = np.asarray(log_time_KS, dtype=float), np.asarray(quality_KS, dtype=float)
    order = np.argsort(times.mean(axis=1), kind="stable")
    times, qualities = times[order], qualities[order]
    pool = _pooled(qualities.mean(axis=1))
    return TradeOff(times.mean(axis=1), pool @ qualities.mean(axis=1), pool, times, qualities)


def overlap(base: TradeOff, arm: TradeOff) -> tuple[float, float] | None:
    """The qualities that both reach and none only by extrapolation; None where there are none."""
    lo = max(float(base.quality_K[0]), float(arm.quality_K[0]))
    hi = min(float(base.quality_K[-1]), float(arm.quality_K[-1]))
    return (lo, hi) if lo < hi else None


def log_time_at(curve: TradeOff, quality: float) -> float | None:
    """The least log-time at which the curve has the quality; None outside its range."""
    found = _time(curve, quality)
    return None if found is None else found[0]


def speedup_at(base: TradeOff, arm: TradeOff, quality: float, level: float = 0.95) -> Interval:
    """S(q) = Q_0^-1(q) / Q_c^-1(q), paired by seed; no value for a quality that one of the curves does not reach."""
    sides = _time(base, quality), _time(arm, quality)
    if sides[0] is None or sides[1] is None:
        return Interval(level=level)
    return exp(_paired(sides[0][0] - sides[1][0], sides[0][1] - sides[1][1], level))


def smooth_speedup_at(base: TradeOff, arm: TradeOff, quality: float) -> float | None:
    """The same with a monotone cubic (PCHIP) of log-time in quality: how much the shape between budgets matters."""
    from scipy.interpolate import PchipInterpolator

    times = []
    for curve in (base, arm):
        levels, first = np.unique(curve.quality_K, return_index=True)
        if len(levels) < 2 or not levels[0] <= quality <= levels[-1]:
            return None
        times.append(float(PchipInterpolator(levels, curve.log_time_K[first])(quality)))
    return math.exp(times[0] - times[1])


def speedup_range(base: TradeOff, arm: TradeOff) -> tuple[float, float] | None:
    """The least and greatest S(q) over the overlap; both lie at its ends or at a budget of one of the curves."""
    common = overlap(base, arm)
    if common is None:
        return None
    places = [q for q in (*base.quality_K.tolist(), *arm.quality_K.tolist()) if common[0] <= q <= common[1]]
    logs = [speedup_at(base, arm, q).value for q in (*common, *places)]
    known = [value for value in logs if value is not None]
    return min(known), max(known)


def gain_at(base: TradeOff, arm: TradeOff, log_time: float, level: float = 0.95) -> Interval:
    """D(u) = Q_c(ln u) - Q_0(ln u), paired by seed; no value where one of the curves has no run so short or so long."""
    sides = _quality(base, log_time), _quality(arm, log_time)
    if sides[0] is None or sides[1] is None:
        return Interval(level=level)
    return _paired(sides[1][0] - sides[0][0], sides[1][1] - sides[0][1], level)


def _paired(value: float, deviations_S: Array, level: float) -> Interval:
    found = t_interval(value + deviations_S, level, METHOD)
    return Interval(value, found.lo, found.hi, found.n, level, found.method)


def _time(curve: TradeOff, quality: float) -> tuple[float, Array] | None:
    """(log-time at a quality, each seed's deviation from it): (1 - w) x_a + w x_b, w = (q - Q_a) / (Q_b - Q_a)."""
    x, q = curve.log_time_K, curve.quality_K
    if not q[0] <= quality <= q[-1]:
        return None
    b = int(np.searchsorted(q, quality, side="left"))  # the first budget that is there
    by_time, by_quality = np.zeros(len(x)), np.zeros(len(x))
    if q[b] == quality:
        slope = _slope(curve, b)
        by_time[b], by_quality[b] = 1.0, -1 / slope if slope > 0 else 0.0
        return float(x[b]), _deviations(curve, by_time, by_quality)
    a, rise, run = b - 1, float(q[b] - q[b - 1]), float(x[b] - x[b - 1])
    w = (quality - float(q[a])) / rise
    by_time[[a, b]], by_quality[[a, b]] = (1 - w, w), (-(1 - w) * run / rise, -w * run / rise)
    return float((1 - w) * x[a] + w * x[b]), _deviations(curve, by_time, by_quality)


def _quality(curve: TradeOff, log_time: float) -> tuple[float, Array] | None:
    """(quality at a log-time, each seed's deviation from it)."""
    x, q = curve.log_time_K, curve.quality_K
    if len(x) < 2 or not x[0] <= log_time <= x[-1]:
        return None
    b = max(1, int(np.searchsorted(x, log_time, side="left")))
    a, run = b - 1, float(x[b] - x[b - 1])
    w = (log_time - float(x[a])) / run if run > 0 else 1.0
    slope = float(q[b] - q[a]) / run if run > 0 else 0.0
    by_time, by_quality = np.zeros(len(x)), np.zeros(len(x))
    by_time[[a, b]], by_quality[[a, b]] = (-(1 - w) * slope, -w * slope), (1 - w, w)
    return float((1 - w) * q[a] + w * q[b]), _deviations(curve, by_time, by_quality)


def _slope(curve: TradeOff, at: int) -> float:
    """Quality per log-time at a budget, the mean of the segments that meet there; 0 where it is level."""
    x, q = curve.log_time_K, curve.quality_K
    slopes = [float(q[i + 1] - q[i]) / float(x[i + 1] - x[i]) for i in (at - 1, at)
              if 0 <= i < len(x) - 1 and x[i + 1] > x[i]]  # fmt: skip
    rising = [s for s in slopes if s > 0]
    return sum(rising) / len(rising) if rising else 0.0


def _deviations(curve: TradeOff, by_time_K: Array, by_quality_K: Array) -> Array:
    """(S,) sum over budgets of derivative x (seed - mean): what each seed alone would move the result by."""
    times = curve.seeds_log_time_KS - curve.log_time_K[:, None]
    qualities = curve.seeds_quality_KS - curve.seeds_quality_KS.mean(axis=1, keepdims=True)
    return np.asarray(by_time_K @ times + (curve.pool_KK.T @ by_quality_K) @ qualities, dtype=float)


def _pooled(quality_K: Array) -> Array:
    """(K, K): row k averages the budgets that share a level with k in the isotonic fit."""
    groups: list[list[int]] = []
    for k in range(len(quality_K)):
        groups.append([k])
        while len(groups) > 1 and quality_K[groups[-2]].mean() > quality_K[groups[-1]].mean():
            groups[-2:] = [groups[-2] + groups[-1]]
    pool = np.zeros((len(quality_K), len(quality_K)))
    for group in groups:
        pool[np.ix_(group, group)] = 1 / len(group)
    return pool
