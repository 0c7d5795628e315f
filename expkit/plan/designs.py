"""Designs: which sets of the candidates are tried, told by how many candidates are on, or one by one; counted, listed.

Candidates that stay on everywhere (`always`) are in every set and do not count. A new design is a line in SIZES or in
LISTED, or a class with the methods of Design.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from expkit.plan.fractions import Fraction, fraction, members
from expkit.plan.permutations import along, orders
from expkit.spec.sweep import DesignPart, Level

Choices = Sequence[tuple[Level | None, ...]]
"""Per candidate the ways it can be: None is off, else one of its levels."""
Digits = tuple[int, ...]
"""Per candidate the index into its choices."""


class Design(Protocol):
    """Which combinations of choices belong to it."""

    def points(self, choices: Choices) -> Iterator[Digits]:
        """All of them, lazily, in a fixed order."""

    def projected(self, choices: Choices, involved: Sequence[int]) -> Iterator[tuple[Digits, int, int]]:
        """What some candidates alone show of them: their digits, in how many sets, in how many configurations.

        Counting asks for this, so that a million configurations need not be listed.
        """

    def holds(self, choices: Choices, digits: Digits) -> bool:
        """Whether this combination belongs to it."""


SIZES: Mapping[str, Callable[[int, int], Iterable[int]]] = {
    "full": lambda num, _: range(num + 1),
    "leave_one_out": lambda num, _: (num - 1, num),
    "add_one_in": lambda num, _: (0, 1),
    "pairwise": lambda num, _: (0, 1, 2),
    "max_size": lambda num, most: range(most + 1),
}
"""Design -> how many of `num` candidates may be on at once; the second number is what the file gives it."""


def design_of(parts: Sequence[DesignPart], choices: Choices) -> Design:
    """The union of some designs over these candidates: what belongs to several is there once."""
    free = switched(choices)
    sized = BySize(size for part in parts if part.kind in SIZES for size in SIZES[part.kind](len(free), part.number))
    listed = [mask for part in parts if part.kind in LISTED for mask in LISTED[part.kind](choices, part)]
    return Listed(listed, sized, free) if listed else sized


def fraction_of(choices: Choices, part: DesignPart) -> Fraction:
    """The fraction of these candidates; their letters go by their order in the file."""
    return fraction(len(switched(choices)), part.number, part.least)


def orders_of(choices: Choices, permutations: int) -> list[list[int]]:
    """Orders of switching on, of the numbers of candidates; where these stand in the file changes nothing."""
    named = sorted((level.method.name, i) for i in switched(choices) if (level := choices[i][-1]))
    return [[named[place][1] for place in order] for order in orders(len(named), permutations)]


def _of_fraction(choices: Choices, part: DesignPart) -> Iterator[int]:
    free = switched(choices)
    return (placed(mask, free) for mask in fraction_of(choices, part).sets())


def _of_orders(choices: Choices, part: DesignPart) -> Iterator[int]:
    return (mask for order in orders_of(choices, part.number) for mask in along(order))


LISTED: Mapping[str, Callable[[Choices, DesignPart], Iterable[int]]] = {
    "fractional": _of_fraction,
    "shapley": _of_orders,
}
"""Design -> the sets as masks, bit i set where candidate i is on."""


class BySize:
    """All sets with certain numbers of candidates on."""

    def __init__(self, sizes: Iterable[int]) -> None:
        self.sizes = frozenset(sizes)

    def points(self, choices: Choices) -> Iterator[Digits]:
        """Off first, the last candidate changes fastest where all sets are listed; else small sets first."""
        free = switched(choices)
        if self.sizes.issuperset(range(len(free) + 1)):
            return itertools.product(*(range(len(c)) for c in choices))
        return self._listed(choices, free)

    def _listed(self, choices: Choices, free: Sequence[int]) -> Iterator[Digits]:
        for size in sorted(self.sizes):
            for on in itertools.combinations(free, size):
                yield from itertools.product(*(ways(c, i in on) for i, c in enumerate(choices)))

    def projected(self, choices: Choices, involved: Sequence[int]) -> Iterator[tuple[Digits, int, int]]:
        """Each combination of the involved; how the others can fill it up is counted, not listed."""
        free = [c for i, c in enumerate(choices) if i not in involved]
        sets = _by_size([(1, 1) if None in c else (0, 1) for c in free])
        configurations = _by_size([(1, len(c) - 1) if None in c else (0, len(c)) for c in free])
        always = sum(None not in c for c in free)
        for digits in itertools.product(*(range(len(choices[i])) for i in involved)):
            on = sum(None in choices[i] and choices[i][d] is not None for i, d in zip(involved, digits, strict=True))
            wanted = [size - on + always for size in self.sizes if 0 <= size - on + always < len(sets)]
            if num := sum(sets[size] for size in wanted):
                yield digits, num, sum(configurations[size] for size in wanted)

    def holds(self, choices: Choices, digits: Digits) -> bool:
        """By the number of candidates that are on and could be off."""
        return sum(None in c and c[d] is not None for c, d in zip(choices, digits, strict=True)) in self.sizes


class Listed:
    """Sets that are listed one by one, and those of certain sizes; few enough to be looked at."""

    def __init__(self, masks: Iterable[int], sized: BySize, free: Sequence[int]) -> None:
        self.sized = sized
        own = {mask for mask in masks if mask.bit_count() not in sized.sizes}
        self.masks = dict.fromkeys(sorted(own, key=lambda mask: (mask.bit_count(), *members(mask))))
        self.free = frozenset(free)

    def points(self, choices: Choices) -> Iterator[Digits]:
        """Those told by size first; then small sets first."""
        yield from self.sized.points(choices)
        for mask in self.masks:
            yield from itertools.product(*(ways(c, bool(mask >> i & 1)) for i, c in enumerate(choices)))

    def projected(self, choices: Choices, involved: Sequence[int]) -> Iterator[tuple[Digits, int, int]]:
        """As that of the sizes, and what the listed sets add to it."""
        found = {digits: (sets, num) for digits, sets, num in self.sized.projected(choices, involved)}
        rest = [i for i in range(len(choices)) if i not in involved]
        for mask in self.masks:
            digits_of = [ways(c, bool(mask >> i & 1)) for i, c in enumerate(choices)]
            num = math.prod(len(digits_of[i]) for i in rest)
            for digits in itertools.product(*(digits_of[i] for i in involved)):
                sets, known = found.get(digits, (0, 0))
                found[digits] = sets + 1, known + num
        return ((digits, *counts) for digits, counts in found.items())

    def holds(self, choices: Choices, digits: Digits) -> bool:
        """Whether its set is listed, or has one of the sizes."""
        on = sum(1 << i for i in self.free if choices[i][digits[i]] is not None)
        return on in self.masks or self.sized.holds(choices, digits)


def num_configurations(design: Design, choices: Choices) -> int:
    """How many combinations a design has, before any rule."""
    return sum(num for _, _, num in design.projected(choices, ()))


def switched(choices: Choices) -> list[int]:
    """Candidates that can be on and off."""
    return [i for i, c in enumerate(choices) if None in c and len(c) > 1]


def placed(mask: int, free: Sequence[int]) -> int:
    """A set of the switched candidates as one of all of them."""
    return sum(1 << free[i] for i in members(mask))


def ways(choices: tuple[Level | None, ...], on: bool) -> range:
    """Digits of a candidate that is on, at any level, or off; one that cannot be off is on."""
    return range(int(None in choices), len(choices)) if on or None not in choices else range(1)


def _by_size(candidates: Sequence[tuple[int, int]]) -> list[int]:
    """Number of ways with k of the candidates on, for each k; a candidate is (ways to be off, ways to be on)."""
    ways = [1]
    for off, on in candidates:
        ways = [off * (ways[k] if k < len(ways) else 0) + on * (ways[k - 1] if k else 0) for k in range(len(ways) + 1)]
    return ways
