"""What a fraction of a sweep cannot tell apart, by the labels of its candidates; refused where a rule would hole it."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from expkit.plan.designs import fraction_of, placed, switched, ways
from expkit.plan.fractions import Fraction, product, sign
from expkit.plan.space import Arm, Space
from expkit.spec.labels import roman


@dataclass(frozen=True)
class Confounded:
    """A fraction as `plan` tells it; `a * b` is the effect of a and b together."""

    sets: int
    """Of the fraction, without one that is added."""
    of: int
    resolution: int | None
    """None where all sets are there."""
    adds_all_on: bool
    generators: tuple[str, ...]
    """How the last methods follow from the first: `d = a * b * c`."""
    words: tuple[str, ...]
    """The columns that are constant, with their sign."""
    aliases: tuple[tuple[str, ...], ...]
    """Groups of main effects and pairs that are one number, with their sign in it."""
    clear_methods: tuple[str, ...]
    """Whose main effect is in one number with no other and with no pair."""
    clear_pairs: tuple[str, ...]
    num_pairs: int

    def lines(self) -> Iterator[tuple[str, str]]:
        """(head, text) of each line."""
        name = "all sets" if self.resolution is None else f"resolution {roman(self.resolution)}"
        more = ", and the set with everything on, which is no part of it" if self.adds_all_on else ""
        yield "fraction", f"{self.sets:,} of {self.of:,} sets, {name}{more}"
        for text in self.generators:
            yield "generator", text
        for group in self.aliases:
            yield "aliases", " = ".join(group)
        k = self.of.bit_length() - 1
        yield (
            "clear",
            f"{len(self.clear_methods)} of {k} main effects, {len(self.clear_pairs)} of {self.num_pairs} pairs",
        )


def confounded(space: Space) -> tuple[Confounded, ...]:
    """Of each fraction in the design of a grid; SpecError where a rule or a condition takes sets out of it."""
    found = []
    for part in space.sweep.design.parts:
        if part.kind == "fractional":
            made = fraction_of(space.choices, part)
            _refuse_holes(space, made)
            found.append(_told(made, [space.grid.candidates[i].label for i in switched(space.choices)]))
    return tuple(found)


def _told(made: Fraction, labels: list[str]) -> Confounded:
    chains = made.chains()
    alone = [group[0] for group in chains if len(group) == 1]
    named = [(word, word.bit_length() - 1) for word in made.generators]
    return Confounded(
        sets=made.num_sets,
        of=1 << made.k,
        resolution=made.resolution,
        adds_all_on=made.adds_all_on,
        generators=tuple(f"{labels[last]} = {product(w ^ 1 << last, labels, sign(w))}" for w, last in named),
        words=tuple(product(word, labels, sign(word)) for word in made.words),
        aliases=tuple(tuple(product(m, labels, sign(m, g[0])) for m in g) for g in chains if len(g) > 1),
        clear_methods=tuple(product(mask, labels) for mask in alone if mask.bit_count() == 1),
        clear_pairs=tuple(product(mask, labels) for mask in alone if mask.bit_count() == 2),
        num_pairs=made.k * (made.k - 1) // 2,
    )


def _refuse_holes(space: Space, made: Fraction) -> None:
    arms = list(_arms(space, made))
    axes, seeds = space.grid.axes, len(space.sweep.seeds)
    lost: Counter[str] = Counter()
    for arm in arms:
        if (broken := space.broken(arm.names)) is not None:
            lost[space.rules[broken].text] += axes.count() * seeds
    for point, alike in axes.projected(space.conditions_depend()[0]) if space.sweep.exclusions and not lost else ():
        excluded = [e for arm in arms if (e := space.excluded(arm, point))]
        if len(excluded) < len(arms):  # a point without any arm is no hole
            for exclusion in excluded:
                lost[f"exclude {exclusion.when.text}"] += alike * seeds
    if lost:
        total, runs = sum(lost.values()), len(arms) * axes.count() * seeds
        message = (
            f"a fraction must be whole, but {' and '.join(lost)} would take {total:,} of its {runs:,} runs; what "
            "is left has no clear effects. Take design full, pairwise or shapley, or drop a candidate or the rule"
        )
        raise space.refused_design(message)


def _arms(space: Space, made: Fraction) -> Iterator[Arm]:
    """The arms of a fraction at every level, with what is always on."""
    free = switched(space.choices)
    for mask in made.sets():
        on = placed(mask, free)
        for digits in itertools.product(*(ways(c, bool(on >> i & 1)) for i, c in enumerate(space.choices))):
            levels = [level for c, d in zip(space.choices, digits, strict=True) if (level := c[d])]
            yield space.arm([*levels, *space.sweep.always])
