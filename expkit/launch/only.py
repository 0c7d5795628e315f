"""Only: the cells of a plan that a condition picks, as in `--only "has('ema') and seed == 17"`.

The language is that of `exclude`, and knows besides `seed` and `arm`, the label that the report shows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from expkit.errors import SpecError, unknown
from expkit.plan.trial import Cell
from expkit.spec.expressions import Expression, parse
from expkit.spec.tree import Mark, Problems, Scalar
from expkit.spec.values import MISSING, value_at


class Only:
    """A condition that has been read; call it with a cell."""

    def __init__(self, text: str) -> None:
        problems = Problems()
        expression = parse(Scalar(text, Mark("--only", 1, 1), "quoted"), "", problems)
        problems.raise_if_any()
        assert expression is not None
        self._expression: Expression = expression

    def __call__(self, cell: Cell) -> bool:
        """Whether it holds for the cell's trial."""
        return self._expression.holds(_methods(cell).__contains__, lambda path: _null(_value(cell, path)))

    def check(self, cells: Iterable[Cell]) -> None:
        """SpecError for a method or a path that none of the cells has."""
        methods, paths = dict(self._expression.methods), dict(self._expression.paths)
        known: set[str] = set()
        for cell in cells:
            known |= _methods(cell)
            for path in [path for path in paths if _value(cell, path) is not MISSING]:
                del paths[path]
        problems = Problems()
        for name in methods.keys() - known:
            problems.add(methods[name], "", unknown("method of this sweep", name, known))
        for path, mark in paths.items():
            problems.add(mark, "", f"no trial of this sweep has {path!r}; there are seed, arm and dotted paths such as "
                         "optimizer.sgd.lr")  # fmt: skip
        if problems.found:
            raise SpecError(problems.found)


def _methods(cell: Cell) -> set[str]:
    """Labels of the arm's methods with their levels, and names of all that are on."""
    components = cell.trial.recipe.algorithms
    return {*cell.trial.algorithms, *components, *(component.name for component in components.values())}


def _value(cell: Cell, path: str) -> Any:
    known = {"seed": cell.trial.seed, "arm": cell.trial.arm, **cell.trial.parameters}
    return known[path] if path in known else value_at(cell.trial.recipe, path)


def _null(value: Any) -> Any:
    return None if value is MISSING else value
