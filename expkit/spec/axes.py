"""Axes of a grid: which values the parameters take together, counted and listed lazily.

A path inside a component (`optimizer.sgd.lr`) is tried only where that component is chosen: its axis is there at some
rows of the axis that chooses the component, and absent at the others.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

OWN = -1
"""In a point: the sweep sets nothing for this parameter here, the recipe's own value stays."""
Point = tuple[int, ...]
"""Per parameter of the sweep the index into its values, or OWN."""
BUDGET = "trainer.ssr"
"""The path that `budgets` varies: it scales every schedule, so each run of it ends its own."""


@dataclass(frozen=True)
class Axis:
    """Parameters that change together, and their rows of values."""

    parameters: tuple[int, ...]
    """Several where they are zipped."""
    rows: tuple[tuple[int, ...], ...]
    only: tuple[tuple[int, frozenset[int]], ...] = ()
    """(another axis, its rows at which this one is there)."""
    chooses: bool = False
    """Whether its values are whole components, so that other values may mean nothing at some of its rows."""


@dataclass(frozen=True)
class Axes:
    """All points of some axes, over `num_parameters` parameters of a sweep."""

    num_parameters: int
    axes: tuple[Axis, ...] = ()

    def __iter__(self) -> Iterator[Point]:
        for rows in self._rows(range(len(self.axes))):
            yield self._point(rows)

    def count(self) -> int:
        """How many points there are; not listed."""
        return sum(weight for _, weight in self.projected(()))

    def upto(self, num: int) -> Axes:
        """The first of the axes, and those that they depend on."""
        needed = {other for a in self.axes[:num] for other, _ in a.only} | set(range(num))
        kept = sorted(needed)
        moved = {old: new for new, old in enumerate(kept)}
        axes = [replace(self.axes[i], only=tuple((moved[o], rows) for o, rows in self.axes[i].only)) for i in kept]
        return Axes(self.num_parameters, tuple(axes))

    @property
    def may_repeat(self) -> bool:
        """Whether two points may make the same recipe: a value that only another component would read."""
        return len(self.axes) > 1 and any(axis.chooses for axis in self.axes)

    def first(self) -> Point:
        """The first point."""
        return next(iter(self))

    def projected(self, involved: Collection[int]) -> Iterator[tuple[Point, int]]:
        """Points as some parameters tell them apart: one of each kind, and how many there are of it."""
        looked = [i for i, a in enumerate(self.axes) if i in self._leading() or set(a.parameters) & set(involved)]
        free = [i for i in range(len(self.axes)) if i not in looked]
        for rows in self._rows(looked):
            there = [i for i in free if self._is_there(i, rows)]
            rest = dict.fromkeys(there, 0)
            yield self._point({**rows, **rest}), math.prod(len(self.axes[i].rows) for i in there)

    def num_looked_at(self, involved: Collection[int]) -> int:
        """At most how many kinds of points `projected` gives."""
        axes = enumerate(self.axes)
        return math.prod(len(a.rows) for i, a in axes if i in self._leading() or set(a.parameters) & set(involved))

    def at(self, axis: int, row: int) -> Point:
        """A point that has this row of an axis, all others at their first that allows it."""
        return self._with({axis: row})

    def everywhere(self, axis: int, row: int) -> Iterator[Point]:
        """Points that have this row of an axis, one for each row of each axis that chooses components."""
        yield self.at(axis, row)
        only = dict(self.axes[axis].only)
        for other, a in enumerate(self.axes):
            if a.chooses and other != axis:
                allowed = only.get(other, range(len(a.rows)))
                yield from (self._with({axis: row, other: k}) for k in sorted(allowed))

    def _with(self, rows: Mapping[int, int]) -> Point:
        chosen = dict(rows)
        for axis in rows:
            for other, allowed in self.axes[axis].only:
                chosen.setdefault(other, min(allowed))
        for i in (*sorted(self._leading()), *range(len(self.axes))):
            if i not in chosen and self._is_there(i, chosen):
                chosen[i] = 0
        return self._point(chosen)

    def corners(self) -> Iterator[Point]:
        """Points that have each row of each axis between them, the first point first."""
        yield self.first()
        yield from (self.at(axis, row) for axis, a in enumerate(self.axes) for row in range(len(a.rows)))

    def _leading(self) -> frozenset[int]:
        return frozenset(other for a in self.axes for other, _ in a.only)

    def _rows(self, looked: Collection[int]) -> Iterator[dict[int, int]]:
        """Axis -> row for each combination of these axes; leading axes first, the last changes fastest."""
        leading = [i for i in looked if i in self._leading()]
        others = [i for i in looked if i not in leading]
        for head in itertools.product(*(range(len(self.axes[i].rows)) for i in leading)):
            chosen = dict(zip(leading, head, strict=True))
            there = [i for i in others if self._is_there(i, chosen)]
            for rest in itertools.product(*(range(len(self.axes[i].rows)) for i in there)):
                yield {**chosen, **dict(zip(there, rest, strict=True))}

    def _is_there(self, axis: int, chosen: Mapping[int, int]) -> bool:
        return all(chosen[other] in allowed for other, allowed in self.axes[axis].only if other in chosen)

    def _point(self, rows: Mapping[int, int]) -> Point:
        point = [OWN] * self.num_parameters
        for i, row in rows.items():
            axis = self.axes[i]
            for parameter, value in zip(axis.parameters, axis.rows[row], strict=True):
                point[parameter] = value
        return tuple(point)
