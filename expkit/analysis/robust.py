"""The speedup by means that no single odd pair can move: sign flips, Hodges-Lehmann, the ratio of medians.

They stand beside the paired t interval as its check. Shapes: log ratios d_s = ln T_0s - ln T_cs, (n,); times (n,).
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import ArrayLike

from expkit.analysis.estimates import Interval
from expkit.analysis.intervals import Array, exp, finite_of

MAX_SIGN_FLIPS = 30
"""Up to this many pairs the sign-flip test is exact; 30 of them take 3 ms."""
LEAST_BOOTSTRAP = 20
"""No ratio gets a bootstrap interval from fewer times: at n = 3 it covers 75 % where 95 % is written on it."""
RESAMPLES = 2_000


def sign_flip_p(log_ratios: ArrayLike) -> float | None:
    """Share of the 2^n sign vectors whose |mean| is at least the observed one; None for n < 1 or n > 30.

    Exact, two-sided; speedup-science A5 (4), Fisher (1935). The sums of both halves are sorted and counted against
    each other, so it costs 2^(n/2) ln 2^(n/2) and not 2^n.
    """
    d = finite_of(log_ratios)
    if not 1 <= len(d) <= MAX_SIGN_FLIPS:
        return None
    left, right = _signed_sums(d[: len(d) // 2]), np.sort(_signed_sums(d[len(d) // 2 :]))
    least = abs(float(d.sum())) - 1e-12 * max(1.0, float(np.abs(d).sum()))  # equal sums in another order round apart
    if least <= 0:
        return 1.0
    above = len(right) - np.searchsorted(right, least - left, side="left")
    below = np.searchsorted(right, -least - left, side="right")
    return float((above.sum() + below.sum()) / 2 ** len(d))


def least_sign_flip_p(n: int) -> float | None:
    """The smallest p that n pairs can give, 2 / 2^n: five pairs can never give p < 0.05. None without pairs."""
    return min(1.0, 2.0 ** (1 - n)) if n else None


def hodges_lehmann(log_ratios: ArrayLike, level: float = 0.95) -> Interval:
    """exp of the median of the n (n + 1) / 2 Walsh averages (d_i + d_j) / 2, with the exact Wilcoxon interval.

    Ends are the k-th smallest and k-th largest average, k the largest for which P(W < k) <= (1 - level) / 2 of the
    signed-rank statistic W; it covers at least `level`. No ends where even k = 1 is too much: at 95 % below n = 6.
    Assumes log ratios symmetric about their centre. A5 (4); Hodges and Lehmann (1963).
    """
    d = finite_of(log_ratios)
    n = len(d)
    if n == 0:
        return Interval(level=level)
    walsh = np.sort(((d[:, None] + d[None, :]) / 2)[np.triu_indices(n)])
    k = wilcoxon_rank(n, level)
    if k == 0:
        return exp(Interval(float(np.median(walsh)), None, None, n, level, "Hodges-Lehmann"))
    ends = float(walsh[k - 1]), float(walsh[-k])
    return exp(Interval(float(np.median(walsh)), *ends, n, level, "Hodges-Lehmann, exact Wilcoxon"))


@functools.cache
def wilcoxon_rank(n: int, level: float) -> int:
    """The largest k with P(W < k) <= (1 - level) / 2, W the sum of the ranks of positive signs among n; 0 if none.

    Each rank is in the sum with probability 1/2, so the distribution is a convolution of n two-point ones.
    """
    probability = np.ones(1)
    for rank in range(1, n + 1):
        longer = np.zeros(len(probability) + rank)
        longer[: len(probability)] += probability / 2
        longer[rank:] += probability / 2
        probability = longer
    return int((np.cumsum(probability) <= (1 - level) / 2 * (1 + 1e-12)).sum())


def ratio_of_medians(t0: ArrayLike, tc: ArrayLike, rng: np.random.Generator, level: float = 0.95) -> Interval:
    """median T_0 / median T_c over the pairs, with a percentile bootstrap of whole pairs from n = 20 on.

    Below 20 pairs there is a ratio and no interval: a bootstrap of a ratio covers 73-90 % at n = 3 to 10 (A5, table).
    A pair with a time that is not finite and positive is left out.
    """
    base, arm = np.asarray(t0, dtype=float), np.asarray(tc, dtype=float)
    both = np.isfinite(base) & np.isfinite(arm) & (base > 0) & (arm > 0)
    base, arm, n = base[both], arm[both], int(both.sum())
    if n == 0:
        return Interval(level=level)
    point = float(np.median(base) / np.median(arm))
    if n < LEAST_BOOTSTRAP:
        return Interval(point, None, None, n, level, f"no bootstrap below n = {LEAST_BOOTSTRAP}")
    draws = rng.integers(0, n, size=(RESAMPLES, n))
    ratios = _medians(base, draws) / _medians(arm, draws)
    lo, hi = np.quantile(ratios, [(1 - level) / 2, (1 + level) / 2])
    return Interval(point, float(lo), float(hi), n, level, "percentile bootstrap, approximate")


def _medians(values: Array, draws: np.typing.NDArray[np.int64]) -> Array:
    """np.median(values[draws], axis=1): places among the values are sorted for them, by radix as they have 16 bits."""
    order = np.argsort(values, kind="stable")
    place = np.empty(len(values), dtype=np.uint16 if len(values) <= 1 << 16 else np.int64)
    place[order] = np.arange(len(values))
    middle = np.sort(place[draws], axis=1, kind="stable")[:, [(draws.shape[1] - 1) // 2, draws.shape[1] // 2]]
    return np.asarray(values[order][middle].mean(axis=1))


def _signed_sums(values: Array) -> Array:
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate((sums + value, sums - value))
    return sums
