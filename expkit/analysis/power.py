"""What a sweep could have seen: power, the smallest speedup that it would have shown, the seeds that one would need.

`sd` is that of ln T of one run. Two-sided tests at alpha, power 1 - beta, by the noncentral t distribution; speedups of
1.02 and 1 / 1.02 are alike. speedup-science D.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from expkit.analysis.intervals import t_quantile
from expkit.errors import UsageError

MOST_SEEDS = 1_000_000


def power(effect: float, standard_error: float, df: float, alpha: float = 0.05) -> float:
    """P(|T| > t_{1-alpha/2, df}) where T is noncentral t with mean effect / standard error.

    The other tail is left out where it is below 1e-12; beyond a noncentrality of 37 the power is 1.
    """
    from scipy.special import nctdtr, ndtr

    if standard_error <= 0:
        return 1.0 if effect else alpha
    shift, limit = abs(effect) / standard_error, t_quantile(1 - alpha, df)
    if shift > 37:  # the distribution function of scipy gives nan there
        return float(ndtr(shift - limit)) if shift < limit + 40 else 1.0
    upper = 1.0 - float(nctdtr(df, shift, limit))
    lower = float(nctdtr(df, shift, -limit)) if shift < 8 else 0.0
    return min(1.0, upper + (lower if lower == lower else 0.0))


def detectable(standard_error: float, df: float, alpha: float = 0.05, beta: float = 0.2) -> float:
    """The speedup that a comparison with this standard error of ln S shows with power 1 - beta; 1 without any error.

    A main effect of a full grid has 2 sd / sqrt(2^k r) and 2^k (r - 1) degrees of freedom, (2^k - 1)(r - 1) in blocks:
    1.050 for k = 3, r = 3, sd = 0.04 either way. An arm of n seeds has sd sqrt(2 / n).
    """
    if df <= 0:
        raise UsageError(f"a comparison needs degrees of freedom, but got {df:g}")
    low, high = 0.0, 1.0
    while power(high, 1.0, df, alpha) < 1 - beta:
        high *= 2
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if power(middle, 1.0, df, alpha) < 1 - beta else (low, middle)
    return math.exp(min(high * standard_error, 700.0))


def seeds_needed(
    speedup: float,
    sd: float,
    rho: float | None = None,
    alpha: float = 0.05,
    beta: float = 0.2,
    *,
    freedom: float | None = None,
) -> int | None:
    """Seeds per arm that show this speedup with power 1 - beta; at least 2, None beyond a million.

    Unpaired without `rho`: standard error sd sqrt(2 / n), 2 n - 2 degrees of freedom. Paired with it, the correlation
    of ln T over pairs: sd sqrt(2 (1 - rho) / n), n - 1. With `freedom`, an error that is pooled over arms in blocks:
    freedom (n - 1), C - 1 for C arms. UsageError for a speedup that is not positive.
    """
    if speedup <= 0:
        raise UsageError(f"a speedup is positive, but got {speedup:g}")
    effect = abs(math.log(speedup))
    apart = 1.0 if rho is None else max(1 - rho, 0.0)
    per_seed = freedom if freedom is not None else 2 if rho is None else 1

    def enough(n: int) -> bool:
        return power(effect, sd * math.sqrt(2 * apart / n), per_seed * (n - 1), alpha) >= 1 - beta

    return _least(enough, 2) if effect > 0 else None


def _least(enough: Callable[[int], bool], first: int) -> int | None:
    """The smallest number that is enough, given that all larger ones are."""
    high = first
    while not enough(high):
        high *= 2
        if high > MOST_SEEDS:
            return None
    low = high // 2 if high > first else first - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
