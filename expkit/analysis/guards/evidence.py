"""Guards of the evidence: how many seeds, whether the best of many was confirmed, who was tuned. B7, B8, B9."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from expkit.analysis import phrases
from expkit.analysis.estimates import Interval
from expkit.analysis.guards.light import not_checked
from expkit.analysis.intervals import Array, t_quantile
from expkit.analysis.model import Guard

ENOUGH = 5
"""Seeds; below, a t interval is wider than most effects. Section D."""
POWER = 0.8


def seeds(pairs: Mapping[str, int], sd: float | None) -> Guard:
    """B7: pairs of each arm with its baseline; `sd` of a pair's log ratio. Red where no arm has two pairs.

    The number is the smallest speedup that these would find in 80 % of sweeps.
    """
    if not pairs:
        return not_checked("seeds", "no arm is compared with a baseline")
    most = max(pairs.values())
    if most < 2:
        return Guard("seeds", "red", None, f"{phrases.count(most, 'pair')} an arm: one seed has no interval.")
    few = sorted(arm for arm, n in pairs.items() if n < ENOUGH)
    n = min(number for number in pairs.values() if number > 1)
    factor = detectable(sd, n) if sd is not None else None
    could = f"n={n}"
    if factor is not None and sd is not None:
        noise, power = phrases.percent(sd), phrases.share(POWER)
        could = f"With n={n} and noise {noise} a pair, this sweep could detect "
        could += f"{phrases.times(factor)} or more ({power} power)"
    if few:
        return Guard("seeds", "amber", factor, f"{could}; fewer than {ENOUGH} pairs: {phrases.listing(few, most=3)}.")
    return Guard("seeds", "green", factor, f"{could}.")


def detectable(sd: float, n: int, alpha: float = 0.05) -> float | None:
    """exp(d) with P(|t| > t_{1 - alpha/2, n-1}) = 0.8 where t is noncentral with d sqrt(n) / sd; None where none is.

    `sd` is of the log ratio of a pair. Bisection to six digits; section D.
    """
    from scipy.special import nctdtr

    if n < 2 or not math.isfinite(sd) or sd < 0:
        return None
    edge = t_quantile(1 - alpha, n - 1)
    low, high = 0.0, edge + 40.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if 1 - nctdtr(n - 1, middle, edge) >= POWER else (middle, high)
    return math.exp(min(high * sd / math.sqrt(n), 50.0))


def winner(
    arms: Sequence[str],
    log_speed_CS: Array,
    eps: float | None,
    confirmed: Mapping[str, Interval] | None = None,
    tries: Mapping[str, int] | None = None,
) -> Guard:
    """B8: whether the fastest of many arms was run again on fresh seeds. Rows are arms without the baselines.

    `confirmed` is what the seeds of the latest confirmation say, never pooled with those of earlier ones; `tries` how
    often each arm was confirmed. Green takes an interval above 1 at the first try: the best of several tries is a
    choice again. The number is the confirmed speedup, else exp of what the best of so many equal arms would gain by
    chance: s / sqrt(n) * E max of m normals, s the mean SD over seeds.
    """
    means = {arm: float(np.mean(row[np.isfinite(row)])) for arm, row in zip(arms, log_speed_CS, strict=True)
             if np.isfinite(row).sum() > 1}  # fmt: skip
    if not means:
        return not_checked("winner", "no arm has two pairs with its baseline")
    best = max(means, key=lambda arm: means[arm])
    was = phrases.times(math.exp(min(means[best], 50.0)))
    if confirmed and (again := confirmed.get(best)) is not None and again.value is not None:
        chosen = f"Chosen as best of {phrases.count(len(means), 'arm')}"
        return _confirmed(chosen, again, was, (tries or {}).get(best, 1))
    if means[best] <= (eps or 0.0):
        return Guard("winner", "green", None, "No arm is faster than the noise floor: none is put forward.")
    if len(means) == 1:
        return Guard("winner", "green", None, "One arm was compared: nothing was chosen.")
    gain = math.exp(min(chance_gain(log_speed_CS), 50.0))
    said = f"{best} is the fastest of {len(means)} arms ({was}) and not confirmed on fresh seeds"
    return Guard(
        "winner", "amber", gain, f"{said}: the best of so many equal arms would show {phrases.times(gain)} by chance."
    )


def _confirmed(chosen: str, again: Interval, was: str, tries: int) -> Guard:
    on, found = phrases.count(again.n, "unseen seed"), f"{phrases.factor(again)} (was {was})"
    if again.lo is None or again.lo <= 1 or again.value is None:
        return Guard("winner", "amber", again.value, f"{chosen}; run again on {on}, which do not bear it out: {found}.")
    if tries > 1:
        said = f"{chosen}; confirmed on {on} at try {tries}: {found}; the best of several tries is a choice again."
        return Guard("winner", "amber", again.value, said)
    return Guard("winner", "green", again.value, f"{chosen}; confirmed on {on}: {found}.")


def chance_gain(log_speed_CS: Array) -> float:
    """s / sqrt(n) * E max of m standard normals, over the rows with two values or more. A13."""
    rows = [row[np.isfinite(row)] for row in log_speed_CS]
    rows = [row for row in rows if len(row) > 1]
    errors = [float(row.std(ddof=1)) / math.sqrt(len(row)) for row in rows]
    return float(np.mean(errors)) * expected_max(len(rows))


@functools.cache
def expected_max(m: int) -> float:
    """E of the largest of m standard normals: 1.42, 1.77, 2.34, 2.83 for 8, 16, 64, 256; by the trapezoid rule."""
    from scipy.special import ndtr

    x = np.linspace(-9, 9, 20001)
    density = np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    return float(np.trapezoid(x * m * density * ndtr(x) ** (m - 1), x))


def tuning(tried: Mapping[str, int], baseline: str) -> Guard:
    """B9: settings tried by set of methods, points of the grid and of tuning together, the baseline's among them.

    The number is the baseline's. What was tried before this sweep no store knows.
    """
    if not tried or max(tried.values()) < 2:
        return not_checked("tuning", "this sweep tries one setting, and what was tried before it is not recorded")
    own = tried.get(baseline, 0)
    others = sorted({n for arm, n in tried.items() if arm != baseline})
    span = f"{others[0]}" if len(others) == 1 else f"{others[0]} to {others[-1]}" if others else "none"
    said = f"Baseline: {own} settings tried; each set of methods: {span}"
    if others and (others[0] != own or others[-1] != own):
        return Guard("tuning", "amber", own, f"{said}: whoever is tried more looks better.")
    return Guard("tuning", "green", own, f"{said}; what was tried before this sweep is not recorded.")
