"""Warm-up: from which step on steps take equally long, if ever. Nothing is discarded; it is said. A17.

After Barrett et al. (2017, OOPSLA), who find a steady state in at most 43.5 % of their VM and benchmark pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from expkit.analysis import phrases
from expkit.analysis.comparisons import Steadiness
from expkit.analysis.intervals import Array
from expkit.analysis.load import Sweep
from expkit.analysis.study import Study

TOLERANCE = 0.02
"""Segments whose mean log-times differ by less are one pace."""
LEAST_STEADY = 0.25
"""The steady end must be so much of the whole."""
LEAST_STEPS = 8
MOST_STEPS = 2_000
"""Longer series are averaged down to it: the search takes time that grows with the square."""


@dataclass(frozen=True)
class Steady:
    """`start` is the index of the first step of the steady end, None where there is none."""

    start: int | None
    segments: tuple[int, ...]
    """Where the pace changes, 0 first."""


def steady_state(step_s: ArrayLike) -> Steady | None:
    """Of the seconds of each of m steps in their order; None for fewer than eight finite positive ones.

    Segments of ln t by least squares with a penalty of 3 ln(m) sigma^2 for each change (optimal partitioning, Jackson
    et al. 2005), sigma from the median absolute difference of neighbours, outliers drawn in to 3 sigma about the median
    of their five neighbours. Steady is the last segment with all before it that differ from it by less than 2 %; it
    must be a quarter of the whole.
    """
    times = np.asarray(step_s, dtype=float)
    times = times[np.isfinite(times) & (times > 0)]
    if len(times) < LEAST_STEPS:
        return None
    size = math.ceil(len(times) / MOST_STEPS)
    whole = len(times) // size * size
    logs = np.log(times[:whole]).reshape(-1, size).mean(axis=1)
    sigma = _noise(logs)
    logs = _drawn_in(logs, sigma)
    starts = _segments(logs, 3 * math.log(len(logs)) * max(sigma, 1e-3) ** 2)
    means = [float(part.mean()) for part in np.split(logs, starts[1:])]
    first = len(means) - 1
    while first > 0 and abs(means[first - 1] - means[-1]) < TOLERANCE:
        first -= 1
    steady = len(logs) - starts[first] >= LEAST_STEADY * len(logs)
    return Steady(starts[first] * size if steady else None, tuple(s * size for s in starts))


def steadiness(study: Study, data: Sweep) -> Steadiness | None:
    """Of the baseline's complete trials, whose pace no method changes by design; None where none has eight stretches.

    A step's time is that of the stretch between two evaluations, on the train clock.
    """
    warm_ups: list[float | None] = []
    shares: list[float] = []
    for one in study.replicates:
        series = data.series.get((one.id, one.replicate))
        if series is None or not one.complete or not study.is_baseline(one.arm):
            continue
        batch, clock = np.append(0.0, series.batch), np.append(0.0, series.clocks["train_s"])
        with np.errstate(invalid="ignore", divide="ignore"):
            found = steady_state(np.diff(clock) / np.diff(batch))
        if found is not None:
            warm_ups.append(None if found.start is None else float(clock[found.start]))
            shares += [float(clock[found.start] / clock[-1])] if found.start is not None and clock[-1] > 0 else []
    if not warm_ups:
        return None
    known = [w for w in warm_ups if w is not None]
    warm_up = float(np.median(known)) if known else None
    share = float(np.median(shares)) if shares else None
    return Steadiness(len(warm_ups), len(known), warm_up, share, _sentence(len(warm_ups), known, warm_up, share))


def _sentence(trials: int, known: list[float], warm_up: float | None, share: float | None) -> str:
    if warm_up is None or share is None:
        return f"No steady state in any of {trials} baseline trials: their steps keep changing pace."
    of = f"{len(known)} of {trials} baseline trials come to a steady state"
    if warm_up == 0:
        return f"{of}, from their first step on."
    took = f"{phrases.seconds(warm_up)} ({phrases.share(share)} of training)"
    return f"{of}, after {took} of warm-up, which is in their times."


def _noise(logs: Array) -> float:
    """Standard deviation of one step, from neighbours, so that changes of pace hardly count."""
    return 1.4826 * float(np.median(np.abs(np.diff(logs) - np.median(np.diff(logs))))) / math.sqrt(2)


def _drawn_in(logs: Array, sigma: float) -> Array:
    padded = np.pad(logs, 2, mode="edge")
    middle = np.median(np.lib.stride_tricks.sliding_window_view(padded, 5), axis=1)
    return np.asarray(np.clip(logs, middle - 3 * sigma, middle + 3 * sigma), dtype=float)


def _segments(x: Array, penalty: float) -> list[int]:
    """Starts of the segments that make sum of squares plus penalty least; O(m^2)."""
    m = len(x)
    sums, squares = (np.concatenate(([0.0], np.cumsum(v))) for v in (x, x * x))
    best, before = np.full(m + 1, math.inf), np.zeros(m + 1, dtype=np.int64)
    best[0] = -penalty
    for end in range(1, m + 1):
        starts = np.arange(end)
        within = squares[end] - squares[:end] - (sums[end] - sums[:end]) ** 2 / (end - starts)
        total = best[:end] + within + penalty
        before[end] = int(total.argmin())
        best[end] = float(total[before[end]])
    found, end = [], m
    while end > 0:
        end = int(before[end])
        found.append(end)
    return found[::-1]
