"""A sweep as a lazy stream of runs in the order in which they are to be done; touches no disk."""

from __future__ import annotations

import itertools
import math
import random
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from expkit.errors import Problem, SpecError
from expkit.plan.designs import Digits
from expkit.plan.space import Arm, Point, Space
from expkit.plan.trial import Cell, Role, Trial
from expkit.spec.candidates import label_text
from expkit.spec.draft import Draft
from expkit.spec.identity import Identifier
from expkit.spec.recipe import Component, Recipe
from expkit.spec.sweep import Level, Sweep
from expkit.spec.tree import Problems

_BASELINE, _REPEAT = -1, -2
"""Codes beside those of the design's arms."""
MAX_CONFIGURATIONS = 2**24


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in the run order: an arm at a point with a seed, not yet a recipe."""

    arm: Arm
    point: Point
    seed: int
    role: Role
    replicate: int
    block: int
    position: int


def expand(sweep: Sweep) -> Iterator[Cell]:
    """Every run of a sweep in order, each with its trial; a block is one seed at one parameter point."""
    maker = TrialMaker(sweep)
    for slot in slots(sweep):
        trial = maker.trial(slot.arm.levels, slot.point, slot.seed)
        yield Cell(trial, slot.replicate, slot.role, slot.block, slot.position)


def baseline_trial(sweep: Sweep, seed: int, point: Point | None = None) -> Trial:
    """The baseline with a seed of choice, at the first value of each parameter unless told otherwise."""
    where = tuple(0 for _ in sweep.parameters) if point is None else point
    return TrialMaker(sweep).trial(sweep.baseline, where, seed)


def slots(sweep: Sweep) -> Iterator[Slot]:
    """The run order without recipes and ids: blocks in order, random within a block, the A/A repeat among them."""
    space = Space(sweep)
    codes = _codes(space)
    extra = array("q", [_REPEAT] if space.has_baseline() else [_BASELINE, _REPEAT])
    arms = _Arms(space)
    position = 0
    points = itertools.product(*(range(len(p.values)) for p in sweep.parameters))
    for block, (seed, point) in enumerate(itertools.product(sweep.seeds, points)):
        order = array("q", (c for c in codes if not space.excluded(arms[c], point))) if sweep.exclusions else codes[:]
        if not order:
            continue
        order.extend(extra)
        random.Random(f"{sweep.order.seed}/{block}").shuffle(order)  # noqa: S311 (an order, no secret)
        for code in order:
            arm = arms[code]
            role: Role = "repeat" if code == _REPEAT else "baseline" if arm.label == arms.baseline else "arm"
            yield Slot(arm, point, seed, role, int(code == _REPEAT), block, position)
            position += 1


def _codes(space: Space) -> array[int]:
    """Arms of the design as numbers of mixed radix: eight bytes each, however many there are."""
    sizes = [len(c) for c in space.choices]
    _refuse_endless(space)
    codes = array("q")
    for digits in space.survivors():
        code = 0
        for digit, size in zip(digits, sizes, strict=True):
            code = code * size + digit
        codes.append(code)
    return codes


def _refuse_endless(space: Space) -> None:
    num = math.prod(len(c) for c in space.choices)
    if num > MAX_CONFIGURATIONS:
        message = f"the design has {num:,} configurations, more than the {MAX_CONFIGURATIONS:,} that can be listed"
        mark = space.sweep.marks["ablate"]
        raise SpecError([Problem(mark.file, mark.line, mark.column, "ablate.candidates", message)])


class _Arms:
    """Arms by their codes, the last few kept."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.baseline = space.baseline.label
        self.kept: dict[int, Arm] = {_BASELINE: space.baseline, _REPEAT: space.baseline}

    def __getitem__(self, code: int) -> Arm:
        arm = self.kept.get(code)
        if arm is None:
            arm = self.space.at(self._digits(code))
            if len(self.kept) < 65_536:
                self.kept[code] = arm
        return arm

    def _digits(self, code: int) -> Digits:
        digits = []
        for choices in reversed(self.space.choices):
            code, digit = divmod(code, len(choices))
            digits.append(digit)
        return tuple(reversed(digits))


class TrialMaker:
    """Recipes and ids of a sweep's trials; what trials share is made once."""

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep
        self.draft: Draft = sweep.draft
        self.ids = Identifier()
        self.problems = Problems()
        self._methods: dict[tuple[object, ...], Component | None] = {}
        self._depends: dict[str, tuple[int, ...]] = {}

    def trial(self, levels: Iterable[Level], point: Point, seed: int) -> Trial:
        """The trial of an arm at a point with a seed; SpecError where no recipe comes of it."""
        levels = tuple(levels)
        recipe = self._recipe(levels, point, seed)
        values = self.sweep.values(point)
        labels = tuple(sorted(level.label for level in levels))
        parameters = " ".join(f"{path}={label_text(value)}" for path, value in values.items())
        arm = "+".join(labels) or "none"
        return Trial(
            id=self.ids.id_of(recipe),
            recipe=recipe,
            arm=f"{arm} {parameters}" if parameters else arm,
            algorithms=labels,
            parameters=values,
            seed=seed,
        )

    def _recipe(self, levels: tuple[Level, ...], point: Point, seed: int) -> Recipe:
        made = [self._method(level, point) for level in levels]
        made += [self._method(Level(method.name, method), point) for method in self.sweep.constant]
        recipe = self.draft.variant(point, [m for m in made if m], self.problems, seed)
        self.problems.raise_if_any()
        assert recipe is not None
        return recipe

    def _method(self, level: Level, point: Point) -> Component | None:
        if level.label not in self._depends:
            self._depends[level.label] = self.draft.method_depends(level.method)
        key = (level.label, *(point[i] for i in self._depends[level.label]))
        if key not in self._methods:
            if len(self._methods) > 10_000:
                self._methods.clear()
            self._methods[key] = self.draft.method(level.method, point, self.problems)
        return self._methods[key]
