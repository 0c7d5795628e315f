"""The arithmetic of a plan before anything is enumerated: how many sets, points and trials, what each rule removed.

Only candidates and parameters that a rule looks at are gone through; all others multiply. A million trials count in
well under a second. Several grids, and arms included by hand, are counted alone first and then united.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

from expkit.errors import Problem, SpecError
from expkit.plan.blocks import Blocks, is_union
from expkit.plan.confounded import Confounded, confounded
from expkit.plan.sampled import sampled
from expkit.plan.space import Arm, Space
from expkit.plan.trial import Arithmetic, Removed, Step
from expkit.plan.united import unite
from expkit.spec.axes import BUDGET, Axis
from expkit.spec.labels import label_text
from expkit.spec.sweep import Sweep

MAX_LOOKED_AT = 2_000_000
"""Combinations that rules may look at."""


def count(sweep: Sweep) -> Arithmetic:
    """How many trials a sweep has and why; SpecError where they are more than `budget.max_trials`."""
    if is_union(sweep):
        return _union(sweep)
    space = Space(sweep, sweep.grids[0])
    fractions = confounded(space)
    tally = Tally()
    sets, arms = _configurations(space, tally)
    points, blocks_per_seed, alive = _points(space, arms, tally)
    num_sets = sum(num for seen, num in sets.values() if seen & alive)
    added = blocks_per_seed if space.baseline_digits() is None else 0
    if added:
        points += added
        num_sets += 1
        tally.step(f"the baseline {space.baseline.label} is no arm of the design and is added", points)
    trials = points * len(sweep.seeds)
    tally.step(_plural(len(sweep.seeds), "seed"), trials)
    blocks = blocks_per_seed * len(sweep.seeds)
    _refuse_too_many(sweep, trials)
    steps, removed, orders = tuple(tally.steps), tuple(tally.removed), sampled(space)
    return Arithmetic(steps, removed, num_sets, trials, blocks, blocks, fractions, orders)


def _union(sweep: Sweep) -> Arithmetic:
    """Each grid by itself, line by line, then what their union has."""
    tally = Tally()
    sizes = []
    fractions: dict[Confounded, None] = {}
    for number, grid in enumerate(sweep.grids, 1):
        tally.prefix = f"grid {number}: " if len(sweep.grids) > 1 else ""
        space = Space(sweep, grid)
        fractions |= dict.fromkeys(confounded(space))
        sizes.append(_points(space, _configurations(space, tally)[1], tally)[0])
    tally.prefix = ""
    _refuse_too_many(sweep, max(sizes) * len(sweep.seeds))
    num_points = sum(grid.axes.count() for grid in sweep.grids)
    _refuse_unlookable(space, sum(sizes) if sweep.exclusions else num_points + max(sizes) // max(1, num_points))
    united = unite(Blocks(sweep))
    if len(sweep.grids) == 1 and sum(sizes) > united.points:
        tally.step(f"{sum(sizes) - united.points:,} of them mean the same trial as another: points", united.points)
    if len(sweep.grids) > 1:
        shared = sum(sizes) - united.points
        twice = f", where {shared:,} that several have count once" if shared else ""
        tally.step(f"{len(sweep.grids)} grids united{twice}: points", united.points)
    trials = united.points * len(sweep.seeds)
    tally.step(_plural(len(sweep.seeds), "seed"), trials)
    if sweep.includes:
        asked = sum(len(include.seeds) for include in sweep.includes)
        there = f", {asked - united.included:,} of them there already" if asked > united.included else ""
        trials += united.included
        tally.step(f"{_plural(asked, 'trial')} included by hand{there}", trials)
    if united.added:
        trials += united.added
        tally.step(f"the baseline {space.baseline.label} is added in {_plural(united.added, 'block')}", trials)
    _refuse_too_many(sweep, trials)
    steps, removed, blocks = tuple(tally.steps), tuple(tally.removed), united.blocks
    orders = sampled(space) if len(sweep.grids) == 1 else None
    return Arithmetic(steps, removed, united.sets, trials, blocks, blocks, tuple(fractions), orders)


@dataclass
class Tally:
    """Lines of the arithmetic as they come."""

    steps: list[Step] = field(default_factory=list)
    removed: list[Removed] = field(default_factory=list)
    prefix: str = ""

    def step(self, text: str, count: int, because: str = "") -> None:
        """What is left after it."""
        self.steps.append(Step(self.prefix + text, count, because))

    def without(self, rule: str, because: str, count: int, left: int) -> None:
        """What a rule removes."""
        self.removed.append(Removed(rule, because, count))
        self.step(f"{rule} removes {count:,}", left, because)


_Seen = tuple[int, ...]
"""What the conditions can tell of an arm: digits of the candidates that they look at."""


def _configurations(
    space: Space, tally: Tally
) -> tuple[dict[tuple[bool, ...], tuple[set[_Seen], int]], Counter[_Seen]]:
    """Groups of sets left, with what the conditions see of them, and how many configurations look like that."""
    _, by_conditions = space.conditions_depend()
    named = {n for rule in space.rules for n in rule.methods} | {n for a in space.sweep.allowances for n in a.pair}
    involved = sorted({*space.involved(named), *by_conditions})
    _refuse_unlookable(space, math.prod(len(space.choices[i]) for i in involved))
    position = [involved.index(i) for i in by_conditions]
    left: Counter[_Seen] = Counter()
    gone: Counter[int] = Counter()
    lifted: Counter[int] = Counter()
    sets: dict[tuple[bool, ...], tuple[set[_Seen], int]] = {}
    all_sets: dict[tuple[bool, ...], int] = {}
    total = 0
    for digits, num_sets, num_configurations in space.design.projected(space.choices, involved):
        on = tuple(space.choices[i][d] is not None for i, d in zip(involved, digits, strict=True))
        all_sets[on] = num_sets
        total += num_configurations
        names = space.names(digits, involved)
        broken = space.broken(names) if space.rules else None
        if broken is None:
            lifted.update(
                {i: num_configurations for i, a in enumerate(space.sweep.allowances) if names.issuperset(a.pair)}
            )
            seen = tuple(digits[k] for k in position)
            sets.setdefault(on, (set(), num_sets))[0].add(seen)
            left[seen] += num_configurations
        else:
            gone[broken] += num_configurations
    _say_configurations(space, tally, sum(all_sets.values()), total, gone, lifted)
    return sets, left


def _say_configurations(
    space: Space, tally: Tally, sets: int, total: int, gone: Counter[int], lifted: Counter[int]
) -> None:
    sweep, candidates = space.sweep, space.grid.candidates
    tally.step(f"design {sweep.design} over {_plural(len(candidates), 'candidate')}: sets", sets)
    levelled = [f"{len(c.levels)} levels of {c.label}" for c in candidates if len(c.levels) > 1]
    if levelled:
        tally.step(f"{', '.join(levelled)}: configurations", total)
    for i, rule in enumerate(space.rules):
        total -= gone[i]
        tally.without(rule.text, rule.because, gone[i], total)
    for i, allowance in enumerate(sweep.allowances):
        tally.step(f"allow {'-'.join(allowance.pair)} keeps {lifted[i]:,}", total, allowance.because)


def _points(space: Space, arms: Counter[_Seen], tally: Tally) -> tuple[int, int, set[_Seen]]:
    """Number of points left, of parameter points that have any, and what the conditions see of the arms left."""
    sweep, axes = space.sweep, space.grid.axes
    total = _say_axes(space, sum(arms.values()), tally)
    if not sweep.exclusions:
        return total, axes.count(), set(arms)
    depends, by_conditions = space.conditions_depend()
    _refuse_unlookable(space, len(arms) * axes.num_looked_at(depends))
    gone: Counter[str] = Counter()
    blocks = 0
    alive: set[_Seen] = set()
    seen = [(digits, _seen_arm(space, digits, by_conditions), weight) for digits, weight in arms.items()]
    for point, alike in axes.projected(depends):
        kept = 0
        for digits, arm, weight in seen:
            exclusion = space.excluded(arm, point)
            if exclusion is None:
                kept += weight
                alive.add(digits)
            else:
                gone[exclusion.when.text] += weight * alike
        if kept:
            space.require_baseline(point)
            blocks += alike
    for exclusion in sweep.exclusions:
        total -= gone[exclusion.when.text]
        text = f"exclude {exclusion.when.text}"
        tally.without(text, exclusion.because, gone[exclusion.when.text], total)
    return total, blocks, alive


def _say_axes(space: Space, arms: int, tally: Tally) -> int:
    """A line for each axis, what it multiplies; one inside a component counts only where that is chosen."""
    axes = space.grid.axes
    for num in range(1, len(axes.axes) + 1):
        axis = axes.axes[num - 1]
        only = f" where {_where(space, axis)}" if axis.only else ""
        tally.step(f"{_values(space, axis)}{only}: points", arms * axes.upto(num).count())
    return arms * axes.count()


def _values(space: Space, axis: Axis) -> str:
    """`2 values of optimizer.sgd.lr (1.0, 2.0)`, or what is zipped."""
    parameters = [space.sweep.parameters[i] for i in axis.parameters]
    rows = ["/".join(label_text(p.values[k]) for p, k in zip(parameters, row, strict=True)) for row in axis.rows[:6]]
    paths = " and ".join(p.path for p in parameters)
    what = "zipped value" if len(parameters) > 1 else "budget" if paths == BUDGET else "value"
    return f"{_plural(len(axis.rows), what)} of {paths} ({', '.join(rows)}{', ...' if len(axis.rows) > 6 else ''})"


def _where(space: Space, axis: Axis) -> str:
    """The component that a conditional axis belongs to: `optimizer is sgd`."""
    path = space.sweep.parameters[axis.parameters[0]].path
    ((other, _),) = axis.only
    holders = (space.sweep.parameters[i].path for i in space.grid.axes.axes[other].parameters)
    holder = next(h for h in holders if path.startswith(f"{h}."))
    return f"{holder} is {path[len(holder) + 1 :].rpartition('.')[0]}"


def _seen_arm(space: Space, digits: tuple[int, ...], involved: list[int]) -> Arm:
    """An arm as far as the conditions can tell it from others."""
    chosen = (space.choices[i][d] for i, d in zip(involved, digits, strict=True))
    return space.arm([*(level for level in chosen if level), *space.sweep.always])


def _refuse_unlookable(space: Space, num: int) -> None:
    if num > MAX_LOOKED_AT:
        message = f"its rules would have to look at {num:,} combinations of methods and parameters; name fewer of them"
        raise SpecError([Problem(str(space.sweep.path), 1, 1, "ablate", message)])


def _refuse_too_many(sweep: Sweep, trials: int) -> None:
    limit = sweep.budget.max_trials
    if limit is not None and trials > limit:
        mark = sweep.marks["budget"]
        message = f"the plan has {trials:,} trials, more than the {limit:,} allowed"
        raise SpecError([Problem(mark.file, mark.line, mark.column, "budget.max_trials", message)])


def _plural(num: int, what: str) -> str:
    return f"{num:,} {what}" if num == 1 else f"{num:,} {what}s"
