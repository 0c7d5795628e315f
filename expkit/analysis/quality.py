"""Quality at equal budget: the primary metric at the last evaluation, arm against baseline, paired by seed."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from expkit.analysis.estimates import Interval
from expkit.analysis.intervals import t_interval, t_quantile, t_two_sided_p
from expkit.errors import UsageError

Reading = Literal["better", "equal", "not worse", "worse", "undecided"]


def quality_difference(q0: ArrayLike, qc: ArrayLike, mode: str = "max", level: float = 0.90) -> Interval:
    """Mean over seeds of q_c - q_0, sign turned for a metric to minimise so that more is better; t interval, A11.

    Shapes (S,), (S,), in the metric's unit; a pair with a value that is not finite is dropped. The 90 % interval is
    the one whose position against -delta and delta is the test of equivalence (TOST) at 5 %, Schuirmann (1987).
    """
    base, arm = np.asarray(q0, dtype=float), np.asarray(qc, dtype=float)
    if base.shape != arm.shape:
        raise UsageError(f"paired qualities must be two series of one length, but got {base.shape} and {arm.shape}")
    both = np.isfinite(base) & np.isfinite(arm)
    return t_interval((arm[both] - base[both]) * (1.0 if mode == "max" else -1.0), level)


def reading(difference: Interval, delta: float) -> Reading:
    """What the interval says against the margin `delta`; first match: better, equal, not worse, worse, undecided."""
    lo, hi = difference.lo, difference.hi
    if lo is None or hi is None:
        return "undecided"
    if lo > 0:
        return "better"
    if lo > -delta:
        return "equal" if hi < delta else "not worse"
    return "worse" if hi < 0 else "undecided"


def equivalence_p(difference: Interval, delta: float) -> tuple[float | None, float | None]:
    """(p of `worse by delta or more`, p of `not equal within delta`), the two one-sided t tests of a paired difference.

    p_lower of mean <= -delta, p_upper of mean >= delta; equal within delta at 5 % iff max(p_lower, p_upper) < 0.05 iff
    the 90 % interval lies inside (-delta, delta). None without an interval or a margin. A11; Schuirmann (1987).
    """
    if difference.value is None or difference.hi is None or delta <= 0:
        return None, None
    df = difference.n - 1
    error = (difference.hi - difference.value) / t_quantile(difference.level, df)
    lower, upper = (_one_sided(side, error, df) for side in (difference.value + delta, delta - difference.value))
    return lower, max(lower, upper)


def _one_sided(distance: float, error: float, df: float) -> float:
    """P(T >= distance / error)."""
    if error <= 0:
        return 0.0 if distance > 0 else 1.0
    p = t_two_sided_p(distance / error, df) / 2
    return p if distance >= 0 else 1 - p
