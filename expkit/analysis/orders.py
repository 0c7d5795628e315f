"""Shapley credit from sampled orders of switching on: no model, but orders are sampled as seeds are.

phi_i = mean over the orders of v(those before i, and i) - v(those before i); these sum to the whole exactly. Squared
standard errors of seeds and of orders add: the latter from pairs of an order and its reverse, times 1 - m / k! where m
of all k! are there. speedup-science A8; Mitchell et al. (2022), JMLR 23. Shapes: C cells, S seeds, N sets, M orders.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from expkit.analysis.cells import Cell, Grid, part_of_grid
from expkit.analysis.estimates import Interval
from expkit.analysis.intervals import Array, PooledError, t_quantile
from expkit.analysis.linear import Estimate, contrasts, estimate
from expkit.analysis.replicate import level_of

Orders = Sequence[Sequence[str]]
"""Methods, each order from the first to be switched on to the last; one with levels by its name."""
Places = NDArray[np.int64]
MOST = 62
"""Methods: bitmasks of 64 bits."""


def of_orders(
    cells: Sequence[Cell], values_CS: Array, orders: Orders, level: float = 0.95, error: PooledError | None = None
) -> dict[str, Estimate]:
    """Credit of each method, or level of one; empty where the cells lack a set that stands along the orders."""
    found = part_of_grid(cells, MOST) if orders else None
    steps = None if found is None else _steps(found[0], found[1], orders)
    if found is None or steps is None:
        return {}
    grid, (before_MK, after_MK) = found[0], steps
    weights_KN = np.zeros((grid.k, len(found[1])))
    for i in range(grid.k):
        np.add.at(weights_KN[i], after_MK[:, i], 1 / len(orders))
        np.add.at(weights_KN[i], before_MK[:, i], -1 / len(orders))
    spread = grid.spread(weights_KN, [(i,) for i in range(grid.k)])
    names = [name for (name,) in spread]
    made = contrasts(np.array(list(spread.values())), values_CS, level, error)
    errors = {name: _order_error(grid, name, values_CS, before_MK, after_MK, orders) for name in names}
    return {name: _both(one, errors[name], level) for name, one in zip(names, made, strict=True)}


def _steps(grid: Grid, masks: Sequence[int], orders: Orders) -> tuple[Places, Places] | None:
    """(M, K) twice: positions among the sets before and after each method is switched on."""
    bit = {levels[0] if len(levels) == 1 else level_of(levels[0]): i for i, levels in enumerate(grid.factors)}
    position = {mask: n for n, mask in enumerate(masks)}
    before, after = (np.zeros((len(orders), grid.k), dtype=np.int64) for _ in range(2))
    for row, order in enumerate(orders):
        mask = 0
        if sorted(order) != sorted(bit):
            return None
        for method in order:
            grown = mask | 1 << bit[method]
            if mask not in position or grown not in position:
                return None
            before[row, bit[method]], after[row, bit[method]] = position[mask], position[grown]
            mask = grown
    return before, after


def _order_error(
    grid: Grid, name: str, values_CS: Array, before_MK: Places, after_MK: Places, orders: Orders
) -> tuple[float, int] | None:
    """(standard error, degrees of freedom) of the mean over orders, None where fewer than two pairs were drawn."""
    cubes = [cube for cube in grid.cubes if name in cube.methods]
    with_seeds = np.isfinite(values_CS).all(axis=0)
    if not with_seeds.any():
        return None
    mean_N = np.mean([values_CS[cube.order][:, with_seeds].mean(axis=1) for cube in cubes], axis=0)
    i = cubes[0].methods.index(name)
    gains = mean_N[after_MK[:, i]] - mean_N[before_MK[:, i]]
    pairs = _paired(orders, gains)
    if len(pairs) < 2 or not np.isfinite(pairs).all():
        return None
    left = max(0.0, 1 - len(orders) / math.factorial(grid.k))
    return float(np.std(pairs, ddof=1)) * math.sqrt(left / len(pairs)), len(pairs) - 1


def _paired(orders: Orders, gains_M: Array) -> list[float]:
    """Means of each order and its reverse, which are no independent draws."""
    found, row = [], 0
    while row < len(orders):
        both = row + 1 < len(orders) and list(orders[row + 1]) == list(orders[row])[::-1]
        found.append(float(gains_M[row : row + 1 + both].mean()))
        row += 1 + both
    return found


def _both(one: Estimate, order_error: tuple[float, int] | None, level: float) -> Estimate:
    """With the spread over orders added to that over seeds; degrees of freedom after Welch and Satterthwaite."""
    it = one.interval
    if it.value is None or order_error is None or it.lo is None or it.hi is None or one.df is None:
        return Estimate(Interval(it.value, None, None, it.n, level))
    seeds = (it.hi - it.lo) / 2 / t_quantile(level, one.df)
    orders, df = order_error
    total = seeds**2 + orders**2
    both = total**2 / (seeds**4 / one.df + orders**4 / df) if total > 0 else one.df
    return estimate(it.value, math.sqrt(total), both, it.n, level, "over seeds and orders")
