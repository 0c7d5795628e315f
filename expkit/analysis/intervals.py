"""Confidence intervals of means: Student's t on what each seed gives, and with the error pooled over all arms.

Shapes: C arms (cells), S seeds. Of scipy only `special` is used, inside functions.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expkit.analysis import phrases
from expkit.analysis.estimates import Interval, Pooling

HOMOGENEITY_P = 0.01
"""Below this p of Bartlett's test the arms' spreads are called unequal and no error is pooled."""

Array = NDArray[np.float64]


def finite_of(values: ArrayLike) -> Array:
    """The finite values, in one dimension."""
    flat: Any = np.asarray(values, dtype=float).ravel()
    return np.asarray(flat[np.isfinite(flat)], dtype=float)


def t_interval(values: ArrayLike, level: float = 0.95, method: str = "paired t") -> Interval:
    """Mean +- t_{(1+level)/2, n-1} sd / sqrt n over the finite values; no ends where n < 2, no value where n = 0.

    Student (1908); speedup-science A5.
    """
    finite = finite_of(values)
    if finite.size == 0:
        return Interval(level=level)
    mean = float(finite.mean())
    if finite.size < 2:
        return Interval(mean, None, None, 1, level)
    half = t_quantile(level, finite.size - 1) * float(finite.std(ddof=1)) / math.sqrt(finite.size)
    return Interval(mean, mean - half, mean + half, int(finite.size), level, method)


def exp(interval: Interval) -> Interval:
    """The interval of a log ratio as one of a ratio; symmetric under inversion of the ratio.

    Ends beyond the range of floats become 0 or the greatest float, so that nothing downstream meets inf.
    """
    ends = [None if v is None else _exp(v) for v in (interval.value, interval.lo, interval.hi)]
    return replace(interval, value=ends[0], lo=ends[1], hi=ends[2])


def excludes(interval: Interval, nothing: float = 0.0) -> bool:
    """Whether the interval leaves out `nothing`."""
    return interval.lo is not None and interval.hi is not None and not interval.lo <= nothing <= interval.hi


@dataclass(frozen=True)
class PooledError:
    """SD of one trial about its arm's and its block's mean, over all arms; df = (C - P)(S - 1), P points."""

    sd: float
    df: int
    homogeneity_p: float


def pooled_error(values_CS: ArrayLike, points: Sequence[Hashable] = ()) -> PooledError | None:
    """The within-block error of a complete table of arms by seeds, or None where it must not be pooled; `pooling`."""
    return error_of(pooling(values_CS, points))


def error_of(found: Pooling) -> PooledError | None:
    """The error that serves all arms, None where each has its own."""
    if not found.used or found.sd is None or found.df is None or found.homogeneity_p is None:
        return None
    return PooledError(found.sd, found.df, found.homogeneity_p)


def pooling(values_CS: ArrayLike, points: Sequence[Hashable] = ()) -> Pooling:
    """The within-block error of a complete table of arms by seeds, and whether one error may serve all arms.

    `points`: the parameter point of each arm, where there are several; a block is a seed at one point.
    Not used where a value is missing, there are fewer than two arms or seeds, or Bartlett's test on the arms' residuals
    gives p < 0.01. A baseline that is the mean of two replicates varies less than a trial does; pooling it in makes no
    interval of a difference too short. speedup-science A8 (b); Bartlett (1937).
    """
    table = np.asarray(values_CS, dtype=float)
    if table.ndim != 2 or min(table.shape) < 2:
        return Pooling(sentence="Each arm has an error of its own: fewer than two arms or two seeds.")
    if not np.isfinite(table).all():
        return Pooling(sentence=f"Each arm has an error of its own: {_holes(table)}.")
    residuals, groups = _residuals(table, points)
    df = (table.shape[0] - groups) * (table.shape[1] - 1)
    if not df:
        return Pooling(sentence="Each arm has an error of its own: no parameter point has two arms.")
    sd, p = math.sqrt(float((residuals**2).sum()) / df), bartlett_p(residuals)
    test = f"(Bartlett's test, p = {phrases.significant(p, 2)})"
    if p < HOMOGENEITY_P:
        return Pooling(False, sd, df, p, f"Each arm has an error of its own: the arms' spreads differ {test}.")
    shared = f"One error is pooled over all arms: SD {phrases.share(sd)} of a time, {df} degrees of freedom"
    return Pooling(True, sd, df, p, f"{shared}; the arms' spreads do not differ {test}.")


def _holes(table: Array) -> str:
    missing = int((~np.isfinite(table)).sum())
    return f"{missing} of {table.size} pairs {'is' if missing == 1 else 'are'} missing"


def _residuals(table: Array, points: Sequence[Hashable]) -> tuple[Array, int]:
    """What is left of each value without its arm's and its block's mean, and the number of parameter points."""
    groups = [np.array([p == point for p in points]) for point in dict.fromkeys(points)] or [np.full(len(table), True)]
    residuals = np.zeros(table.shape)
    for rows in groups:
        centred = table[rows] - table[rows].mean(axis=1, keepdims=True)
        residuals[rows] = centred - centred.mean(axis=0, keepdims=True)
    return residuals, len(groups)


def bartlett_p(residuals_CS: ArrayLike) -> float:
    """p of equal variances over the C rows; 1 where all are (nearly) zero, 0 where only some are.

    [(N - C) ln s^2 - sum (S - 1) ln s_c^2] / (1 + (C / (S - 1) - 1 / (N - C)) / (3 (C - 1))) is chi^2 of C - 1 degrees
    of freedom, N = C S, s^2 the mean of the s_c^2. Bartlett (1937).
    """
    from scipy.special import chdtrc  # scipy.stats has it too, and takes two seconds to import

    residuals = np.asarray(residuals_CS, dtype=float)
    num_rows, num_columns = residuals.shape
    variances = residuals.var(axis=1, ddof=1)
    negligible = variances <= 1e-24 * max(float(variances.max()), 1e-12)
    if negligible.all() or float(variances.max()) < 1e-24:
        return 1.0
    if negligible.any():
        return 0.0
    if num_rows == 2:
        return 1.0  # two arms: the residuals mirror each other, there is nothing to compare
    df = num_columns - 1
    statistic = num_rows * df * math.log(float(variances.mean())) - df * float(np.log(variances).sum())
    correction = 1 + (num_rows / df - 1 / (num_rows * df)) / (3 * (num_rows - 1))
    return float(chdtrc(num_rows - 1, statistic / correction))


def pooled_interval(mean: float, weights: ArrayLike, error: PooledError, n: int, level: float = 0.95) -> Interval:
    """Of a contrast sum_c w_c * (mean of arm c over n seeds): +- t_{df} * sd * sqrt(sum w^2 / n). A8."""
    spread = float(np.square(np.asarray(weights, dtype=float)).sum())
    half = t_quantile(level, error.df) * error.sd * math.sqrt(spread / n)
    return Interval(mean, mean - half, mean + half, n, level, "pooled t")


@functools.cache
def t_quantile(level: float, df: float) -> float:
    """The two-sided quantile: 2.776 at level 0.95 with 4 degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(df, 0.5 + level / 2))


def t_two_sided_p(t: float, df: float) -> float:
    """P(|T| >= |t|)."""
    from scipy.special import stdtr

    return float(2 * stdtr(df, -abs(t)))


def _exp(log_ratio: float) -> float:
    return math.exp(min(max(log_ratio, -700.0), 700.0))
