"""Speedup to a target that some trials missed: a log-normal model in which a miss is later than its last evaluation.

Dropping the misses reads a true 1.10 as 1.05, and scoring them twice the budget (PAR2) as 1.24; this likelihood reads
1.10 (speedup-science A4). y = ln T; groups share one spread s. Shapes: n trials.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from expkit.analysis.estimates import Interval
from expkit.analysis.intervals import Array, exp, t_quantile
from expkit.analysis.survival import Counts, Times

WITHOUT_MISSES = "two-sample t"
"""The method of an interval to which censoring had nothing to add."""
_SMALLEST_SPREAD = 1e-6
"""In units of the data's own spread: a likelihood that grows down to it has no maximum."""


@dataclass(frozen=True)
class LogNormal:
    """ln T ~ N(mu_k, sigma^2) in group k."""

    mu: tuple[float, ...]
    sigma: float


@dataclass(frozen=True)
class _Sample:
    """Log times, each about its group's mean and in units of their spread: Newton's steps are well conditioned."""

    y: Array
    late: Counts
    member_nK: Array
    """1 where trial i is of group k."""
    centre: Array
    """(K,) mean log time of each group, taken off it."""
    scale: float
    hits: int
    """Of known time."""


@dataclass(frozen=True)
class _Fit:
    """The maximum: mu = gamma / h and sigma = 1 / h in the sample's units."""

    gamma: Array
    h: float
    log_likelihood: float


def tobit(groups: Sequence[Times]) -> LogNormal | None:
    """The most likely mu of each group and their common sigma; None where there is no maximum, or a group has no hit.

    l = sum over hits of [ln phi((y - mu) / s) - ln s] + sum over misses of ln(1 - Phi((ln H - mu) / s)) + sum over
    those that were there at their first evaluation of ln Phi((y - mu) / s). Without censoring mu is the mean of ln T.
    Tobin (1958); Newton in (mu / s, 1 / s), in which l is concave, Olsen (1978).
    """
    sample = _sample(groups)
    if sample is None:
        return None
    if sample.hits == len(sample.y):
        return LogNormal(
            tuple(sample.centre.tolist()), sample.scale * math.sqrt(float(sample.y @ sample.y) / sample.hits)
        )
    fit = _newton(sample, sample.y, sample.member_nK)
    if fit is None:
        return None
    mu = sample.centre + sample.scale * fit.gamma / fit.h
    return LogNormal(tuple(mu.tolist()), sample.scale / fit.h)


def tobit_speedup(base: Times, arm: Times, level: float = 0.95) -> Interval:
    """exp(mu_0 - mu_c) with a likelihood-ratio interval; `n` is that of the smaller side. A4.

    delta is in it iff 2 [l max - l(delta)] <= m ln(1 + t^2 / (m - 2)), m hits in all, t the quantile of m - 2 degrees
    of freedom: with no misses that is Student's two-sample interval to the digit, and with misses it covers 95-98 % at
    n = 3 to 10. Seeds are not paired: a miss has no partner.
    No value where a side has fewer hits than half (its typical time lies beyond what was seen), no ends below m = 3.
    Some 2 ms.
    """
    n, sample = min(base.n, arm.n), _sample((base, arm))
    if sample is not None and sample.hits == len(sample.y):
        return exp(_two_sample_t(sample, n, level))
    if sample is None or any(2 * side.hits < side.n for side in (base, arm)):
        return Interval(level=level)
    whole = _newton(sample, sample.y, sample.member_nK)
    if whole is None:
        return Interval(level=level)
    delta, m = float(whole.gamma[0] - whole.gamma[1]) / whole.h, sample.hits
    ends: list[float | None] = [None, None]
    if m >= 3:
        t2 = t_quantile(level, m - 2) ** 2
        limit, step = m * math.log1p(t2 / (m - 2)), math.sqrt(t2 * m / (m - 2) * 2 / n) / whole.h
        ends = [_end(sample, whole, limit, delta, sign * step) for sign in (-1, 1)]
    apart = float(sample.centre[0] - sample.centre[1])
    value, lo, hi = (None if v is None else apart + v * sample.scale for v in (delta, *ends))
    if lo is None or hi is None:
        return exp(Interval(value, None, None, n, level))
    return exp(Interval(value, lo, hi, n, level, "Tobit, likelihood ratio"))


def _two_sample_t(sample: _Sample, n: int, level: float) -> Interval:
    """Without a miss: mean difference +- t_{m - 2} s sqrt(1 / n_0 + 1 / n_c), s pooled."""
    value, df = float(sample.centre[0] - sample.centre[1]), sample.hits - 2
    if df < 1:
        return Interval(value, None, None, n, level)
    sd = sample.scale * math.sqrt(float(sample.y @ sample.y) / df)
    half = t_quantile(level, df) * sd * math.sqrt(float((1 / sample.member_nK.sum(axis=0)).sum()))
    return Interval(value, value - half, value + half, n, level, WITHOUT_MISSES)


def _sample(groups: Sequence[Times]) -> _Sample | None:
    """All groups in one; None where one of them has no hit. A time of 0 has no logarithm and is left out."""
    kept = [Times(g.seconds[g.seconds > 0], g.late[g.seconds > 0]) for g in groups]
    if not kept or any(not (group.late == 0).any() for group in kept):
        return None
    y, late = np.log(np.concatenate([g.seconds for g in kept])), np.concatenate([g.late for g in kept])
    member_nK = np.repeat(np.eye(len(kept)), [group.n for group in kept], axis=0)
    centre = member_nK.T @ y / member_nK.sum(axis=0)
    y = y - member_nK @ centre
    scale = float(y.std())
    scale = scale if scale > 1e-12 else 1.0
    return _Sample(y / scale, late, member_nK, centre, scale, int((late == 0).sum()))


def _end(sample: _Sample, whole: _Fit, limit: float, start: float, step: float) -> float | None:
    """Where twice the fall of the profile likelihood meets the limit: outwards by a step, then false position.

    The root of that fall is nearly straight, and the step is what it would be with nothing censored: five or six
    likelihoods are enough.
    """
    one_group, is_base = np.ones((len(sample.y), 1)), sample.member_nK[:, 0]
    near = _Fit(whole.gamma[1:], whole.h, whole.log_likelihood)

    def excess(delta: float) -> float:
        nonlocal near
        found = _newton(sample, sample.y - delta * is_base, one_group, near)
        if found is None:
            return math.nan
        near = found  # the next delta is close by
        return math.sqrt(max(0.0, 2 * (whole.log_likelihood - found.log_likelihood))) - math.sqrt(limit)

    inside, low, outside = start, -math.sqrt(limit), start + step
    while (high := excess(outside)) < 0:
        if abs(outside - start) > 1e3 * abs(step):
            return None
        inside, low, outside = outside, high, outside + (outside - start)
    while abs(high) > 1e-8 and abs(outside - inside) > 1e-12 * abs(step):
        middle = outside - high * (outside - inside) / (high - low)
        value = excess(middle)
        if value * high > 0:
            outside, high, low = middle, value, low / 2  # Illinois: the end that stays is pulled in
        else:
            inside, low, outside, high = outside, high, middle, value
    return None if math.isnan(high) else outside


def _newton(sample: _Sample, y: Array, member_nK: Array, start: _Fit | None = None) -> _Fit | None:
    """The maximum of the likelihood of y; None where it grows as the spread goes to 0."""
    gamma, h = (np.zeros(member_nK.shape[1]), 1.0) if start is None else (start.gamma, start.h)
    value = _log_likelihood(y, sample, member_nK, gamma, h)
    for _ in range(100):
        try:
            step = _step(y, sample, member_nK, gamma, h)
        except np.linalg.LinAlgError:
            return None  # flat: the hits lie in one point of each group
        size, new = 1.0, -math.inf
        while size > 1e-9:
            new_gamma, new_h = gamma + size * step[:-1], h + size * float(step[-1])
            new = _log_likelihood(y, sample, member_nK, new_gamma, new_h) if new_h > 0 else -math.inf
            if new >= value - 1e-13 * abs(value):
                break
            size /= 2
        gain, gamma, h, value = new - value, new_gamma, new_h, new
        if h > 1 / _SMALLEST_SPREAD or not math.isfinite(value):
            return None
        if abs(gain) <= 1e-11 * (1 + abs(value)):
            return _Fit(gamma, h, value)
    return None


def _log_likelihood(y: Array, sample: _Sample, member_nK: Array, gamma: Array, h: float) -> float:
    from scipy.special import log_ndtr

    z = h * y - member_nK @ gamma
    late = sample.late
    seen = sample.hits * (math.log(h) - 0.5 * math.log(2 * math.pi))
    return seen + float(np.where(late == 0, -0.5 * z * z, log_ndtr(-late * z)).sum())


def _step(y: Array, sample: _Sample, member_nK: Array, gamma: Array, h: float) -> Array:
    """Newton's step: slope and curvature of l by z = h y - gamma, then the chain rule."""
    from scipy.special import log_ndtr

    z = h * y - member_nK @ gamma
    late = sample.late
    x = -late * z
    hazard = np.exp(-0.5 * x * x - log_ndtr(x)) / math.sqrt(2 * math.pi)
    slope = np.where(late == 0, -z, -late * hazard)
    bend = np.where(late == 0, 1.0, hazard * (hazard + x))
    design = np.column_stack((-member_nK, y))  # dz by gamma and by h
    curvature = design.T @ (bend[:, None] * design)
    curvature[-1, -1] += sample.hits / h**2
    gradient = design.T @ slope
    gradient[-1] += sample.hits / h
    return np.asarray(np.linalg.solve(curvature, gradient), dtype=float)
