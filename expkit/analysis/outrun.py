"""Whether a shorter baseline does what an arm does: a bound on its speedup at equal quality, curves or none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from expkit.analysis.estimates import Outrun
from expkit.analysis.intervals import Array, exp, t_interval
from expkit.analysis.quality import quality_difference, reading

AS_GOOD = ("better", "equal", "not worse")


def outrun(budgets: Sequence[float], table_KSV: Array, delta: float, ci: float) -> tuple[Outrun, ...]:
    """For each budget of an arm the shortest baseline that is faster and not worse; those that have none are left out.

    `table_KSV` is (budget, seed, 4): log seconds and quality, more is better, of the baseline, then of the arm. The
    baseline of budget j has the arm's quality, or better, after T_0(j), so at that quality S <= T_0(j) / T_c(k).
    Faster: the `ci` interval of the mean log ratio over seeds lies below 0; not worse: the test against the margin
    `delta`, at 5 %. Nothing is interpolated, no curve assumed. Shapes (K,), (K, S, 4); the bound is ours, beside A6.
    """
    found = []
    for k, budget in enumerate(budgets):
        for j, shorter in enumerate(budgets):
            ratio = exp(t_interval(table_KSV[j, :, 0] - table_KSV[k, :, 2], ci))
            gain = quality_difference(table_KSV[k, :, 3], table_KSV[j, :, 1])
            if ratio.hi is not None and ratio.hi < 1 and reading(gain, delta) in AS_GOOD:
                seconds = [float(np.exp(table_KSV[row, :, side].mean())) for row, side in ((k, 2), (j, 0))]
                found.append(Outrun(budget, seconds[0], shorter, seconds[1], ratio, gain))
                break
    return tuple(found)
