"""The best of n tried configurations, expected: what tuning alone buys, so that arms are compared at equal tuning."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from expkit.analysis.intervals import Array, finite_of
from expkit.errors import UsageError


def expected_best(values: ArrayLike, n: int, *, replace: bool = False) -> float:
    """E of the largest of n drawn from the N values, more is better.

    Without replacement, sum_i q_(i) C(i-1, n-1) / C(N, n): unbiased for the best of n fresh configurations. With it,
    sum_i q_(i) [(i / N)^n - ((i-1) / N)^n], Dodge et al. (2019), which is biased low, Tang et al. (2020). A14.
    UsageError unless 1 <= n <= N.
    """
    q = np.sort(finite_of(values))
    size = len(q)
    if not 1 <= n <= size:
        raise UsageError(f"the best of {n} of {size} configurations: n lies between 1 and their number")
    ranks = range(1, size + 1)
    if replace:
        weights = [(i / size) ** n - ((i - 1) / size) ** n for i in ranks]
    else:
        weights = [math.comb(i - 1, n - 1) / math.comb(size, n) for i in ranks]
    return float(q @ np.array(weights))


def curve(values: ArrayLike) -> Array:
    """expected_best for n = 1 .. N, (N,)."""
    size = len(finite_of(values))
    return np.array([expected_best(values, n) for n in range(1, size + 1)])
