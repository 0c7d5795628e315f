"""Many comparisons at once: p values adjusted so that the family of them, not each, keeps its error rate.

Holm for a few comparisons named beforehand, Benjamini and Hochberg's q for a screen, with Yekutieli's factor where
nothing is known about how the tests depend on each other. speedup-science A13. Shape: m p values, NaN where a test
could not be made; it counts for nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from expkit.analysis.intervals import Array
from expkit.errors import UsageError


def bonferroni(p: ArrayLike) -> Array:
    """min(1, m p), (m,)."""
    values = _checked(p)
    return np.asarray(np.minimum(1.0, values * np.isfinite(values).sum()), dtype=float)


def holm(p: ArrayLike) -> Array:
    """max over j <= i of min(1, (m - j + 1) p_(j)), (m,): the chance of one false claim or more. Holm (1979)."""
    return _stepped(p, lambda ranked, m: np.maximum.accumulate(ranked * np.arange(m, 0, -1)))


def benjamini_hochberg(p: ArrayLike) -> Array:
    """min over j >= i of min(1, m p_(j) / j), (m,): q, the expected share of false ones among what is claimed at q.

    For tests that are independent or depend positively. Benjamini and Hochberg (1995).
    """
    return _stepped(p, lambda ranked, m: _from_the_top(ranked * m / np.arange(1, m + 1)))


def benjamini_yekutieli(p: ArrayLike) -> Array:
    """The same times sum_{j <= m} 1 / j, (m,): under any dependence. Benjamini and Yekutieli (2001)."""
    return _stepped(
        p, lambda ranked, m: _from_the_top(ranked * m * float((1 / np.arange(1, m + 1)).sum()) / np.arange(1, m + 1))
    )


def _stepped(p: ArrayLike, adjust: Callable[[Array, int], Array]) -> Array:
    values = _checked(p)
    known = np.flatnonzero(np.isfinite(values))
    order = known[np.argsort(values[known], kind="stable")]
    found = np.full(len(values), np.nan)
    if len(order):
        found[order] = np.minimum(1.0, adjust(values[order], len(order)))
    return found


def _from_the_top(ranked: Array) -> Array:
    return np.asarray(np.minimum.accumulate(ranked[::-1])[::-1], dtype=float)


def _checked(p: ArrayLike) -> Array:
    values = np.asarray(p, dtype=float).ravel()
    known = values[np.isfinite(values)]
    if len(known) and (known.min() < 0 or known.max() > 1):
        bad = float(known[(known < 0) | (known > 1)][0])
        raise UsageError(f"a p value lies between 0 and 1, but got {bad:g}")
    return values
