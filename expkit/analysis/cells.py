"""The cells of a design: which of its arms differ in one method, in two, and which make up full grids.

A cell is a set of methods at a parameter point; cells are compared within one point only. A level of a method is a
method of its own that excludes its sisters, so the arms of a method with two levels make up two full grids.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from expkit.analysis.intervals import Array
from expkit.analysis.replicate import sister_levels

Cell = tuple[frozenset[str], str]
"""(methods on, parameter point)."""
Idle = Sequence[frozenset[str]]
"""Per cell the methods that did nothing in it: they earn no credit there."""

MAX_METHODS = 12
"""4,096 cells; beyond, no grid that anybody trains is full."""
MAX_CUBES = 4096


@dataclass(frozen=True)
class Cube:
    """A grid among the cells: one level of each method, on or off, at one parameter point."""

    methods: tuple[str, ...]
    order: NDArray[np.int64]
    """The cell of each bitmask, (2^k,) of a full grid; of those that there are where the cells are a part of one."""


@dataclass(frozen=True)
class Grid:
    """Cells that are all combinations of their methods' levels, each also off, at every parameter point."""

    factors: tuple[tuple[str, ...], ...]
    """The levels of each method that is switched; one where it has no levels."""
    cubes: tuple[Cube, ...]
    num_cells: int

    @property
    def k(self) -> int:
        """Methods that are switched."""
        return len(self.factors)

    @property
    def points(self) -> int:
        """Parameter points."""
        return len(self.cubes) // int(np.prod([len(levels) for levels in self.factors], dtype=np.int64))

    @property
    def labels(self) -> list[str]:
        """Every level of every method, sorted."""
        return sorted(label for levels in self.factors for label in levels)

    def spread(self, weights_R2k: Array, names: Sequence[tuple[int, ...]]) -> dict[tuple[str, ...], Array]:
        """Weights on the bitmasks of a cube, as `order` has them, as weights on cells: one (C,) a choice of levels.

        Row r is about the methods `names[r]` (indices of factors); each choice of their levels has the mean over all
        cubes that it stands in, so over the other methods' levels and over parameter points.
        """
        found: dict[tuple[str, ...], Array] = {}
        number: dict[tuple[str, ...], int] = {}
        for cube in self.cubes:
            for row, about in zip(weights_R2k, names, strict=True):
                label = tuple(cube.methods[i] for i in about)
                found.setdefault(label, np.zeros(self.num_cells))[cube.order] += row
                number[label] = number.get(label, 0) + 1
        return {label: weights / number[label] for label, weights in found.items()}


def grid_of(cells: Sequence[Cell]) -> Grid | None:
    """The grid that the cells make up, None where one is missing or there is one too many.

    Methods that are on in every cell are no part of it. A design of more than 12 methods has none.
    """
    factors = switched(cells)
    num = int(np.prod([len(levels) + 1 for levels in factors], dtype=np.int64))
    if len(factors) > MAX_METHODS or len(cells) != num * len({point for _, point in cells}):
        return None
    found = part_of_grid(cells)
    return found[0] if found is not None and len(found[1]) == 2 ** len(factors) else None


def part_of_grid(cells: Sequence[Cell], most: int = MAX_METHODS) -> tuple[Grid, tuple[int, ...]] | None:
    """Cells as certain bitmasks of their methods, at every choice of levels and every parameter point; and which.

    None where one of these lacks a bitmask that another has, and for more than `most` methods.
    """
    points, factors = sorted({point for _, point in cells}), switched(cells)
    cubes = int(np.prod([len(levels) for levels in factors], dtype=np.int64)) * len(points)
    if not 0 < len(factors) <= most or cubes > MAX_CUBES or len(set(cells)) != len(cells):
        return None
    always = frozenset.intersection(*(on for on, _ in cells))
    index = {(on - always, point): i for i, (on, point) in enumerate(cells)}
    masks = sorted({mask_of(on, factors) for on, _ in index})
    found = []
    for point, chosen in itertools.product(points, itertools.product(*factors)):
        order = [index.get((frozenset(_subset(chosen, mask)), point)) for mask in masks]
        if None in order:
            return None
        found.append(Cube(chosen, np.array(order, dtype=np.int64)))
    return Grid(factors, tuple(found), len(cells)), tuple(masks)


def mask_of(on: frozenset[str], factors: Sequence[Sequence[str]]) -> int:
    """Bit i set where factor i is on, at any of its levels."""
    return sum(1 << i for i, levels in enumerate(factors) if not on.isdisjoint(levels))


def switched(cells: Sequence[Cell]) -> tuple[tuple[str, ...], ...]:
    """Methods that some cell has and some cell lacks, each with its levels, sorted by label."""
    if not cells:
        return ()
    always = frozenset.intersection(*(on for on, _ in cells))
    labels = frozenset().union(*(on for on, _ in cells)) - always
    sisters = [tuple(sorted(levels)) for levels in sister_levels(labels)]
    alone = [(label,) for label in labels - {label for levels in sisters for label in levels}]
    return tuple(sorted([*sisters, *alone]))


def matched_pairs(
    cells: Sequence[Cell], method: str, sisters: Sequence[frozenset[str]] = (), idle: Idle = ()
) -> list[tuple[int, int]]:
    """(off, on) indices of cells at one parameter point that differ in `method` only, its sister levels off in both."""
    excluded = _sisters(method, sisters)
    index = {cell: i for i, cell in enumerate(cells)}
    pairs = []
    for i, (on, point) in enumerate(cells):
        if method not in on or on & excluded or (idle and method in idle[i]):
            continue
        off = index.get((on - {method}, point))
        if off is not None:
            pairs.append((off, i))
    return pairs


def matched_squares(
    cells: Sequence[Cell], two: Sequence[str], sisters: Sequence[frozenset[str]] = (), idle: Idle = ()
) -> list[tuple[int, int, int, int]]:
    """(neither, first, second, both): cells at one parameter point that differ in these two methods only."""
    one, other = two
    excluded = _sisters(one, sisters) | _sisters(other, sisters)
    index = {cell: i for i, cell in enumerate(cells)}
    squares = []
    for i, (on, point) in enumerate(cells):
        if not {one, other} <= on or on & excluded or (idle and idle[i] & {one, other}):
            continue
        corners = [
            index.get((on - off, point)) for off in (frozenset({one, other}), frozenset({other}), frozenset({one}))
        ]
        if None not in corners:
            squares.append((*[c for c in corners if c is not None], i))
    return [(a, b, c, d) for a, b, c, d in squares]


def alone_and_last(cells: Sequence[Cell], method: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Pairs (off, on) of the method on the bare baseline, and on top of all others, at whatever points have them.

    The bare baseline has what every cell has; on top of all others means all methods on, each at some level.
    """
    factors = switched(cells)
    always = frozenset.intersection(*(on for on, _ in cells)) if cells else frozenset[str]()
    pairs = matched_pairs(cells, method, [frozenset(levels) for levels in factors if len(levels) > 1])
    bare = [pair for pair in pairs if cells[pair[0]][0] == always]
    full = [pair for pair in pairs if len(cells[pair[1]][0] - always) == len(factors)]
    return bare, full


def full_grid(cells: Sequence[Cell]) -> tuple[list[str], list[int]] | None:
    """(methods, index of the cell of each bitmask) where the cells are all subsets at one parameter point, else None.

    Methods that are on in every cell are no part of the grid.
    """
    if len(cells) == 1:
        return [], [0]
    grid = grid_of(cells)
    if grid is None or len(grid.cubes) != 1:
        return None
    return list(grid.cubes[0].methods), [int(i) for i in grid.cubes[0].order]


def _sisters(method: str, sisters: Sequence[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*(s for s in sisters if method in s)) - {method}


def _subset(chosen: Sequence[str], mask: int) -> list[str]:
    return [method for bit, method in enumerate(chosen) if mask >> bit & 1]
