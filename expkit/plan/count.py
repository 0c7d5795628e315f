"""The arithmetic of a plan before anything is enumerated: how many sets, points and trials, what each rule removed.

Only candidates and parameters that a rule looks at are gone through; all others multiply. A million trials count in
well under a second.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass, field

from expkit.errors import Problem, SpecError
from expkit.plan.space import Arm, Point, Space
from expkit.plan.trial import Arithmetic, Removed, Step
from expkit.spec.candidates import label_text
from expkit.spec.sweep import Sweep

MAX_LOOKED_AT = 2_000_000
"""Combinations that rules may look at."""


@dataclass
class _Tally:
    steps: list[Step] = field(default_factory=list)
    removed: list[Removed] = field(default_factory=list)

    def step(self, text: str, count: int) -> None:
        self.steps.append(Step(text, count))

    def without(self, rule: str, because: str, count: int, left: int) -> None:
        self.removed.append(Removed(rule, because, count))
        self.step(f"{rule} removes {count:,}", left)


def count(sweep: Sweep) -> Arithmetic:
    """How many trials a sweep has and why; SpecError where they are more than `budget.max_trials`."""
    space = Space(sweep)
    tally = _Tally()
    sets, arms = _configurations(space, tally)
    points, blocks_per_seed, alive = _points(space, arms, tally)
    num_sets = sum(num for seen, num in sets.values() if seen & alive)
    added = 0 if space.has_baseline() else blocks_per_seed
    if added:
        points += added
        num_sets += 1
        tally.step(f"the baseline {space.baseline.label} is no arm of the design and is added", points)
    trials = points * len(sweep.seeds)
    tally.step(f"{len(sweep.seeds):,} seeds", trials)
    blocks = blocks_per_seed * len(sweep.seeds)
    _refuse_too_many(sweep, trials)
    return Arithmetic(tuple(tally.steps), tuple(tally.removed), num_sets, trials, blocks, blocks)


_Seen = tuple[int, ...]
"""What the conditions can tell of an arm: digits of the candidates that they look at."""


def _configurations(
    space: Space, tally: _Tally
) -> tuple[dict[tuple[bool, ...], tuple[set[_Seen], int]], Counter[_Seen]]:
    """Groups of sets left, with what the conditions see of them, and how many configurations look like that."""
    _, by_conditions = space.conditions_depend()
    involved = sorted({*space.involved(n for rule in space.rules for n in rule.methods), *by_conditions})
    _refuse_unlookable(space, math.prod(len(space.choices[i]) for i in involved))
    position = [involved.index(i) for i in by_conditions]
    left: Counter[_Seen] = Counter()
    gone: Counter[int] = Counter()
    sets: dict[tuple[bool, ...], tuple[set[_Seen], int]] = {}
    all_sets: dict[tuple[bool, ...], int] = {}
    total = 0
    for digits, num_sets, num_configurations in space.design.projected(space.choices, involved):
        on = tuple(space.choices[i][d] is not None for i, d in zip(involved, digits, strict=True))
        all_sets[on] = num_sets
        total += num_configurations
        broken = space.broken(space.names(digits, involved)) if space.rules else None
        if broken is None:
            seen = tuple(digits[k] for k in position)
            sets.setdefault(on, (set(), num_sets))[0].add(seen)
            left[seen] += num_configurations
        else:
            gone[broken] += num_configurations
    _say_configurations(space, tally, sum(all_sets.values()), total, gone)
    return sets, left


def _say_configurations(space: Space, tally: _Tally, sets: int, total: int, gone: Counter[int]) -> None:
    sweep = space.sweep
    tally.step(f"design {sweep.design.kind} over {_plural(len(sweep.candidates), 'candidate')}: sets", sets)
    levelled = [f"{len(c.levels)} levels of {c.label}" for c in sweep.candidates if len(c.levels) > 1]
    if levelled:
        tally.step(f"{', '.join(levelled)}: configurations", total)
    for i, rule in enumerate(space.rules):
        total -= gone[i]
        tally.without(rule.text, rule.because, gone[i], total)


def _points(space: Space, arms: Counter[_Seen], tally: _Tally) -> tuple[int, int, set[_Seen]]:
    """Number of points left, of parameter points that have any, and what the conditions see of the arms left."""
    sweep = space.sweep
    sizes = [len(p.values) for p in sweep.parameters]
    total = sum(arms.values()) * math.prod(sizes)
    for parameter, size in zip(sweep.parameters, sizes, strict=True):
        shown = ", ".join(label_text(v) for v in parameter.values[:6]) + (", ..." if size > 6 else "")
        before = tally.steps[-1].count
        tally.step(f"{_plural(size, 'value')} of {parameter.path} ({shown}): points", before * size)
    if not sweep.exclusions:
        return total, math.prod(sizes), set(arms)
    depends, by_conditions = space.conditions_depend()
    free = math.prod(size for i, size in enumerate(sizes) if i not in depends)
    _refuse_unlookable(space, len(arms) * math.prod(sizes[i] for i in depends))
    gone: Counter[str] = Counter()
    blocks = 0
    alive: set[_Seen] = set()
    seen = [(digits, _seen_arm(space, digits, by_conditions), weight) for digits, weight in arms.items()]
    for chosen in itertools.product(*(range(sizes[i]) for i in depends)):
        point = tuple(dict(zip(depends, chosen, strict=True)).get(i, 0) for i in range(len(sizes)))
        kept = 0
        for digits, arm, weight in seen:
            exclusion = space.excluded(arm, point)
            if exclusion is None:
                kept += weight
                alive.add(digits)
            else:
                gone[exclusion.when.text] += weight * free
        blocks += _has_block(space, point, kept) * free
    for exclusion in sweep.exclusions:
        total -= gone[exclusion.when.text]
        text = f"exclude {exclusion.when.text}"
        tally.without(text, exclusion.because, gone[exclusion.when.text], total)
    return total, blocks, alive


def _seen_arm(space: Space, digits: tuple[int, ...], involved: list[int]) -> Arm:
    """An arm as far as the conditions can tell it from others."""
    chosen = (space.choices[i][d] for i, d in zip(involved, digits, strict=True))
    return space.arm([*(level for level in chosen if level), *space.sweep.always])


def _has_block(space: Space, point: Point, kept: int) -> bool:
    """Whether arms are left at a point; without their baseline they could not be judged."""
    exclusion = space.excluded(space.baseline, point) if kept else None
    if exclusion is not None:
        mark = exclusion.when.mark
        where = " ".join(f"{k}={label_text(v)}" for k, v in space.sweep.values(point).items()) or "every point"
        message = f"removes the baseline {space.baseline.label} at {where}, where other arms are left without it"
        raise SpecError([Problem(mark.file, mark.line, mark.column, "exclude", message)])
    return kept > 0


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
