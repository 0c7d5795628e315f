"""A sweep as a lazy stream of runs in the order in which they are to be done; touches no disk."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from expkit.plan.blocks import BASELINE, REPEAT, Blocks
from expkit.plan.space import Arm
from expkit.plan.trial import Cell, Role, Trial
from expkit.spec.axes import Point
from expkit.spec.draft import Draft
from expkit.spec.identity import Identifier
from expkit.spec.labels import label_text
from expkit.spec.recipe import Component, Recipe
from expkit.spec.sweep import Level, Sweep
from expkit.spec.tree import Problems


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
    shared: tuple[int, Trial] | None = None
    for slot in slots(sweep):
        if slot.role == "arm":
            trial = maker.trial(slot.arm.levels, slot.point, slot.seed)
        else:  # the baseline and its repeat are one trial
            if shared is None or shared[0] != slot.block:
                shared = slot.block, maker.trial(slot.arm.levels, slot.point, slot.seed)
            trial = shared[1]
        yield Cell(trial, slot.replicate, slot.role, slot.block, slot.position)


def baseline_trial(sweep: Sweep, seed: int, point: Point | None = None) -> Trial:
    """The baseline with a seed of choice, unless told otherwise at the first value of each parameter, budgets apart."""
    where = sweep.longest if point is None else point
    return TrialMaker(sweep).trial(sweep.baseline, where, seed)


def slots(sweep: Sweep) -> Iterator[Slot]:
    """The run order without recipes and ids: blocks in order, random within a block, the A/A repeat among them."""
    blocks = Blocks(sweep)
    position = 0
    for block in blocks:
        order = block.codes
        order.extend([BASELINE, REPEAT] if blocks.needs_baseline(order) else [REPEAT])
        random.Random(f"{sweep.order.seed}/{block.number}").shuffle(order)  # noqa: S311 (an order, no secret)
        for code in order:
            arm = blocks.arm(code)
            role: Role = "repeat" if code == REPEAT else "baseline" if arm.label == blocks.baseline.label else "arm"
            yield Slot(arm, block.point, block.seed, role, int(code == REPEAT), block.number, position)
            position += 1


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
        values = self.sweep.values(point, recipe)
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
