"""Blocks of a sweep: one seed at one parameter point, with all arms of all parts that stand there."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from expkit.plan.parts import Codes, Part, listed, parts_of
from expkit.plan.space import Arm, Space
from expkit.spec.axes import Point
from expkit.spec.draft import Method
from expkit.spec.identity import Identifier
from expkit.spec.labels import label_text
from expkit.spec.sweep import Sweep
from expkit.spec.tree import Problems

BASELINE, REPEAT = -1, -2
"""Codes beside those of the parts: a baseline that is no arm of theirs, and its A/A repeat."""
MAX_KEPT = 65_536


@dataclass(frozen=True, slots=True)
class Block:
    """The arms at one point on one seed; without the repeat, and without a baseline that must be added."""

    number: int
    seed: int
    point: Point
    codes: Codes


Here = tuple[int, ...]
"""Indices of the parts that stand at a point."""


def is_union(sweep: Sweep) -> bool:
    """Whether a trial may be asked for more than once, so that points must be compared."""
    return len(sweep.grids) + len(sweep.includes) > 1 or sweep.grids[0].axes.may_repeat


class Blocks:
    """All blocks of a sweep in order; what several parts ask for is there once."""

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep
        self.parts: list[Part] = parts_of(sweep)
        self.is_union = is_union(sweep)
        self.space = Space(sweep, sweep.grids[0])
        self.baseline = self.space.baseline
        self.offsets = [0, *itertools.accumulate(part.num_codes for part in self.parts)]
        self.baselines = {
            o + p.baseline for o, p in zip(self.offsets, self.parts, strict=False) if p.baseline is not None
        }
        self._arms: dict[int, Arm] = {BASELINE: self.baseline, REPEAT: self.baseline}
        self._codes: dict[Here, Codes] = {}
        self._points: list[tuple[Point, Here]] | None = None

    def __iter__(self) -> Iterator[Block]:
        number = -1
        for seed in self.seeds():
            for point, parts in self.points():
                number += 1
                here = tuple(i for i in parts if seed in self.parts[i].seeds) if self.is_union else parts
                if here and (codes := self.codes_at(point, here)):
                    yield Block(number, seed, point, codes)

    def seeds(self) -> tuple[int, ...]:
        """Those of the sweep, then those that only included arms have."""
        if not self.is_union:
            return self.parts[0].seeds
        return tuple(dict.fromkeys(seed for part in self.parts for seed in part.seeds))

    def points(self) -> Iterator[tuple[Point, Here]]:
        """Each point and the parts that stand there; points that make one recipe are one."""
        if not self.is_union:
            return ((point, (0,)) for point in self.parts[0].points)
        return iter(self._united())

    def codes_at(self, point: Point, here: Here) -> Codes:
        """The arms of some parts at a point, a copy; exclusions applied."""
        codes = self._union(here)
        if not self.sweep.exclusions:
            return codes[:]
        return listed((c for c in codes if self._is_kept(c, point)), self.offsets[-1])

    def needs_baseline(self, codes: Codes) -> bool:
        """Whether the baseline is no arm among these and must be added."""
        return not any(code in codes for code in self.baselines)

    def part_of(self, code: int) -> int:
        """Index of the part that a code belongs to."""
        return bisect.bisect_right(self.offsets, code) - 1

    def arm(self, code: int) -> Arm:
        """The arm of a code; the last few are kept."""
        arm = self._arms.get(code)
        if arm is None:
            part = self.part_of(code)
            arm = self.parts[part].arm(code - self.offsets[part])
            if len(self._arms) < MAX_KEPT:
                self._arms[code] = arm
        return arm

    def _is_kept(self, code: int, point: Point) -> bool:
        return self.parts[self.part_of(code)].exempt or self.space.excluded(self.arm(code), point) is None

    def _union(self, here: Here) -> Codes:
        if here not in self._codes:
            self._codes[here] = listed(self._distinct(here), self.offsets[-1])
        return self._codes[here]

    def _distinct(self, here: Here) -> Iterator[int]:
        if len(here) == 1:
            offset = self.offsets[here[0]]
            yield from (offset + code for code in self.parts[here[0]].codes())
            return
        labels: set[str] = set()
        for part in sorted(here, key=lambda i: not self.parts[i].exempt):  # what is included stays, even if excluded
            for code in self.parts[part].codes():
                arm = self.arm(self.offsets[part] + code)
                if arm.label not in labels:
                    labels.add(arm.label)
                    yield self.offsets[part] + code

    def _united(self) -> list[tuple[Point, Here]]:
        """Worked out once: needs the recipe of every point."""
        if self._points is None:
            found: dict[str, tuple[Point, list[int]]] = {}
            spell = _Speller(self.sweep)
            for i, part in enumerate(self.parts):
                for point in part.points:
                    parts = found.setdefault(spell.point(point), (point, []))[1]
                    parts += [] if i in parts else [i]
            self._points = [(point, tuple(parts)) for point, parts in found.values()]
        return self._points


class _Speller:
    """What a point makes of everything but the arm: points that are spelled alike are one."""

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep
        self.ids = Identifier()
        depends = {i for method in _methods(sweep) for i in sweep.draft.method_depends(method)}
        self.paths = sorted(sweep.parameters[i].path for i in depends)

    def point(self, point: Point) -> str:
        problems = Problems()
        draft = self.sweep.draft
        own = [m for method in self.sweep.constant if (m := draft.method(method, point, problems))]
        recipe = draft.variant(point, own, problems)
        problems.raise_if_any()
        assert recipe is not None
        values = self.sweep.values(point, recipe) if self.paths else {}
        return " ".join([self.ids.text_of(recipe), *(label_text(values.get(path)) for path in self.paths)])


def _methods(sweep: Sweep) -> list[Method]:
    levels = [level for c in sweep.candidates for level in c.levels] + [*sweep.baseline, *sweep.always]
    levels += [level for include in sweep.includes for level in include.levels]
    return [level.method for level in levels]
