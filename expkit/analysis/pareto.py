"""The arms that no other beats on both axes, with the probability that each is one of them.

Points are gains over the baseline, more is better on both axes: log speedup and quality difference. Shapes: C arms,
S seeds, NaN where an arm lacks a seed. speedup-science A7. Whole blocks are resampled, all arms of a seed together;
with the few seeds of a sweep the probabilities are approximate.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from expkit.analysis.estimates import Interval
from expkit.analysis.intervals import Array, t_interval

LEAST_SEEDS = 3
"""Two blocks have three resamples: too few to speak of a probability."""
RESAMPLES = 2_000
FRONT, POSSIBLE = 0.5, 0.05
"""From which probability on an arm is called `front`, and `possible`."""

Flags = np.typing.NDArray[np.bool_]


def on_front(speed: ArrayLike, quality: ArrayLike) -> Flags:
    """(..., C): whether no arm is at least as fast and as good and better in one of both. NaN is on no front.

    Sorted by speed and then quality, an arm is beaten iff one before it is better, or equal in quality and faster;
    equal points do not beat each other. C ln C, for many tables at once.
    """
    g, q = np.asarray(speed, dtype=float), np.asarray(quality, dtype=float)
    known = np.isfinite(g) & np.isfinite(q)
    g, q = np.where(known, g, -np.inf), np.where(known, q, -np.inf)
    order = np.lexsort((-q, -g), axis=-1)
    fast, good = np.take_along_axis(g, order, -1), np.take_along_axis(q, order, -1)
    best = np.maximum.accumulate(good, axis=-1)
    before = np.concatenate((np.full((*best.shape[:-1], 1), -np.inf), best[..., :-1]), axis=-1)
    reached = np.where(good > before, fast, np.inf)  # the speed at which the best so far was first reached
    since = np.minimum.accumulate(reached, axis=-1)
    beaten = (before > good) | ((before == good) & (since > fast))
    flags = np.empty(g.shape, dtype=bool)
    np.put_along_axis(flags, order, ~beaten, -1)
    return np.asarray(flags & known, dtype=np.bool_)


def front_probability(
    speed_CS: ArrayLike, quality_CS: ArrayLike, rng: np.random.Generator, resamples: int = RESAMPLES
) -> Array | None:
    """(C,): share of resampled sets of seeds in which each arm's means are on the front; None below 3 seeds.

    An arm counts in those resamples in which it has a value; NaN for one that never has. 1,024 arms of 10 seeds take
    about a second.
    """
    speed, quality = _both(speed_CS, quality_CS)
    num_seeds = speed.shape[1]
    if num_seeds < LEAST_SEEDS:
        return None
    weights = rng.multinomial(num_seeds, np.full(num_seeds, 1 / num_seeds), size=resamples).astype(float)
    means = [_means(weights, table) for table in (speed, quality)]
    known = np.isfinite(means[0]).sum(axis=0)
    flags = on_front(*means).sum(axis=0)
    return np.where(known > 0, flags / np.maximum(known, 1), np.nan)


def volume(speed_CS: ArrayLike, quality_CS: ArrayLike, margin: float, level: float = 0.95) -> Interval:
    """Hypervolume of the front beyond (the baseline's time, its quality - margin), in log-time x the metric's unit.

    integral over g > 0 of max(0, the best quality gain at a log speedup of at least g, plus margin); 0 where nothing is
    faster at a quality that counts. The interval is Student's t over the jackknife's pseudo-values, Tukey (1958),
    because percentiles of a bootstrap cover 75 % at three seeds. No value without seeds.
    """
    speed, quality = _both(speed_CS, quality_CS)
    num_seeds = speed.shape[1]
    if not num_seeds or not np.isfinite(speed).any():
        return Interval(level=level)
    ones = np.ones((1, num_seeds))
    whole = _area(_means(ones, speed)[0], _means(ones, quality)[0], margin)
    if num_seeds < LEAST_SEEDS:
        return Interval(whole, None, None, num_seeds, level)
    left_out = 1 - np.eye(num_seeds)
    rows = zip(_means(left_out, speed), _means(left_out, quality), strict=True)
    parts = np.array([_area(g, q, margin) for g, q in rows])
    found = t_interval(num_seeds * whole - (num_seeds - 1) * parts, level, "jackknife t, approximate")
    if found.lo is None or found.hi is None:
        return Interval(whole, None, None, num_seeds, level)
    return Interval(whole, max(0.0, min(found.lo, whole)), max(found.hi, whole), num_seeds, level, found.method)


def _area(speed_C: Array, quality_C: Array, margin: float) -> float:
    flags = on_front(speed_C, quality_C) & (speed_C > 0) & (quality_C > -margin)
    order = np.argsort(speed_C[flags])
    widths = np.diff(np.concatenate(([0.0], speed_C[flags][order])))
    return math.fsum(widths * (quality_C[flags][order] + margin))


def _both(speed_CS: ArrayLike, quality_CS: ArrayLike) -> tuple[Array, Array]:
    """Both tables, NaN in both where one lacks a value; seeds without any value left out."""
    speed, quality = np.asarray(speed_CS, dtype=float), np.asarray(quality_CS, dtype=float)
    known = np.isfinite(speed) & np.isfinite(quality)
    kept = known.any(axis=0)
    return np.where(known, speed, np.nan)[:, kept], np.where(known, quality, np.nan)[:, kept]


def _means(weights_BS: Array, table_CS: Array) -> Array:
    """(B, C) weighted means over the seeds that an arm has; NaN where it has none."""
    known = np.isfinite(table_CS)
    sums = weights_BS @ np.where(known, table_CS, 0.0).T
    total = weights_BS @ known.T.astype(float)
    return np.asarray(np.divide(sums, total, out=np.full(sums.shape, np.nan), where=total > 0), dtype=float)
