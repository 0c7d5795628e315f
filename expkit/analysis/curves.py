"""Learning curves: mean over trials with a t interval, at no more than 200 points."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from expkit.analysis.attainment import first_ended
from expkit.analysis.intervals import t_interval
from expkit.analysis.load import Evaluations, Key, finite
from expkit.analysis.model import Curve
from expkit.analysis.replicate import Replicate

MAX_POINTS = 200


def curve(
    arm: str, metric: str, replicates: Sequence[Replicate], series: Mapping[Key, Evaluations], level: float
) -> Curve | None:
    """The curve of one arm over its complete trials, each once; None where none has an evaluation.

    A point is a batch that some trial evaluated at; values that are not finite are left out of it.
    """
    trials = [r for r in first_ended(replicates) if r.complete and (r.id, r.replicate) in series]
    at: dict[float, list[tuple[float, float, float]]] = {}
    for one in trials:
        s = series[one.id, one.replicate]
        for batch, sample, seconds, value in zip(s.batch, s.sample, s.clocks["train_s"], s.value, strict=True):
            if math.isfinite(value):
                at.setdefault(batch, []).append((sample, seconds, value))
    if not at:
        return None
    batches = spread(sorted(at), MAX_POINTS)
    points = [np.asarray(at[b], dtype=float) for b in batches]
    intervals = [t_interval(p[:, 2], level) for p in points]
    return Curve(
        arm,
        metric,
        step=tuple(int(b) for b in batches),
        sample=tuple(int(p[:, 0].mean()) for p in points),
        train_s=tuple(finite(p[:, 1].mean()) or 0.0 for p in points),
        mean=tuple(float(p[:, 2].mean()) for p in points),
        lo=tuple(i.lo for i in intervals),
        hi=tuple(i.hi for i in intervals),
        n=tuple(len(p) for p in points),
    )


def spread(points: Sequence[float], most: int) -> list[float]:
    """At most so many of them, evenly, the first and the last among them."""
    if len(points) <= most:
        return list(points)
    return [points[i] for i in np.linspace(0, len(points) - 1, most).round().astype(int)]
