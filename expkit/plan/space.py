"""All configurations of one grid of a sweep: sets of methods at their levels, and the rules that remove some."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter

from expkit.errors import Problem, SpecError
from expkit.plan.designs import Digits, design_of, orders_of, switched
from expkit.plan.fractions import MAX_METHODS
from expkit.spec.axes import Point
from expkit.spec.labels import label_text
from expkit.spec.recipe import Recipe
from expkit.spec.sweep import Conflict, Exclusion, Grid, Level, Requirement, Sweep
from expkit.spec.tree import Problems
from expkit.spec.values import MISSING, value_at

_LABEL = attrgetter("label")


@dataclass(frozen=True, slots=True)
class Arm:
    """A set of methods at their levels, sorted by label."""

    levels: tuple[Level, ...]
    label: str
    names: frozenset[str]
    """Names of the methods, those of the recipe that are on everywhere among them."""


@dataclass(frozen=True)
class Rule:
    """Removes a configuration by the names of its methods."""

    text: str
    because: str
    methods: frozenset[str]
    """Whose presence or absence it looks at."""
    breaks: Callable[[frozenset[str]], bool]


class Space:
    """The configurations of one grid and what the sweep's conditions say of them."""

    def __init__(self, sweep: Sweep, grid: Grid) -> None:
        self.sweep = sweep
        self.grid = grid
        self.choices = [(*(() if c.name in sweep.forced else (None,)), *c.levels) for c in grid.candidates]
        self._refuse_large_fraction()
        self.design = design_of(sweep.design.parts, self.choices)
        self.constant = frozenset(m.name for m in sweep.constant)
        self.fixed = self.constant.union(level.method.name for level in sweep.always)
        called = {c.name: c.label for c in sweep.candidates}
        self.rules = [conflict_rule(c, called) for c in sweep.conflicts]
        self.rules += [requirement_rule(r, called) for r in sweep.requirements]
        self.baseline = self.arm(sweep.baseline)
        self._refuse_broken_baseline()
        self._excluded: dict[tuple[object, ...], Exclusion | None] = {}
        self._looked_at = [_looked_at(exclusion, sweep) for exclusion in sweep.exclusions]
        self._depends = tuple(sorted({i for _, depends in self._looked_at for i in depends}))

    def refused_design(self, message: str) -> SpecError:
        """A problem with the design, at its place."""
        mark = self.sweep.design.mark
        return SpecError([Problem(mark.file, mark.line, mark.column, "ablate.design", message)])

    def _refuse_large_fraction(self) -> None:
        num = len(switched(self.choices))
        if num > MAX_METHODS and any(part.kind == "fractional" for part in self.sweep.design.parts):
            raise self.refused_design(f"a fraction has at most {MAX_METHODS} candidates, but there are {num}; take "
                                      "pairwise or {shapley: {permutations: 16}}, or keep some on")  # fmt: skip

    def _refuse_broken_baseline(self) -> None:
        broken = self.broken(self.baseline.names)
        if broken is not None:
            mark = self.sweep.marks["ablate"]
            message = f"the baseline {self.baseline.label} breaks a rule: {self.rules[broken].text}"
            raise SpecError([Problem(mark.file, mark.line, mark.column, "ablate.baseline", message)])

    def arm(self, levels: Iterable[Level]) -> Arm:
        """The arm of these levels."""
        ordered = sorted(levels, key=_LABEL)
        names = self.constant.union([level.method.name for level in ordered])
        return Arm(tuple(ordered), "+".join([level.label for level in ordered]) or "none", names)

    def names(self, digits: Digits, involved: Iterable[int]) -> frozenset[str]:
        """Names of the methods that are on among the involved candidates and the fixed ones."""
        chosen = (self.choices[i][d] for i, d in zip(involved, digits, strict=True))
        return self.fixed | {level.method.name for level in chosen if level}

    def broken(self, names: frozenset[str]) -> int | None:
        """Index of the first rule that removes a configuration of these methods."""
        return next((i for i, rule in enumerate(self.rules) if rule.breaks(names)), None)

    def survivors(self) -> Iterator[Digits]:
        """Design points that no rule removes, lazily."""
        everyone = range(len(self.choices))
        for digits in self.design.points(self.choices):
            if not self.rules or self.broken(self.names(digits, everyone)) is None:
                yield digits

    def orders(self) -> list[list[str]]:
        """The sampled orders of switching on, labels of candidates; none for designs without them."""
        wanted = max((part.number for part in self.sweep.design.parts if part.kind == "shapley"), default=0)
        return [[self.grid.candidates[i].label for i in order] for order in orders_of(self.choices, wanted)]

    def baseline_digits(self) -> Digits | None:
        """Where the baseline stands in the design, None where it is no arm of it."""
        own = {level.label for level in self.baseline.levels}
        always = {level.label for level in self.sweep.always}
        digits = []
        for choices in self.choices:
            labels = [level.label if level else None for level in choices]
            found = next((label for label in labels if label in own), None)
            if found not in labels:
                return None  # always on in the design, off in the baseline
            digits.append(labels.index(found))
        left = own - always - {level.label for choices in self.choices for level in choices if level}
        there = not left and always <= own and self.design.holds(self.choices, tuple(digits))
        return tuple(digits) if there else None

    def involved(self, methods: Iterable[str]) -> list[int]:
        """Indices of the candidates with these names."""
        wanted = set(methods)
        return [i for i, c in enumerate(self.grid.candidates) if c.name in wanted]

    def conditions_depend(self) -> tuple[tuple[int, ...], list[int]]:
        """What the conditions look at: indices of parameters, and of candidates."""
        return self._depends, self.involved(name for names, _ in self._looked_at for name in names)

    def excluded(self, arm: Arm, point: Point) -> Exclusion | None:
        """The first condition that holds for an arm at a point."""
        for exclusion, (names, depends) in zip(self.sweep.exclusions, self._looked_at, strict=True):
            seen = tuple(level.label for level in arm.levels if level.method.name in names)
            key = (id(exclusion), seen, *(point[i] for i in depends))
            if key not in self._excluded:
                if len(self._excluded) > 100_000:
                    self._excluded.clear()
                self._excluded[key] = exclusion if self._holds(exclusion, arm, point) else None
            if self._excluded[key] is not None:
                return exclusion
        return None

    def require_baseline(self, point: Point) -> None:
        """SpecError where a condition removes the baseline; without it the arms left there could not be judged."""
        exclusion = self.excluded(self.baseline, point)
        if exclusion is None:
            return
        mark = exclusion.when.mark
        values = self.sweep.values(point, self._recipe(self.baseline, point))
        where = " ".join(f"{k}={label_text(v)}" for k, v in values.items()) or "every point"
        message = f"removes the baseline {self.baseline.label} at {where}, where other arms are left without it"
        raise SpecError([Problem(mark.file, mark.line, mark.column, "exclude", message)])

    def _holds(self, exclusion: Exclusion, arm: Arm, point: Point) -> bool:
        recipe = self._recipe(arm, point)
        values = self.sweep.values(point, recipe)
        labels = {*arm.names, *(level.label for level in arm.levels), *recipe.algorithms}

        def value(path: str) -> object:
            found = values.get(path, MISSING)
            if found is MISSING or isinstance(found, Mapping):  # a whole component is asked for by its name
                found = value_at(recipe, path)
            return None if found is MISSING else found

        return exclusion.when.holds(labels.__contains__, value)

    def _recipe(self, arm: Arm, point: Point) -> Recipe:
        problems = Problems()
        draft = self.sweep.draft
        methods = [*(level.method for level in arm.levels), *self.sweep.constant]
        made = [m for method in methods if (m := draft.method(method, point, problems))]
        recipe = draft.variant(point, made, problems)
        problems.raise_if_any()
        assert recipe is not None
        return recipe


def _looked_at(exclusion: Exclusion, sweep: Sweep) -> tuple[frozenset[str], tuple[int, ...]]:
    """Which methods and which parameters can change what a condition says."""
    names = set(exclusion.when.methods)
    depends: set[int] = set()
    methods = [level.method for c in sweep.candidates for level in c.levels]
    methods += [level.method for level in (*sweep.baseline, *sweep.always)]
    methods += sweep.constant
    labels = {key: c.name for c in sweep.candidates for key in (c.name, c.label, *(v.label for v in c.levels))}
    for path in exclusion.when.paths:
        depends |= {*sweep.draft.path_depends(path)}
        if path.startswith("algorithms."):
            rest = path.removeprefix("algorithms.")
            near = {name for key, name in labels.items() if rest == key or rest.startswith(f"{key}.")}
            names |= near or {method.name for method in methods}
            depends |= {i for m in methods for i in sweep.draft.method_depends(m)}
    return frozenset(labels.get(name, name) for name in names), tuple(sorted(depends))


def conflict_rule(conflict: Conflict, called: Mapping[str, str]) -> Rule:
    """No two of the methods together; `called` maps names to labels."""
    methods = frozenset(conflict.methods)
    words = "-".join(called.get(name, name) for name in conflict.methods)
    text = f"{'declared ' if conflict.declared else ''}conflict {words}"
    return Rule(text, conflict.because, methods, lambda names: len(names & methods) > 1)


def requirement_rule(requirement: Requirement, called: Mapping[str, str]) -> Rule:
    """The method only with all that it needs; `called` maps names to labels."""
    method, needs = requirement.method, frozenset(requirement.needs)
    words = ", ".join(called.get(need, need) for need in requirement.needs)
    text = f"{called.get(method, method)} {'declares to require' if requirement.declared else 'requires'} {words}"
    return Rule(text, requirement.because, needs | {method}, lambda names: method in names and not needs <= names)
