"""Reference convergence points, as MLPerf checks them: how few samples to a target the reference's own spread explains.

Fastest and slowest of the reference and of the submission are left out (olympic). With n and m runs left, SD of a
reference s, the least mean that 5 % of submissions of the reference itself would fall below is
mean - t_{.95, n + m - 2} s sqrt(1 / n + 1 / m). The rules take s from the trimmed runs, the checker from all of them:
the first allows less. mlcommons/training_policies and mlcommons/logging (2026); population SDs, as there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from expkit.analysis.intervals import t_quantile
from expkit.errors import UsageError

LEAST = 4
"""Reference runs: two are left out, and two must be left."""


@dataclass(frozen=True)
class Convergence:
    """Samples to the target that a reference needs, and the least mean of a submission that is still plausible."""

    mean: float
    """Of the trimmed reference runs."""
    least: float
    """By the SD of the trimmed runs."""
    least_of_all: float
    """By that of all runs, as the checker has it."""

    @property
    def allowed(self) -> tuple[float, float]:
        """Speedups in samples that need no other explanation: by the rules, by the checker."""
        return self.mean / self.least, self.mean / self.least_of_all


def reference_convergence(samples: ArrayLike, submitted: int) -> Convergence:
    """From the reference runs' samples to the target, (n,), for so many submitted runs; UsageError for too few."""
    runs = np.sort(np.asarray(samples, dtype=float))
    if len(runs) < LEAST or submitted < 3 or not np.isfinite(runs).all():
        raise UsageError(f"a reference is {LEAST} finite runs or more and a submission 3, but got {len(runs)} and "
                         f"{submitted}")  # fmt: skip
    trimmed, left = runs[1:-1], submitted - 2
    # one-sided 95 % is the upper end of a two-sided 90 %
    t = t_quantile(0.90, len(trimmed) + left - 2) * math.sqrt(1 / len(trimmed) + 1 / left)
    mean = float(trimmed.mean())
    return Convergence(mean, *(mean - t * float(side.std()) for side in (trimmed, runs)))


def olympic_mean(values: Sequence[float]) -> float:
    """Mean without the least and the largest; one miss, inf, counts as the slowest. UsageError below 3."""
    if len(values) < 3:
        raise UsageError(f"a mean without the least and the largest takes 3 values or more, but got {len(values)}")
    return math.fsum(sorted(values)[1:-1]) / (len(values) - 2)
