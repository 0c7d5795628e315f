"""Probability of improvement: how often an arm beats the baseline, whatever by how much. A9.

Bouthillier et al. (2021, arXiv:2103.03098) call an arm better where the interval lies above 1/2 and the probability is
at least 0.75.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from expkit.analysis.estimates import Interval
from expkit.analysis.intervals import finite_of
from expkit.errors import UsageError

MEANINGFUL = 0.75
_EXACT = 1_000
"""Up to so many pairs of values the Mann-Whitney test is exact where the sides have no time in common."""


def paired(differences: ArrayLike, level: float = 0.95) -> Interval:
    """Share of the blocks with d_s > 0, ties half, with the Clopper-Pearson interval of a binomial of n blocks, (n,).

    Where ties make half counts, the ends are those of the count rounded away from the share. Clopper and Pearson
    (1934): ends are beta quantiles, never shorter than the level says.
    """
    from scipy.special import betaincinv

    d = finite_of(differences)
    n = len(d)
    if n == 0:
        return Interval(level=level)
    wins = float((d > 0).sum() + 0.5 * (d == 0).sum())
    low, high = math.floor(wins), math.ceil(wins)
    tail = (1 - level) / 2
    lo = float(betaincinv(low, n - low + 1, tail)) if low else 0.0
    hi = float(betaincinv(high + 1, n - high, 1 - tail)) if high < n else 1.0
    return Interval(wins / n, lo, hi, n, level, "Clopper-Pearson")


def unpaired(base: ArrayLike, arm: ArrayLike) -> tuple[float, float] | None:
    """(P(T_c < T_0) + P(=) / 2, two-sided p of no difference) from times, (n_0,), (n_c,): Mann-Whitney U / (n_0 n_c).

    A miss is an infinite time: it is ranked last, and ties with other misses. Exact up to 1,000 pairs where no
    time of one side ties with one of the other, else normal with the variance corrected for ties. None where a side is
    empty.
    """
    t0, tc = (np.asarray(side, dtype=float).ravel() for side in (base, arm))
    t0, tc = t0[~np.isnan(t0)], tc[~np.isnan(tc)]
    if not len(t0) or not len(tc):
        return None
    ordered = np.sort(tc)
    below, up_to = (np.searchsorted(ordered, t0, side=side).sum() for side in ("left", "right"))
    u, pairs = float(below + up_to) / 2, len(t0) * len(tc)
    if below == up_to and pairs <= _EXACT:  # ties within a side change nothing
        counts = _ways(len(t0), len(tc))
        tail = sum(counts[: round(min(u, pairs - u)) + 1]) / sum(counts)
        return u / pairs, min(1.0, 2 * tail)
    _, ties = np.unique(np.concatenate((t0, tc)), return_counts=True)
    return u / pairs, _normal_p(u, len(t0), len(tc), ties)


def noether(probability: float, alpha: float = 0.05, beta: float = 0.05) -> float:
    """Pairs of runs that show a probability of improvement: [(z_{1-a} + z_{1-b}) / (sqrt 6 (P - 1/2))]^2, one-sided.

    Rounded up: 29 for P = 0.75 at a = b = 0.05. UsageError unless 1/2 < P <= 1. Noether (1987), JASA 82:645.
    """
    from scipy.special import ndtri

    if not 0.5 < probability <= 1:
        raise UsageError(f"a probability of improvement lies above 1/2 and is at most 1, but got {probability:g}")
    z = float(ndtri(1 - alpha) + ndtri(1 - beta))
    return (z / (math.sqrt(6) * (probability - 0.5))) ** 2


@cache
def _ways(n: int, m: int) -> tuple[int, ...]:
    """(n m + 1,): in how many orders of n and m values U has each size, the Gaussian binomial coefficients."""
    counts = [1] + [0] * (n * m)
    for i in range(1, n + 1):  # times (1 - q^(m + i)) / (1 - q^i)
        for size in range(n * m, m + i - 1, -1):
            counts[size] -= counts[size - m - i]
        for size in range(i, n * m + 1):
            counts[size] += counts[size - i]
    return tuple(counts)


def _normal_p(u: float, n: int, m: int, ties: np.typing.NDArray[np.int64]) -> float:
    from scipy.special import ndtr

    total = n + m
    variance = n * m / 12 * (total + 1 - float((ties**3.0 - ties).sum()) / (total * (total - 1)))
    if variance <= 0:
        return 1.0
    z = max(0.0, abs(u - n * m / 2) - 0.5) / math.sqrt(variance)
    return min(1.0, 2 * float(ndtr(-z)))
