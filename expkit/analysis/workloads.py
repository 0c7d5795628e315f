"""One arm over several workloads: the geometric mean of its speedups, and performance profiles in closed form. A10.

Shapes: C arms, W workloads. A miss is an infinite time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from expkit.analysis.estimates import Interval
from expkit.analysis.intervals import Array, exp, t_interval, t_quantile
from expkit.errors import UsageError

MOST = 4.0
"""How many times slower still counts for something in a profile; AlgoPerf's r_max."""
DRAWS = 4_000


@dataclass(frozen=True)
class LogSpeedup:
    """ln S of an arm on one workload with its standard error and the degrees of freedom of that."""

    value: float
    error: float
    df: float


@dataclass(frozen=True)
class GeometricMean:
    """The mean over workloads, as a claim about others like them, and as one about these."""

    random: Interval
    """Workloads are a sample: t over the W values of ln S, W - 1 degrees of freedom."""
    fixed: Interval
    """Only seeds vary: sqrt(sum se_w^2) / W with Satterthwaite's degrees of freedom."""


def geometric_mean(workloads: Sequence[LogSpeedup], level: float = 0.95) -> GeometricMean:
    """exp of the mean ln S both ways; no ends for one workload (random) or without errors (fixed).

    exp(mean) is never more than the arithmetic mean of the same speedups, and unlike it the same whichever of the two
    is called the baseline.
    """
    if not workloads:
        return GeometricMean(Interval(level=level), Interval(level=level))
    logs = [one.value for one in workloads]
    random = t_interval(logs, level, "t over workloads")
    variances = np.array([one.error**2 for one in workloads])
    mean, total = float(np.mean(logs)), float(variances.sum())
    if not math.isfinite(total) or any(one.df <= 0 for one in workloads):
        return GeometricMean(exp(random), exp(Interval(mean, None, None, len(logs), level)))
    dfs = np.array([one.df for one in workloads])
    df = total**2 / float((variances**2 / dfs).sum()) if total > 0 else float(dfs.sum())
    half = t_quantile(level, df) * math.sqrt(total) / len(logs)
    return GeometricMean(exp(random), exp(Interval(mean, mean - half, mean + half, len(logs), level, "t over seeds")))


def profile(ratios_CW: ArrayLike, tau: float) -> Array:
    """rho_c(tau), (C,): share of the workloads with T_c / T_reference <= tau. Dolan and More (2002)."""
    ratios = _ratios(ratios_CW)
    return np.asarray((ratios <= tau).mean(axis=1), dtype=float)


def best_relative_score(times_CW: ArrayLike, most: float = MOST) -> Array:
    """AlgoPerf's score 1 / (r - 1) integral of rho_c from 1 to r = `most`, (C,): mean_w max(0, r - r_cw) / (r - 1).

    r_cw = T_cw / min_c T_cw. Exact; the official trapezoid of 100 points is off by up to 0.0015. It depends on who
    else is in the set: removing the eighth may make the first and the second change places. For an appendix only.
    """
    times = _ratios(times_CW)
    with np.errstate(invalid="ignore"):
        ratios = times / times.min(axis=0, keepdims=True)
    ratios[~np.isfinite(times)] = math.inf  # inf / inf where nobody came
    return np.asarray((np.maximum(0.0, most - ratios) / (most - 1)).mean(axis=1), dtype=float)


def baseline_relative_score(ratios_CW: ArrayLike, most: float = MOST) -> Array:
    """The same of T_c / T_0 on a log scale, (C,): mean_w clip(ln r - ln(T_c / T_0), 0, 2 ln r) / (2 ln r), r = `most`.

    The mean of rho_c over ln tau from -ln r to ln r: 1/2 for the baseline itself, 1 for r times faster or more, 0 for
    r times slower or a miss. It depends on nobody but the arm and the baseline.
    """
    if most <= 1:
        raise UsageError(f"a profile ends above 1, but got {most:g}")
    with np.errstate(divide="ignore"):
        logs = np.log(_ratios(ratios_CW))
    reach = math.log(most)
    return np.asarray((np.clip(reach - logs, 0, 2 * reach) / (2 * reach)).mean(axis=1), dtype=float)


def first_place(log_speedups_CW: ArrayLike, errors_CW: ArrayLike, rng: np.random.Generator) -> Array:
    """P(arm has the largest mean ln S over these workloads), (C,), by 4,000 normal draws: approximate.

    It says how far a ranking may be trusted; ties share.
    """
    values, errors = np.asarray(log_speedups_CW, dtype=float), np.asarray(errors_CW, dtype=float)
    drawn = values[None] + errors[None] * rng.standard_normal((DRAWS, *values.shape))
    means = drawn.mean(axis=2)
    first = means == means.max(axis=1, keepdims=True)
    return np.asarray((first / first.sum(axis=1, keepdims=True)).mean(axis=0), dtype=float)


def _ratios(ratios_CW: ArrayLike) -> Array:
    found = np.atleast_2d(np.array(ratios_CW, dtype=float))
    found[np.isnan(found)] = math.inf
    if found.size and float(found.min()) <= 0:
        raise UsageError(f"times must be positive, but got {float(found.min()):g}")
    return found
