"""Credit from a grid with holes or from a fraction: methods and pairs of them fitted together, nothing of higher order.

v = block + sum b_i x_i + sum b_ij x_i x_j with x = 1 where a method is on; then Shapley = b_i + 1/2 sum_j b_ij, which
is the main effect too. It assumes that no three methods interact; what the cells cannot tell apart has no estimate.
speedup-science A8. Shapes: C cells, S seeds, P parameters of the model.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from expkit.analysis.cells import Cell, switched
from expkit.analysis.intervals import Array, PooledError
from expkit.analysis.linear import Estimate, contrasts, estimate, pure_error

MAX_PARAMETERS = 1_000
"""44 methods with all their pairs; beyond, only single methods are fitted."""
_CLOSE = 1e-8


@dataclass(frozen=True)
class Pairwise:
    """The model of a set of cells; `names` are its parameters, `columns_CP` what each cell has of them."""

    factors: tuple[tuple[str, ...], ...]
    names: tuple[tuple[str, ...], ...]
    columns_CP: Array
    points: tuple[str, ...]

    @classmethod
    def of(cls, cells: Sequence[Cell], *, pairs: bool = True) -> Pairwise:
        """Single methods, and with `pairs` each two levels of different methods; ones that never meet stay in."""
        factors = switched(cells)
        singles = [(label,) for levels in factors for label in levels]
        twos = [_pair(i, j) for a, b in itertools.combinations(factors, 2) for i, j in itertools.product(a, b)]
        names = [*singles, *(twos if pairs else [])]
        columns = np.array([[set(name) <= on for name in names] for on, _ in cells], dtype=float)
        return cls(factors, tuple(names), columns.reshape(len(cells), len(names)), tuple(point for _, point in cells))

    def main(self, label: str) -> Array:
        """(P,): b_i + 1/2 sum_j b_ij, b_ij averaged over the levels of j: Shapley, Banzhaf and main effect alike."""
        shares: dict[tuple[str, ...], float] = {(label,): 1.0}
        for levels in self.factors:
            if label not in levels:
                shares |= {_pair(label, other): 0.5 / len(levels) for other in levels}
        return np.array([shares.get(name, 0.0) for name in self.names])

    def interaction(self, one: str, two: str) -> Array:
        """(P,): b_ij / 2, the textbook's I_A; the Shapley interaction is twice that."""
        return np.array([0.5 if name == _pair(one, two) else 0.0 for name in self.names])


def fit(
    model: Pairwise,
    asked: Mapping[str, Array],
    values_CS: ArrayLike,
    level: float = 0.95,
    error: PooledError | None = None,
) -> dict[str, Estimate]:
    """Each functional of the parameters that the cells determine, with its interval; the others are not in it.

    On a complete table a contrast of the cells, as in `contrasts`. Where trials are missing, all that is there is
    fitted with its blocks, with the pure error of cells and blocks: +- t_df sd sqrt(sum w^2).
    """
    table = np.asarray(values_CS, dtype=float)
    there = np.isfinite(table)
    if not there.any() or not asked:
        return {}
    if there.all():
        weights = _weights(np.hstack((model.columns_CP, _dummies(model.points))), asked)
        names = list(weights)
        found = contrasts(np.array([weights[n] for n in names]), table, level, error) if names else []
        return dict(zip(names, found, strict=True))
    return _with_holes(model, asked, table, level)


def lack_of_fit_p(model: Pairwise, values_CS: ArrayLike, error: PooledError | None) -> float | None:
    """p of the F test that the model gives every cell's mean: small where three methods interact after all.

    F = n sum_c (mean_c - fitted_c)^2 / (C - rank) / sd^2. None where the table has holes, has no pooled error, or the
    model is saturated.
    """
    from scipy.special import fdtrc

    table = np.asarray(values_CS, dtype=float)
    if error is None or not np.isfinite(table).all() or error.sd <= 0:
        return None
    design, means = np.hstack((model.columns_CP, _dummies(model.points))), table.mean(axis=1)
    solved, _, rank, _ = np.linalg.lstsq(design, means, rcond=1e-10)
    df = len(means) - int(rank)
    if df <= 0:
        return None
    squares = table.shape[1] * float(np.square(means - design @ solved).sum())
    return float(fdtrc(df, error.df, squares / df / error.sd**2))


def _with_holes(model: Pairwise, asked: Mapping[str, Array], table: Array, level: float) -> dict[str, Estimate]:
    error = pure_error(table, model.points)
    rows, columns = np.nonzero(np.isfinite(table))
    blocks = [f"{model.points[c]} {s}" for c, s in zip(rows, columns, strict=True)]
    weights = _weights(np.hstack((model.columns_CP[rows], _dummies(blocks))), asked)
    y, n = table[rows, columns], len(np.unique(columns))
    found = {}
    for name, w in weights.items():
        if error is None:
            found[name] = contrasts(w[None], y[:, None], level)[0]
        else:
            spread = error.sd * float(np.sqrt(np.square(w).sum()))
            found[name] = estimate(float(w @ y), spread, error.df, n, level, "least squares, pooled t")
    return found


def _weights(design_NP: Array, asked: Mapping[str, Array]) -> dict[str, Array]:
    """w = X (X'X)^+ g for each functional g that is in the row space of X."""
    num_blocks = design_NP.shape[1] - len(next(iter(asked.values())))
    normal = design_NP.T @ design_NP
    inverse = np.linalg.pinv(normal, rcond=1e-10, hermitian=True)
    found = {}
    for name, functional in asked.items():
        g = np.concatenate((functional, np.zeros(num_blocks)))
        solved = inverse @ g
        if np.allclose(normal @ solved, g, atol=_CLOSE):
            found[name] = design_NP @ solved
    return found


def _dummies(names: Sequence[str]) -> Array:
    known = {name: i for i, name in enumerate(dict.fromkeys(names))}
    return np.eye(len(known))[[known[name] for name in names]]


def _pair(one: str, two: str) -> tuple[str, ...]:
    return (one, two) if one < two else (two, one)
