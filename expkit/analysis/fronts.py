"""Which arms of a sweep are on the front of time and quality, one front a parameter point."""

from __future__ import annotations

import math

import numpy as np

from expkit.analysis.estimates import Front
from expkit.analysis.pareto import LEAST_SEEDS, front_probability, volume
from expkit.analysis.replicate import label_of, methods_of
from expkit.analysis.study import Study


def fronts(study: Study, seed: int = 0) -> tuple[Front, ...]:
    """Probability of each arm, the baseline among them, to be beaten by no other; `seed` is that of the resampling.

    Points at which no two arms have a value are left out.
    """
    labels = list(study.by_arm)
    points = dict.fromkeys(point for _, point in study.cells)
    found = [_front(study, labels, point, seed) for point in points]
    return tuple(front for front in found if front is not None)


def _front(study: Study, labels: list[str], point: str, seed: int) -> Front | None:
    rows = [i for i, (_, own) in enumerate(study.cells) if own == point]
    base = label_of(methods_of(study.baseline), point)
    if base not in study.by_arm:
        return None
    speed = study.log_speed_CS[rows]
    gain = study.quality_CS[rows] - study.quality_CS[labels.index(base)]
    known = np.isfinite(speed) & np.isfinite(gain)
    rows_known = known.any(axis=1)
    seeds = int(known[:, known.any(axis=0)].shape[1])
    if rows_known.sum() < 2:
        return None
    area = volume(speed, gain, study.delta, study.ci)
    shares = front_probability(speed, gain, np.random.default_rng(seed)) if seeds >= LEAST_SEEDS else None
    if shares is None:
        return Front(point, seeds, volume=area)
    named = [(labels[row], float(p)) for row, p in zip(rows, shares, strict=True) if math.isfinite(p)]
    return Front(point, seeds, tuple(sorted(named, key=lambda each: (-each[1], each[0]))), area)
