"""Which arms cannot be told from the best, and how much of the winner's lead is the luck of having been chosen.

Values are ln speedup or quality, more is better. Shapes: C arms (the baseline among them), S seeds. A13.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from expkit.analysis.intervals import Array, PooledError, t_quantile
from expkit.analysis.simultaneous import EQUAL, dunnett_quantile, largest_of


@dataclass(frozen=True)
class BestSet:
    """Rows of the table: the best, and all that may be; with what choosing it is worth by chance alone."""

    best: int
    tied: tuple[int, ...]
    value: float
    shrunk: float | None
    """The best's value drawn towards the mean of all as far as their spread is noise; None below four arms."""
    luck: float | None
    """Expected lead of the best of so many equal arms."""
    method: str
    n: int


def best_set(values_CS: ArrayLike, level: float = 0.95, error: PooledError | None = None) -> BestSet | None:
    """The arms that the data do not show to be worse than the best; the true best is in it with this level.

    With one error for all arms, Hsu's comparison with the best: arm c is in it iff mean_c > max_{j != c} mean_j
    - d s sqrt(2 / n), d the one-sided Dunnett quantile of C - 1 arms. Without, arm c is out if some other is better
    by a paired t test at (1 - level) / (C - 1). Seeds that lack a value of an arm are left out of its tests.
    None for fewer than two arms with two values. Hsu (1981, 1984).
    """
    table = np.asarray(values_CS, dtype=float)
    rows = np.flatnonzero(np.isfinite(table).sum(axis=1) >= 2)
    if len(rows) < 2:
        return None
    kept = table[rows]
    means = np.nanmean(kept, axis=1)
    best = int(means.argmax())
    pooled = error is not None and bool(np.isfinite(kept).all())
    tied = _hsu(means, kept.shape[1], level, error) if pooled and error is not None else _paired(kept, level)
    tied[best] = True
    n = int(np.isfinite(kept[best]).sum())
    spread = error.sd if error is not None else _spread(kept)
    return BestSet(
        int(rows[best]),
        tuple(int(i) for i in rows[tied]),
        float(means[best]),
        _shrunk(means, best, spread**2 / n),
        spread / math.sqrt(n) * largest_of(len(rows)),
        "Hsu, pooled t" if pooled else "paired t, Bonferroni",
        n,
    )


def _hsu(means: Array, n: int, level: float, error: PooledError) -> np.typing.NDArray[np.bool_]:
    d = dunnett_quantile(level, error.df, [[EQUAL] * (len(means) - 1)], two_sided=False)
    first, second = np.sort(means)[::-1][:2]
    others = np.where(means == first, second, first)
    return np.asarray(means > others - d * error.sd * math.sqrt(2 / n), dtype=bool)


def _paired(table_CS: Array, level: float) -> np.typing.NDArray[np.bool_]:
    alpha = (1 - level) / (len(table_CS) - 1)
    tied = np.ones(len(table_CS), dtype=bool)
    for other in table_CS:
        worse = other[None, :] - table_CS
        n = np.isfinite(worse).sum(axis=1)
        usable = n >= 2
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.nansum(worse, axis=1) / n
            error = np.sqrt(np.nansum(np.square(worse - mean[:, None]), axis=1) / (n - 1) / n)
        limit = np.array([t_quantile(1 - 2 * alpha, k - 1) if k >= 2 else math.inf for k in n])
        tied &= ~(usable & (mean > 0) & (mean > limit * error))
    return tied


def _spread(table_CS: Array) -> float:
    """SD of one value about its arm's and its seed's mean, over what is there."""
    from expkit.analysis.linear import pure_error

    found = pure_error(table_CS)
    return 0.0 if found is None else found.sd


def _shrunk(means: Array, best: int, variance: float) -> float | None:
    """m + (1 - (C - 3) sigma^2 / sum (mean_c - m)^2)_+ (mean_best - m). Efron and Morris (1973)."""
    centre = float(means.mean())
    squares = float(np.square(means - centre).sum())
    if len(means) < 4:
        return None
    kept = max(0.0, 1 - (len(means) - 3) * variance / squares) if squares > 0 else 0.0
    return centre + kept * (float(means[best]) - centre)
