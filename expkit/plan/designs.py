"""Designs: which sets of the candidates are tried, told by how many candidates are on; listed and counted.

Candidates that stay on everywhere (`always`) are in every set and do not count. A new design is a line in SIZES, or a
class with the methods of Design.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

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


def design_of(parts: Iterable[DesignPart], choices: Choices) -> Design:
    """The union of some designs over these candidates: what belongs to several is there once."""
    num = len(_switched(choices))
    return BySize(size for part in parts for size in SIZES[part.kind](num, part.number))


class BySize:
    """All sets with certain numbers of candidates on."""

    def __init__(self, sizes: Iterable[int]) -> None:
        self.sizes = frozenset(sizes)

    def points(self, choices: Choices) -> Iterator[Digits]:
        """Off first, the last candidate changes fastest where all sets are listed; else small sets first."""
        free = _switched(choices)
        if self.sizes.issuperset(range(len(free) + 1)):
            return itertools.product(*(range(len(c)) for c in choices))
        return self._listed(choices, free)

    def _listed(self, choices: Choices, free: Sequence[int]) -> Iterator[Digits]:
        for size in sorted(self.sizes):
            for on in itertools.combinations(free, size):
                yield from itertools.product(*(_ways(c, i in on) for i, c in enumerate(choices)))

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


def num_configurations(design: Design, choices: Choices) -> int:
    """How many combinations a design has, before any rule."""
    return sum(num for _, _, num in design.projected(choices, ()))


def _switched(choices: Choices) -> list[int]:
    """Candidates that can be on and off."""
    return [i for i, c in enumerate(choices) if None in c and len(c) > 1]


def _ways(choices: tuple[Level | None, ...], on: bool) -> range:
    """Digits of a candidate that is on, at any level, or off; one that cannot be off is on."""
    return range(int(None in choices), len(choices)) if on or None not in choices else range(1)


def _by_size(candidates: Sequence[tuple[int, int]]) -> list[int]:
    """Number of ways with k of the candidates on, for each k; a candidate is (ways to be off, ways to be on)."""
    ways = [1]
    for off, on in candidates:
        ways = [off * (ways[k] if k < len(ways) else 0) + on * (ways[k - 1] if k else 0) for k in range(len(ways) + 1)]
    return ways
