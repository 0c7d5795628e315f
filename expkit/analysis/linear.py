"""Estimates of contrasts: weighted sums of the cells' means, with an interval and the p of no effect.

Shapes: M contrasts, C cells (arms), S seeds. Where a table is complete, a contrast is taken per seed; where trials are
missing, cells and blocks are fitted together, so that a seed with fewer cells does not pass for a slower one.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from expkit.analysis.estimates import Interval
from expkit.analysis.intervals import Array, PooledError, finite_of, t_quantile, t_two_sided_p


@dataclass(frozen=True)
class Estimate:
    """A contrast with its interval; `p` is two-sided, below 1 - level exactly where the interval leaves out 0."""

    interval: Interval = field(default_factory=Interval)
    p: float | None = None
    df: float | None = None
    """Of the interval's t quantile."""


def contrasts(
    weights_MC: ArrayLike, values_CS: ArrayLike, level: float = 0.95, error: PooledError | None = None
) -> list[Estimate]:
    """sum_c w_c v_cs per seed for each row of weights: mean and interval over the seeds that have all used cells.

    With `error`, the pooled within-block one, and a complete table the half-width is t_df sd sqrt(sum w^2 / n); else
    t_{n-1} sd / sqrt n over seeds. One seed has no interval, none has no value. 1,024 rows of 1,024 cells and 10
    seeds take 0.1 s.
    """
    weights, table = np.atleast_2d(np.asarray(weights_MC, dtype=float)), np.asarray(values_CS, dtype=float)
    there = np.isfinite(table)
    if there.all():
        return _of_seeds(weights @ table, weights, level, error)
    filled = np.where(there, table, 0.0)
    missing = (weights != 0).astype(float) @ (~there).astype(float)
    per_seed = np.where(missing == 0, weights @ filled, np.nan)
    return [_of_seeds(row[None, np.isfinite(row)], weights, level, None)[0] for row in per_seed]


def _of_seeds(per_seed_MS: Array, weights_MC: Array, level: float, error: PooledError | None) -> list[Estimate]:
    n = per_seed_MS.shape[1]
    if n == 0:
        return [Estimate(Interval(level=level))] * len(per_seed_MS)
    means = per_seed_MS.mean(axis=1)
    if error is not None:
        errors = error.sd * np.sqrt(np.square(weights_MC).sum(axis=1) / n)
        return [estimate(m, e, error.df, n, level, "pooled t") for m, e in zip(means, errors, strict=True)]
    if n < 2:
        return [Estimate(Interval(float(m), None, None, 1, level)) for m in means]
    errors = per_seed_MS.std(axis=1, ddof=1) / math.sqrt(n)
    return [estimate(m, e, n - 1, n, level, "t over seeds") for m, e in zip(means, errors, strict=True)]


def estimate(mean: float, standard_error: float, df: float, n: int, level: float, method: str) -> Estimate:
    """mean +- t_df se, and its p; without any spread a difference is certain and no difference is none."""
    value, error = float(mean), float(standard_error)
    half = t_quantile(level, df) * error
    p = t_two_sided_p(value / error, df) if error > 0 else float(value == 0)
    return Estimate(Interval(value, value - half, value + half, n, level, method), p, df)


@dataclass(frozen=True)
class PureError:
    """SD of one trial about its cell's and its block's mean, from a table that may have holes."""

    sd: float
    df: int


def pure_error(values_CS: ArrayLike, points: Sequence[Hashable] = ()) -> PureError | None:
    """From v_cs = cell + block + error by least squares over what is there; df = N - rank. None where df = 0.

    `points`: the parameter point of each cell; a block is a seed at one point. Cells are swept out first, so the
    system has one unknown a block: 1,024 cells by 10 seeds take a millisecond. On a complete table it is the pooled
    error of `intervals.pooling`.
    """
    table = np.asarray(values_CS, dtype=float)
    groups = np.array([list(dict.fromkeys(points)).index(p) for p in points] or [0] * len(table), dtype=np.int64)
    total, df = 0.0, 0
    for group in np.unique(groups):
        squares, left = _residual_squares(table[groups == group])
        total, df = total + squares, df + left
    return PureError(math.sqrt(total / df), df) if df > 0 else None


def _residual_squares(table: Array) -> tuple[float, int]:
    there = np.isfinite(table)
    there, table = there[there.any(axis=1)], table[there.any(axis=1)]
    if not there.size:
        return 0.0, 0
    num_C = there.sum(axis=1, keepdims=True)
    swept = np.where(there, table - np.nanmean(table, axis=1, keepdims=True), 0.0)
    blocks_SS = np.diag(there.sum(axis=0)) - there.T @ (there / num_C)
    effect_S, _, rank, _ = np.linalg.lstsq(blocks_SS, swept.sum(axis=0), rcond=1e-10)
    fitted = np.where(there, effect_S[None, :], 0.0)
    fitted -= np.where(there, fitted.sum(axis=1, keepdims=True) / num_C, 0.0)
    squares = float(np.square(swept - fitted).sum())
    return squares, int(there.sum()) - len(table) - int(rank)


def lenth(effects: ArrayLike, level: float = 0.95) -> Lenth | None:
    """Which of m contrasts of an unreplicated grid stand out: pseudo standard error and margins. None below m = 7.

    s_0 = 1.5 median |c|; PSE = 1.5 median of |c| < 2.5 s_0; margin t_{(1+level)/2, m/3} PSE for one effect, and with
    (1 + level^(1/m)) / 2 in place of (1 + level) / 2 for all at once. All contrasts must have equal variance, as
    those of a full grid or a regular fraction have. Assumes that few are active. Lenth (1989), Technometrics 31:469.
    """
    c = np.abs(finite_of(effects))
    m = len(c)
    if m < LEAST_LENTH:
        return None
    first = 1.5 * float(np.median(c))
    small = c[c < 2.5 * first] if first > 0 else c
    pse = 1.5 * float(np.median(small))
    one, all_ = (t_quantile(each, m / 3) * pse for each in (level, level ** (1 / m)))
    return Lenth(m, pse, one, all_, level)


LEAST_LENTH = 7
"""Contrasts: a 2^3 grid has seven; of three no half can be called inactive."""


@dataclass(frozen=True)
class Lenth:
    """`margin` for one effect looked at, `simultaneous` for the largest of all m; in the unit of the effects."""

    m: int
    pse: float
    margin: float
    simultaneous: float
    level: float

    def of(self, value: float) -> Estimate:
        """The effect with the margin of one as its interval."""
        df = self.m / 3
        p = t_two_sided_p(value / self.pse, df) if self.pse > 0 else float(value == 0)
        ends = value - self.margin, value + self.margin
        return Estimate(Interval(value, *ends, 1, self.level, "Lenth, unreplicated"), p)
