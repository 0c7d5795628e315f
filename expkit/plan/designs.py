"""Designs: which sets of the candidates are tried. A new one is a class with two methods and a line in DESIGNS."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Protocol

from expkit.spec.sweep import Level

Choices = Sequence[tuple[Level | None, ...]]
"""Per candidate the ways it can be: None is off, else one of its levels."""
Digits = tuple[int, ...]
"""Per candidate the index into its choices."""


class Design(Protocol):
    """Which combinations of choices belong to it, listed and counted."""

    def points(self, choices: Choices) -> Iterator[Digits]:
        """All of them, lazily, in a fixed order."""

    def projected(self, choices: Choices, involved: Sequence[int]) -> Iterator[tuple[Digits, int, int]]:
        """What some candidates alone show of them: their digits, in how many sets, in how many configurations.

        Counting asks for this, so that a million configurations need not be listed.
        """


class Full:
    """Every subset: 2^n sets of n candidates."""

    def points(self, choices: Choices) -> Iterator[Digits]:
        """Off first, the last candidate changes fastest."""
        return itertools.product(*(range(len(c)) for c in choices))

    def projected(self, choices: Choices, involved: Sequence[int]) -> Iterator[tuple[Digits, int, int]]:
        """Each combination of the involved; all others multiply."""
        free = [c for i, c in enumerate(choices) if i not in involved]
        sets = math.prod(2 if None in c and len(c) > 1 else 1 for c in free)
        configurations = math.prod(len(c) for c in free)
        for digits in itertools.product(*(range(len(choices[i])) for i in involved)):
            yield digits, sets, configurations


DESIGNS: dict[str, type[Design]] = {"full": Full}
