"""All credit of one axis, time or quality: from a full grid exactly, else by least squares as far as the cells reach.

Arms in which a method did nothing are left out: they are other arms by another name. A 2^10 grid of 10 seeds takes
half a second. Shapes: C cells, S seeds.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from expkit.analysis import cube
from expkit.analysis.cells import Cell, Grid, Idle, alone_and_last, grid_of, matched_squares, switched
from expkit.analysis.effects import pair_interaction
from expkit.analysis.fraction import Partial
from expkit.analysis.intervals import Array, PooledError, pooled_error, t_quantile
from expkit.analysis.least_squares import MAX_PARAMETERS, Pairwise, fit, lack_of_fit_p
from expkit.analysis.linear import Estimate, Lenth, contrasts, estimate, lenth
from expkit.analysis.orders import Orders, of_orders

Name = tuple[str, ...]


@dataclass(frozen=True)
class Shares:
    """Estimates by method and by set of methods; what the cells do not determine is not in them."""

    basis: str = "none"
    shapley: Mapping[str, Estimate] = field(default_factory=dict)
    add_one_in: Mapping[str, Estimate] = field(default_factory=dict)
    leave_one_out: Mapping[str, Estimate] = field(default_factory=dict)
    interactions: Mapping[Name, Estimate] = field(default_factory=dict)
    dividends: Mapping[Name, Estimate] = field(default_factory=dict)
    shapley_interactions: Mapping[Name, Estimate] = field(default_factory=dict)
    contexts: Mapping[Name, int] = field(default_factory=dict)
    variance: Mapping[Name, float] = field(default_factory=dict)
    """Shares of single methods and of sets, on a full grid without levels."""
    lenth: Lenth | None = None
    lack_of_fit_p: float | None = None


@dataclass(frozen=True)
class Table:
    """The cells in which every method did something, and their values."""

    cells: tuple[Cell, ...]
    values_CS: Array
    grid: Grid | None
    level: float
    orders: Orders = ()
    """Of switching on, along which the cells were chosen."""

    @classmethod
    def of(cls, cells: Sequence[Cell], values_CS: ArrayLike, idle: Idle, level: float, orders: Orders = ()) -> Table:
        """Seeds without any value are left out."""
        table = np.asarray(values_CS, dtype=float)
        rows = [i for i in range(len(cells)) if not (idle and idle[i])]
        kept = table[rows][:, np.isfinite(table[rows]).any(axis=0)]
        cells = tuple(cells[i] for i in rows)
        return cls(cells, kept, grid_of(cells), level, orders)

    @property
    def complete_CS(self) -> Array:
        """The seeds in which no cell is missing."""
        return self.values_CS[:, np.isfinite(self.values_CS).all(axis=0)]

    @property
    def exact(self) -> bool:
        """Whether the cells are a full grid of which two seeds, or the only one, are complete."""
        return self.grid is not None and self.complete_CS.shape[1] >= min(2, max(self.values_CS.shape[1], 1))

    def error(self, values_CS: Array) -> PooledError | None:
        """The pooled within-block error of these values."""
        return pooled_error(values_CS, [point for _, point in self.cells])


def shares(table: Table) -> Shares:
    """Everything that the table determines."""
    if not table.values_CS.size:
        return Shares()
    if table.grid is not None and table.exact:
        return _of_grid(table, table.grid)
    return _of_part(table)


def waterfall(table: Table, order: Sequence[str]) -> tuple[Estimate, ...]:
    """What each method of the order adds to those before it; empty but on a full grid of methods without levels."""
    grid = table.grid
    if grid is None or not table.exact or len(order) != grid.k or sorted(order) != grid.labels:
        return ()
    rows = cube.waterfall_weights([grid.cubes[0].methods.index(method) for method in order])
    weights = [grid.spread(row[None], [()])[()] for row in rows]
    values = table.complete_CS
    return tuple(contrasts(np.array(weights), values, table.level, table.error(values)))


def _of_grid(table: Table, grid: Grid) -> Shares:
    values, k = table.complete_CS, grid.k
    error = table.error(values)
    single = [(i,) for i in range(k)]
    pairs = list(itertools.combinations(range(k), 2))
    masks = [1 << i | 1 << j for i, j in pairs]
    sisters = _sisters(grid.factors)

    def found(weights_R2k: Array, about: Sequence[tuple[int, ...]]) -> dict[Name, Estimate]:
        spread = grid.spread(weights_R2k, about)
        if not spread:
            return {}
        estimates = contrasts(np.array(list(spread.values())), values, table.level, error)
        return dict(zip(spread, estimates, strict=True))

    def of_methods(weights_R2k: Array) -> dict[str, Estimate]:
        return {label: one for (label,), one in found(weights_R2k, single).items()}

    twos = found(cube.interaction_weights(k, masks), pairs)
    effects = _all_effects(table, grid, error)
    margin = lenth([one.interval.value or 0.0 for one in effects.values()], table.level) if _alone(values) else None
    more = {name: one for name, one in effects.items() if len(name) > 2}
    return Shares(
        basis="full grid",
        shapley=of_methods(cube.shapley_weights(k)),
        add_one_in=of_methods(cube.add_one_in_weights(k)),
        leave_one_out=of_methods(cube.leave_one_out_weights(k)),
        interactions=_with_margin({**twos, **more}, margin),
        dividends=found(cube.dividend_weights(k, masks), pairs),
        shapley_interactions=found(cube.shapley_interaction_weights(k, pairs), pairs),
        contexts={name: len(matched_squares(table.cells, name, sisters)) for name in twos}
        | {name: 2 ** (k - len(name)) * grid.points for name in more},
        variance=_variance(grid, values),
        lenth=margin,
    )


def _all_effects(table: Table, grid: Grid, error: PooledError | None) -> dict[Name, Estimate]:
    """Main effects and interactions of every order, by one Walsh transform; empty where methods have levels."""
    if any(len(levels) > 1 for levels in grid.factors):
        return {}
    values, methods = table.complete_CS, grid.cubes[0].methods
    per_seed = np.mean([cube.interactions(values[one.order]) for one in grid.cubes], axis=0)[1:]
    names = [tuple(m for i, m in enumerate(methods) if mask >> i & 1) for mask in range(1, 2**grid.k)]
    if error is None:
        return dict(zip(names, contrasts(np.eye(len(per_seed)), per_seed, table.level), strict=True))
    size = float(2 ** max(grid.k - 1, 0))  # each effect is a sum of all cells with weights of +-1 / size / points
    weight = np.full((1, len(values)), 1 / (size * grid.points))
    spread = contrasts(weight, values, table.level, error)[0].interval
    half = ((spread.hi or 0.0) - (spread.lo or 0.0)) / 2
    return {n: _about(float(m), half, error, values.shape[1], table.level)
            for n, m in zip(names, per_seed.mean(axis=1), strict=True)}  # fmt: skip


def _about(value: float, half: float, error: PooledError, n: int, level: float) -> Estimate:
    return estimate(value, half / t_quantile(level, error.df), error.df, n, level, "pooled t")


def _variance(grid: Grid, values_CS: Array) -> dict[Name, float]:
    if any(len(levels) > 1 for levels in grid.factors):
        return {}
    means = values_CS.mean(axis=1)
    found = cube.variance_shares(np.mean([means[one.order] for one in grid.cubes], axis=0))
    methods = grid.cubes[0].methods
    return {tuple(m for i, m in enumerate(methods) if mask >> i & 1): float(found[mask])
            for mask in range(1, 2**grid.k)}  # fmt: skip


def _of_part(table: Table) -> Shares:
    """From a grid with holes, a fraction, orders, one-at-a-time designs: pairs and squares of cells, least squares."""
    cells, values, level = table.cells, table.values_CS, table.level
    error = table.error(values)
    factors = switched(cells)
    labels = [label for levels in factors for label in levels]
    twos = [tuple(sorted(p)) for a, b in itertools.combinations(factors, 2) for p in itertools.product(a, b)]
    alone, last = {}, {}
    for label in labels:
        bare, full = alone_and_last(cells, label)
        alone[label], last[label] = (_of_pairs(pairs, table, error) for pairs in (bare, full))
    fitted, p = _fitted(table, labels, twos, error)
    sisters = _sisters(factors)
    squares = {two: pair_interaction(cells, two, values, sisters, (), level, error) for two in twos}
    interactions = {two: found for two, (found, _, planned) in squares.items() if planned}
    interactions |= {n: one for n, one in fitted.items() if len(n) == 2 and n not in interactions}
    sampled = of_orders(cells, values, table.orders, level, error)
    shapley = sampled or {n[0]: one for n, one in fitted.items() if len(n) == 1}
    contrasted, margin, num = _of_fraction(table, error)  # a fraction has no squares but by an added baseline
    interactions = {n: one for n, one in contrasted.items() if len(n) > 1} or interactions
    return Shares(
        basis="orders" if sampled else "least squares" if shapley else "pairs",
        shapley=shapley,
        add_one_in={label: one for label, one in alone.items() if one is not None},
        leave_one_out={label: one for label, one in last.items() if one is not None},
        interactions=interactions,
        dividends=_bare_dividends(table, twos, sisters, error),
        shapley_interactions={n: _doubled(one) for n, one in fitted.items() if len(n) == 2},
        contexts={two: fewest for two, (_, fewest, planned) in squares.items() if planned}
        | dict.fromkeys(contrasted, num),
        lenth=margin,
        lack_of_fit_p=p,
    )


def _of_fraction(table: Table, error: PooledError | None) -> tuple[dict[Name, Estimate], Lenth | None, int]:
    """The contrasts of a regular fraction by their set of fewest methods, Lenth's margins of them, its cells."""
    part = Partial.of(table.cells, table.values_CS)
    if part is None or not part.regular:
        return {}, None, 0
    weights, values = part.effects(), table.values_CS
    estimates = contrasts(np.array(list(weights.values())), values, table.level, error)
    margin = lenth([one.interval.value or 0.0 for one in estimates], table.level) if _alone(values) else None
    return _with_margin(dict(zip(weights, estimates, strict=True)), margin), margin, len(part.rows)


def _fitted(
    table: Table, labels: Sequence[str], twos: Sequence[tuple[str, ...]], error: PooledError | None
) -> tuple[dict[Name, Estimate], float | None]:
    """Single methods and pairs by least squares, and whether the model holds."""
    if not labels or len(labels) + len(twos) > MAX_PARAMETERS:
        return {}, None
    model = Pairwise.of(table.cells)
    asked: dict[Name, Array] = {(label,): model.main(label) for label in labels}
    asked |= {(one, two): model.interaction(one, two) for one, two in twos}
    names = {" ".join(name): name for name in asked}
    found = fit(model, {key: asked[name] for key, name in names.items()}, table.values_CS, table.level, error)
    return {names[key]: one for key, one in found.items()}, lack_of_fit_p(model, table.values_CS, error)


def _of_pairs(pairs: Sequence[tuple[int, int]], table: Table, error: PooledError | None) -> Estimate | None:
    if not pairs:
        return None
    weights = np.zeros((1, len(table.cells)))
    for off, on in pairs:
        weights[0, on] += 1 / len(pairs)
        weights[0, off] -= 1 / len(pairs)
    return contrasts(weights, table.values_CS, table.level, error)[0]


def _bare_dividends(
    table: Table, twos: Sequence[Name], sisters: Sequence[frozenset[str]], error: PooledError | None
) -> dict[Name, Estimate]:
    always = frozenset.intersection(*(on for on, _ in table.cells))
    found = {}
    for two in twos:
        squares = [s for s in matched_squares(table.cells, two, sisters) if table.cells[s[0]][0] == always]
        if squares:
            weights = np.zeros((1, len(table.cells)))
            for corners, sign in zip(np.array(squares).T, (1, -1, -1, 1), strict=True):
                np.add.at(weights[0], corners, sign / len(squares))
            found[two] = contrasts(weights, table.values_CS, table.level, error)[0]
    return found


def _sisters(factors: Sequence[tuple[str, ...]]) -> list[frozenset[str]]:
    return [frozenset(levels) for levels in factors if len(levels) > 1]


def _doubled(one: Estimate) -> Estimate:
    it = one.interval
    value, lo, hi = (None if v is None else 2 * v for v in (it.value, it.lo, it.hi))
    return Estimate(type(it)(value, lo, hi, it.n, it.level, it.method), one.p)


def _with_margin(found: dict[Name, Estimate], margin: Lenth | None) -> dict[Name, Estimate]:
    if margin is None:
        return found
    return {n: one if one.interval.value is None else margin.of(one.interval.value) for n, one in found.items()}


def _alone(values_CS: Array) -> bool:
    return bool(values_CS.shape[1] == 1)
