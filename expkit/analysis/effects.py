"""Who earned it: what each method does to ln speedup or to quality, averaged over the contexts it was tried in.

Every number here is linear in the cells' values, so it is taken per seed and gets a t interval over seeds, or one
with the pooled within-block error (speedup-science A8). Shapes: C cells (arms) by S seeds; k methods. On a full grid
cell c is a bitmask: bit i set means method i on. Values are -ln T for time, so that more is better and credits add.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from expkit.analysis.estimates import Interval
from expkit.analysis.intervals import Array, pooled_error, pooled_interval, t_interval

MAX_SHAPLEY_METHODS = 12
"""4,096 cells; beyond, no grid that anybody trains is full."""

Masks = np.typing.NDArray[np.int64]
Cell = tuple[frozenset[str], str]
"""(methods on, parameter point): cells are compared at one parameter point only."""


def main_weights(k: int) -> Array:
    """(k, 2^k): mean over cells with i on minus mean over cells with i off. The Banzhaf value; A8, Yates (1937)."""
    on = _on(k)
    return np.asarray(np.where(on, 1.0, -1.0) / 2 ** max(k - 1, 0), dtype=float)


def shapley_weights(k: int) -> Array:
    """(k, 2^k): phi_i = sum_S |S|! (k-1-|S|)! / k! [v(S+i) - v(S)]; they sum to v(all) - v(none). Shapley (1953)."""
    on, size = _on(k), _on(k).sum(axis=0)
    share = [math.factorial(s) * math.factorial(k - 1 - s) / math.factorial(k) for s in range(k)]
    gains = np.array([share[s - 1] if s else 0.0 for s in range(k + 1)])
    losses = np.array([share[s] if s < k else 0.0 for s in range(k + 1)])
    return np.asarray(np.where(on, gains[size], -losses[size]), dtype=float)


def add_one_in_weights(k: int) -> Array:
    """(k, 2^k): v({i}) - v(none), the effect on the bare baseline."""
    weights = np.zeros((k, 2**k))
    weights[np.arange(k), 1 << np.arange(k)] = 1
    weights[:, 0] = -1
    return weights


def leave_one_out_weights(k: int) -> Array:
    """(k, 2^k): v(all) - v(all but i), the effect on the full stack."""
    weights = np.zeros((k, 2**k))
    full = 2**k - 1
    weights[np.arange(k), full ^ (1 << np.arange(k))] = -1
    weights[:, full] += 1
    return weights


def interactions(values: ArrayLike) -> Array:
    """I_A = 2^-(k-1) sum_c v(c) prod_{i in A} s_i(c), s = +-1, for each bitmask A; entry 0 is twice the mean.

    By the fast Walsh transform along the first axis, 2^k long. The two-way difference of differences is 2 I_A. A8.
    """
    v = np.array(values, dtype=float)
    for bit in range(_log2(len(v))):
        off, on = _halves(len(v), bit)
        v[off], v[on] = v[off] + v[on], v[on] - v[off]
    return np.asarray(v / 2 ** max(_log2(len(v)) - 1, 0), dtype=float)


def dividends(values: ArrayLike) -> Array:
    """d(A) = sum_{B in A} (-1)^{|A|-|B|} v(B): what A does beyond all smaller sets (Harsanyi); Moebius transform."""
    v = np.array(values, dtype=float)
    for bit in range(_log2(len(v))):
        off, on = _halves(len(v), bit)
        v[on] = v[on] - v[off]
    return v


def contrast(weights: ArrayLike, values_CS: ArrayLike, level: float = 0.95, *, pool: bool = True) -> Interval:
    """sum_c w_c v_cs per seed, its mean and interval; seeds in which a cell of the contrast is missing are left out.

    With `pool`, the pooled within-block error where the table is complete and homogeneous, else t over seeds.
    """
    w, table = np.asarray(weights, dtype=float), np.asarray(values_CS, dtype=float)
    used = w != 0
    per_seed = w[used] @ table[used]  # NaN where a cell is missing
    error = pooled_error(table) if pool else None
    if error is not None:
        return pooled_interval(float(per_seed.mean()), w, error, table.shape[1], level)
    return t_interval(per_seed, level, method="t over seeds")


@dataclass(frozen=True)
class MethodEffect:
    """The main effect of one method, from `pairs` of cells per seed that differ in nothing else, of `planned` ones."""

    method: str
    effect: Interval
    pairs: int
    planned: int


def method_effects(
    cells: Sequence[Cell],
    values_CS: ArrayLike,
    sisters: Sequence[frozenset[str]] = (),
    idle: Sequence[frozenset[str]] = (),
    level: float = 0.95,
) -> tuple[MethodEffect, ...]:
    """Main effect of every method that some cell has and some cell lacks: mean over matched pairs of cells.

    On a full grid this is the main effect exactly. `sisters`: sets of labels that are levels of one method; each
    level is judged on the sub-grid where its sisters are off. `idle[c]`: methods of cell c that did nothing in it;
    such a pair earns no credit. Where trials are missing, each seed has the pairs that it has: their number is the
    smallest over the seeds used.
    """
    table = np.asarray(values_CS, dtype=float)
    error = pooled_error(table, [point for _, point in cells])
    found = []
    for method in sorted(set().union(*(c[0] for c in cells)) if cells else ()):
        pairs = matched_pairs(cells, method, sisters, idle)
        if not pairs:
            continue
        differences = np.array([table[on] - table[off] for off, on in pairs])
        there = np.isfinite(differences).sum(axis=0)
        sums = np.where(np.isfinite(differences), differences, 0.0).sum(axis=0)
        per_seed = sums[there > 0] / there[there > 0]
        if error is not None:
            weights = _pair_weights(pairs, len(cells))
            interval = pooled_interval(float(per_seed.mean()), weights, error, table.shape[1], level)
        else:
            interval = t_interval(per_seed, level, method="t over seeds")
        found.append(MethodEffect(method, interval, int(there[there > 0].min()) if there.any() else 0, len(pairs)))
    return tuple(found)


def matched_pairs(
    cells: Sequence[Cell], method: str, sisters: Sequence[frozenset[str]] = (), idle: Sequence[frozenset[str]] = ()
) -> list[tuple[int, int]]:
    """(off, on) indices of cells at one parameter point that differ in `method` only, its sister levels off in both."""
    excluded = frozenset().union(*(s for s in sisters if method in s)) - {method}
    index = {cell: i for i, cell in enumerate(cells)}
    pairs = []
    for i, (on, point) in enumerate(cells):
        off = index.get((on - {method}, point))
        did_nothing = bool(idle) and method in idle[i]
        if method in on and off is not None and not on & excluded and not did_nothing:
            pairs.append((off, i))
    return pairs


def full_grid(cells: Sequence[Cell]) -> tuple[list[str], list[int]] | None:
    """(methods, index of the cell of each bitmask) where the cells are all subsets at one parameter point, else None.

    Methods that are on in every cell are no part of the grid.
    """
    if not cells or len({point for _, point in cells}) != 1:
        return None
    always = frozenset.intersection(*(on for on, _ in cells))
    methods = sorted(frozenset().union(*(on for on, _ in cells)) - always)
    if len(methods) > MAX_SHAPLEY_METHODS or len(cells) != 2 ** len(methods):
        return None
    index = {on - always: i for i, (on, _) in enumerate(cells)}
    order = []
    for mask in range(2 ** len(methods)):
        subset = frozenset(m for bit, m in enumerate(methods) if mask >> bit & 1)
        if subset not in index:
            return None
        order.append(index[subset])
    return methods, order


def _pair_weights(pairs: Sequence[tuple[int, int]], num_cells: int) -> Array:
    weights = np.zeros(num_cells)
    for off, on in pairs:
        weights[on] += 1 / len(pairs)
        weights[off] -= 1 / len(pairs)
    return weights


def _on(k: int) -> np.typing.NDArray[np.bool_]:
    """(k, 2^k): whether method i is on in cell c."""
    return (np.arange(2**k)[None, :] >> np.arange(k)[:, None] & 1).astype(bool)


def _log2(num_cells: int) -> int:
    k = num_cells.bit_length() - 1
    assert num_cells == 2**k, f"a full grid has 2^k cells, not {num_cells}"
    return k


def _halves(num_cells: int, bit: int) -> tuple[Masks, Masks]:
    masks = np.arange(num_cells)
    on = masks[masks >> bit & 1 == 1]
    return on ^ (1 << bit), on
