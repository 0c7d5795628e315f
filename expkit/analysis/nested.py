"""Levels of one method, as a factor nested in it: whether to use it at all, and which level. Shapes: L levels, S seeds.

Each level is compared where its sisters are off, so a level's effect is against off; the method's is their mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from expkit.analysis.cells import Cell, Idle, matched_pairs
from expkit.analysis.intervals import Array
from expkit.analysis.linear import Estimate, contrasts


@dataclass(frozen=True)
class Nested:
    """`any_level` against off, `apart` each level against the mean of the levels, `p` of levels that do not differ."""

    any_level: Estimate
    apart: tuple[Estimate, ...]
    p: float | None


def nested(
    cells: Sequence[Cell], levels: Sequence[str], values_CS: ArrayLike, idle: Idle = (), level: float = 0.95
) -> Nested:
    """Of one method, from the seeds in which every level has a pair of cells; t intervals over seeds.

    F = MS(levels) / MS(levels x seeds), (L - 1) and (L - 1)(S - 1) degrees of freedom: levels are fixed, seeds are
    blocks. Montgomery, Design and Analysis of Experiments, ch. 4 and 14.
    """
    table = np.asarray(values_CS, dtype=float)
    sisters = [frozenset(levels)]
    effects_LS = np.array([_effect(table, matched_pairs(cells, one, sisters, idle)) for one in levels])
    whole = effects_LS[:, np.isfinite(effects_LS).all(axis=0)]
    num = len(levels)
    weights = np.vstack((np.full((1, num), 1 / num), np.eye(num) - 1 / num))
    any_level, *apart = contrasts(weights, whole, level)
    return Nested(any_level, tuple(apart), _f_test_p(whole))


def _effect(table_CS: Array, pairs: Sequence[tuple[int, int]]) -> Array:
    """(S,) mean over the pairs, NaN in a seed that lacks one."""
    if not pairs:
        return np.full(table_CS.shape[1], np.nan)
    off, on = np.array(pairs).T
    return np.asarray((table_CS[on] - table_CS[off]).mean(axis=0), dtype=float)


def _f_test_p(effects_LS: Array) -> float | None:
    from scipy.special import fdtrc

    num, seeds = effects_LS.shape
    if num < 2 or seeds < 2:
        return None
    means = effects_LS.mean(axis=1, keepdims=True)
    residuals = effects_LS - means - effects_LS.mean(axis=0, keepdims=True) + effects_LS.mean()
    between = seeds * float(np.square(means - effects_LS.mean()).sum()) / (num - 1)
    df = (num - 1) * (seeds - 1)
    within = float(np.square(residuals).sum()) / df
    if within <= 0:
        return 1.0 if between == 0 else 0.0
    return float(fdtrc(num - 1, df, between / within))
