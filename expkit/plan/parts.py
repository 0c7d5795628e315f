"""Parts of a sweep, whose union is run: its grids and the arms included by hand; arms are known by numbers."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, MutableSequence
from typing import Protocol

from expkit.errors import Problem, SpecError
from expkit.plan.designs import Choices, Digits, num_configurations
from expkit.plan.space import Arm, Space
from expkit.spec.axes import Point
from expkit.spec.sweep import Grid, Include, Level, Sweep

Codes = MutableSequence[int]
MAX_CONFIGURATIONS = 2**24
CHUNK = 8
MAX_KEPT = 10_000


class Part(Protocol):
    """Arms at points on seeds."""

    exempt: bool
    """Whether exclusions do not look at it."""
    seeds: tuple[int, ...]
    num_codes: int
    """Codes are smaller than this."""
    baseline: int | None
    """The code of the baseline, None where it is no arm of this part."""

    @property
    def points(self) -> Iterable[Point]:
        """Where its arms stand."""

    def codes(self) -> Iterator[int]:
        """The arms, lazily."""

    def arm(self, code: int) -> Arm:
        """The arm of a code."""


def parts_of(sweep: Sweep) -> list[Part]:
    """The grids in order, then what is included."""
    grids: list[Part] = [GridPart(Space(sweep, grid), grid) for grid in sweep.grids]
    space = Space(sweep, sweep.grids[0])
    return [*grids, *(IncludePart(space, include) for include in sweep.includes)]


class GridPart:
    """The arms of a grid as numbers of mixed radix: eight bytes each, however many there are."""

    exempt = False

    def __init__(self, space: Space, grid: Grid) -> None:
        self.space = space
        self.points: Iterable[Point] = grid.axes
        self.seeds = space.sweep.seeds
        self.sizes = [len(c) for c in space.choices]
        self.num_codes = math.prod(self.sizes)
        self.chunks = [_Chunk(space.choices[i : i + CHUNK]) for i in range(0, len(space.choices), CHUNK)][::-1]
        digits = space.baseline_digits()
        self.baseline = None if digits is None else self._code(digits)

    def codes(self) -> Iterator[int]:
        """Those of the design that no rule removes; SpecError where they are too many to be listed."""
        num = num_configurations(self.space.design, self.space.choices)
        if num > MAX_CONFIGURATIONS:
            message = f"the design has {num:,} configurations, more than the {MAX_CONFIGURATIONS:,} that can be listed"
            mark = self.space.sweep.marks["ablate"]
            raise SpecError([Problem(mark.file, mark.line, mark.column, "ablate.candidates", message)])
        if num == self.num_codes and not self.space.rules:
            return iter(range(num))  # every number is an arm
        return map(self._code, self.space.survivors())

    def arm(self, code: int) -> Arm:
        """The arm of a code."""
        levels: tuple[Level, ...] = self.space.sweep.always
        for chunk in self.chunks:
            code, part = divmod(code, chunk.num_codes)
            levels += chunk.levels(part)
        return self.space.arm(levels)

    def _code(self, digits: Digits) -> int:
        code = 0
        for digit, size in zip(digits, self.sizes, strict=True):
            code = code * size + digit
        return code


class _Chunk:
    """A few neighbouring candidates: what a part of a code says of them, worked out once."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices
        self.num_codes = math.prod(len(c) for c in choices)
        self._known: dict[int, tuple[Level, ...]] = {}

    def levels(self, code: int) -> tuple[Level, ...]:
        """Those that are on."""
        known = self._known.get(code)
        if known is None:
            rest, chosen = code, []
            for choices in reversed(self.choices):
                rest, digit = divmod(rest, len(choices))
                chosen.append(choices[digit])
            known = tuple(level for level in chosen if level)
            if len(self._known) < MAX_KEPT:
                self._known[code] = known
        return known


class IncludePart:
    """One arm at one point."""

    exempt = True
    num_codes = 1

    def __init__(self, space: Space, include: Include) -> None:
        self.points: Iterable[Point] = (include.point,)
        self.seeds = include.seeds
        self._arm = space.arm(include.levels)
        self.baseline: int | None = 0 if self._arm.label == space.baseline.label else None
        broken = space.broken(self._arm.names)
        if broken is not None:
            message = f"{self._arm.label} breaks a rule: {space.rules[broken].text}"
            mark = include.mark
            raise SpecError([Problem(mark.file, mark.line, mark.column, include.path, message)])

    def codes(self) -> Iterator[int]:
        """Its only arm."""
        return iter((0,))

    def arm(self, code: int) -> Arm:
        """Its only arm, whatever the code."""
        return self._arm


def listed(codes: Iterable[int], num_codes: int) -> Codes:
    """Codes in eight bytes each where they fit."""
    return array("q", codes) if num_codes < 2**62 else list(codes)
