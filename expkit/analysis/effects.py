"""The main effect of each method: what switching it on does to ln speedup or to quality, over the contexts tried.

From pairs of cells that differ in nothing else, on whatever cells there are; on a full grid that is the textbook's
main effect and the Banzhaf value. A fraction has no such pairs: there a main effect is a contrast of all cells, and
what else is in that number is named with it. speedup-science A8.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from expkit.analysis.cells import Cell, Idle, matched_pairs, matched_squares, switched
from expkit.analysis.estimates import Interval
from expkit.analysis.fraction import Partial
from expkit.analysis.intervals import Array, PooledError, pooled_error
from expkit.analysis.least_squares import Pairwise, fit
from expkit.analysis.linear import Estimate, contrasts, estimate


@dataclass(frozen=True)
class MethodEffect:
    """The main effect of one method, from `pairs` of cells per seed that differ in nothing else, of `planned` ones."""

    method: str
    estimate: Estimate
    pairs: int
    planned: int
    contrast: bool = False
    """Not from pairs: the mean of all cells that have it minus that of all that have not, other methods fitted."""


def method_effects(
    cells: Sequence[Cell],
    values_CS: ArrayLike,
    sisters: Sequence[frozenset[str]] = (),
    idle: Idle = (),
    level: float = 0.95,
) -> tuple[MethodEffect, ...]:
    """Main effect of every method that some cell has and some cell lacks, sorted by its label.

    `sisters`: sets of labels that are levels of one method; each level is judged on the sub-grid where its sisters are
    off. `idle[c]`: methods of cell c that did nothing in it; such a pair earns no credit. Where trials are missing,
    each seed has the pairs that it has: their number is the smallest over the seeds used.
    """
    table = np.asarray(values_CS, dtype=float)
    error = pooled_error(table, [point for _, point in cells])
    part = None if any(idle) else Partial.of(cells, table)
    if part is not None and part.regular:
        return _of_fraction(part, table, error, level)
    found = []
    without: list[str] = []
    for method in sorted(label for levels in switched(cells) for label in levels):
        pairs = matched_pairs(cells, method, sisters, idle)
        if pairs:
            found.append(_from_pairs(method, pairs, table, error, level))
        elif not (idle and any(method in did_nothing for did_nothing in idle)):
            without.append(method)
    return tuple(sorted([*found, *_contrasted(cells, without, table, level)], key=lambda e: e.method))


def _of_fraction(part: Partial, table: Array, error: PooledError | None, level: float) -> tuple[MethodEffect, ...]:
    """By contrasts of all its cells; an added baseline would give pairs too, of one context."""
    weights = {name[0]: w for name, w in part.effects().items() if len(name) == 1}
    found = contrasts(np.array(list(weights.values())), table, level, error) if weights else []
    num = len(part.rows)
    return tuple(MethodEffect(m, e, num, num, contrast=True) for m, e in zip(weights, found, strict=True))


def _from_pairs(
    method: str, pairs: Sequence[tuple[int, int]], table: Array, error: PooledError | None, level: float
) -> MethodEffect:
    off, on = np.array(pairs).T
    found, per_seed = _mean_over_seeds(table[on] - table[off], _pair_weights(pairs, len(table)), error, level)
    return MethodEffect(method, found, per_seed, len(pairs))


def pair_interaction(
    cells: Sequence[Cell],
    two: Sequence[str],
    values_CS: ArrayLike,
    sisters: Sequence[frozenset[str]] = (),
    idle: Idle = (),
    level: float = 0.95,
    error: PooledError | None = None,
) -> tuple[Estimate, int, int]:
    """(I_A of two methods, squares of cells per seed that it is from, planned ones), from matched squares of cells.

    Half the difference of differences, mean over squares; on a full grid the textbook's interaction. No value where
    no square is there.
    """
    table, squares = np.asarray(values_CS, dtype=float), matched_squares(cells, two, sisters, idle)
    if not squares:
        return Estimate(), 0, 0
    neither, first, second, both = np.array(squares).T
    weights = np.zeros(len(cells))
    for corners, sign in ((neither, 1), (first, -1), (second, -1), (both, 1)):
        np.add.at(weights, corners, sign / 2 / len(squares))
    halves = (table[both] - table[first] - table[second] + table[neither]) / 2
    found, per_seed = _mean_over_seeds(halves, weights, error, level)
    return found, per_seed, len(squares)


def _mean_over_seeds(
    differences_DS: Array, weights_C: Array, error: PooledError | None, level: float
) -> tuple[Estimate, int]:
    """Mean of the differences that each seed has, then over seeds; and the fewest that a seed has."""
    there = np.isfinite(differences_DS).sum(axis=0)
    used = there > 0
    per_seed = np.where(np.isfinite(differences_DS), differences_DS, 0.0).sum(axis=0)[used] / there[used]
    fewest, n = int(there[used].min()) if used.any() else 0, int(used.sum())
    if error is not None:
        spread = error.sd * float(np.sqrt(np.square(weights_C).sum() / n))
        return estimate(float(per_seed.mean()), spread, error.df, n, level, "pooled t"), fewest
    return contrasts(np.ones((1, 1)), per_seed[None], level)[0], fewest


def _contrasted(cells: Sequence[Cell], methods: Sequence[str], table: Array, level: float) -> list[MethodEffect]:
    """Methods of which no two cells differ by themselves, as in a fraction: least squares on single methods.

    One that no cell with a value has, or that all of them have, has a row without a number.
    """
    if not methods:
        return []
    model = Pairwise.of(cells, pairs=False)
    error = pooled_error(table, [point for _, point in cells])
    found = fit(model, {m: model.main(m) for m in methods}, table, level, error)
    ended = [on for (on, _), row in zip(cells, table, strict=True) if np.isfinite(row).any()]
    found |= {m: Estimate(Interval(level=level)) for m in methods if len({m in on for on in ended}) < 2}
    return [MethodEffect(m, e, len(ended), len(cells), contrast=True) for m, e in found.items()]


def _pair_weights(pairs: Sequence[tuple[int, int]], num_cells: int) -> Array:
    weights = np.zeros(num_cells)
    for off, on in pairs:
        weights[on] += 1 / len(pairs)
        weights[off] -= 1 / len(pairs)
    return weights
