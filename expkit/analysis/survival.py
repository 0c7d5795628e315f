"""Time to target when some trials never got there: Kaplan-Meier's curve, the restricted mean, the log-rank test.

A trial that missed is known to be later than its last evaluation (right-censored); nothing is assumed about how much
later. Shapes: n trials. speedup-science A4. Asymptotic in n, but for the restricted mean, whose interval is Welch's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from expkit.analysis.estimates import Interval
from expkit.analysis.intervals import Array, t_quantile

Counts = np.typing.NDArray[np.int64]


@dataclass(frozen=True)
class Times:
    """When each of n trials reached the target: `late` 0 at `seconds`, 1 after them (a miss), -1 before them."""

    seconds: Array
    late: Counts

    @classmethod
    def of(cls, seconds: ArrayLike, late: ArrayLike) -> Times:
        """From any series of one length; seconds that are not finite are no observation and are left out."""
        clock, kind = np.asarray(seconds, dtype=float).ravel(), np.asarray(late, dtype=np.int64).ravel()
        kept = np.isfinite(clock)
        return cls(clock[kept], kind[kept])

    @property
    def n(self) -> int:
        """Trials."""
        return len(self.seconds)

    @property
    def hits(self) -> int:
        """Trials that got there; one that was there at its first evaluation did."""
        return int((self.late <= 0).sum())


@dataclass(frozen=True)
class Curve:
    """S(t), the share of trials that are not there yet after t: a step at each of the k times at which some came."""

    time_s: Array
    share: Array
    at_risk: Counts
    """Trials seen up to that time that were not there before."""
    came: Counts
    followed_s: float
    """The longest that any was seen; beyond it the curve says nothing unless it is 0."""
    n: int


def kaplan_meier(times: Times) -> Curve:
    """S(t) = prod over t_i <= t of (1 - d_i / n_i), d_i came at t_i of n_i at risk. Kaplan and Meier (1958).

    A trial there at its first evaluation counts as coming then; one that is censored at t is at risk at t. With no
    misses it is one minus the empirical distribution.
    """
    at, came = np.unique(times.seconds[times.late <= 0], return_counts=True)
    at_risk = times.n - np.searchsorted(np.sort(times.seconds), at, side="left")
    share = np.cumprod(1 - came / at_risk, dtype=np.float64)
    followed = float(times.seconds.max(initial=0.0))
    return Curve(at, share, at_risk.astype(np.int64), came.astype(np.int64), followed, times.n)


def median_s(curve: Curve) -> float | None:
    """The first time with S <= 1/2; None where the curve never comes down to it."""
    there = curve.share <= 0.5 + 1e-12
    return float(curve.time_s[there.argmax()]) if there.any() else None


def restricted_mean(curve: Curve, tau_s: float, level: float = 0.95) -> Interval:
    """RMST(tau) = integral of S from 0 to tau: the mean of min(T, tau) seconds, with a t interval of n - 1 df.

    Variance (n / (n - 1)) sum over t_i <= tau of A_i^2 d_i / (n_i (n_i - d_i)), A_i = integral of S from t_i to tau:
    Greenwood's; with none censored before tau, s^2 / n of min(T, tau). No value where tau is beyond what was followed.
    """
    found = _restricted(curve, tau_s)
    if found is None:
        return Interval(level=level)
    mean, error = found
    if curve.n < 2:
        return Interval(mean, None, None, curve.n, level)
    half = t_quantile(level, curve.n - 1) * error
    return Interval(mean, mean - half, mean + half, curve.n, level, "Greenwood, t")


def mean_difference(base: Curve, arm: Curve, tau_s: float, level: float = 0.95) -> Interval:
    """RMST of the baseline minus the arm's: the seconds saved up to tau, with Welch's df; `n` the smaller side."""
    one, two = _restricted(base, tau_s), _restricted(arm, tau_s)
    n = min(base.n, arm.n)
    if one is None or two is None:
        return Interval(level=level)
    difference, error = one[0] - two[0], math.hypot(one[1], two[1])
    if n < 2:
        return Interval(difference, None, None, n, level)
    if error == 0:
        return Interval(difference, difference, difference, n, level, "Greenwood, Welch")
    df = 1 / ((one[1] / error) ** 4 / (base.n - 1) + (two[1] / error) ** 4 / (arm.n - 1))
    half = t_quantile(level, df) * error
    return Interval(difference, difference - half, difference + half, n, level, "Greenwood, Welch")


def log_rank(base: Times, arm: Times) -> tuple[float, float] | None:
    """(chi^2, p) of the log-rank test that both sides come alike, one degree of freedom. Mantel (1966).

    chi^2 = (sum of O_i - E_i)^2 / sum of V_i, E_i = d_i n_0i / n_i, V_i = E_i (1 - n_0i / n_i)(n_i - d_i) / (n_i - 1).
    None where nobody came on either side, or a side is empty.
    """
    from scipy.special import chdtrc

    hits = np.concatenate([side.seconds[side.late <= 0] for side in (base, arm)])
    if not len(hits) or not base.n or not arm.n:
        return None
    at, came = np.unique(hits, return_counts=True)
    risk_0, risk_1 = (side.n - np.searchsorted(np.sort(side.seconds), at, side="left") for side in (base, arm))
    risk = risk_0 + risk_1
    expected = came * risk_0 / risk
    variance = expected * (risk_1 / risk) * (risk - came) / np.maximum(risk - 1, 1)
    if variance.sum() <= 0:
        return None
    chi2 = float((base.hits - expected.sum()) ** 2 / variance.sum())
    return chi2, float(chdtrc(1, chi2))


def _restricted(curve: Curve, tau_s: float) -> tuple[float, float] | None:
    """(RMST, its standard error)."""
    over = len(curve.share) > 0 and curve.share[-1] == 0
    if curve.n == 0 or tau_s <= 0 or (tau_s > curve.followed_s * (1 + 1e-12) and not over):
        return None
    steps = curve.time_s <= tau_s
    edges = np.concatenate(([0.0], curve.time_s[steps] / tau_s, [1.0]))
    areas = np.diff(edges) * np.concatenate(([1.0], curve.share[steps]))
    rest = np.cumsum(areas[::-1])[::-1][1:]  # from each step to tau
    came, left = curve.came[steps], (curve.at_risk - curve.came)[steps]
    terms = rest**2 * came / (curve.at_risk[steps] * np.maximum(left, 1))  # where none is left, nothing rests
    variance = float(terms.sum()) * curve.n / max(curve.n - 1, 1)
    return tau_s * float(areas.sum()), tau_s * math.sqrt(variance)
