"""What the union of several parts of a sweep has: gone through point by point, seeds multiplied."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from expkit.plan.blocks import Blocks, Here
from expkit.spec.axes import Point
from expkit.spec.sweep import Level


@dataclass(frozen=True)
class United:
    """Counts of a union."""

    points: int
    """Arms at points of the grids, for one seed."""
    included: int
    """Trials that only `include` asks for."""
    added: int
    """Baselines that are no arm of any part."""
    blocks: int
    sets: int


def unite(blocks: Blocks) -> United:
    """Counts what `Blocks` would list."""
    return _Count(blocks).all()


@dataclass(frozen=True)
class _Arms:
    """What stands at a point."""

    num: int
    needs_baseline: bool
    sets: frozenset[frozenset[str]]


class _Count:
    def __init__(self, blocks: Blocks) -> None:
        self.blocks = blocks
        self.known: dict[Here, _Arms] = {}
        self.on_seeds: dict[Here, Counter[Here]] = {}

    def all(self) -> United:
        points = included = added = num_blocks = 0
        sets: set[frozenset[str]] = set()
        for point, parts in self.blocks.points():
            grids = tuple(i for i in parts if not self.blocks.parts[i].exempt)
            alone = self._arms(point, grids).num if grids else 0
            points += alone
            if alone:
                self.blocks.space.require_baseline(point)
            for here, num_seeds in self._by_seed(parts).items():
                arms = self._arms(point, here)
                if arms.num:
                    num_blocks += num_seeds
                    added += num_seeds * arms.needs_baseline
                    sets |= arms.sets
                included += num_seeds * (arms.num - (alone if set(grids) <= set(here) else 0))
        if added:
            sets.add(self._set(self.blocks.baseline.levels))
        return United(points, included, added, num_blocks, len(sets))

    def _by_seed(self, parts: Here) -> Counter[Here]:
        """The parts that stand together, and on how many seeds."""
        if parts not in self.on_seeds:
            found: Counter[Here] = Counter()
            for seed in self.blocks.seeds():
                found[tuple(i for i in parts if seed in self.blocks.parts[i].seeds)] += 1
            del found[()]
            self.on_seeds[parts] = found
        return self.on_seeds[parts]

    def _arms(self, point: Point, here: Here) -> _Arms:
        """Without exclusions the same at every point."""
        if self.blocks.sweep.exclusions:
            return self._looked_at(point, here)
        if here not in self.known:
            self.known[here] = self._looked_at(point, here)
        return self.known[here]

    def _looked_at(self, point: Point, here: Here) -> _Arms:
        codes = self.blocks.codes_at(point, here)
        sets = frozenset(self._set(self.blocks.arm(code).levels) for code in codes)
        return _Arms(len(codes), self.blocks.needs_baseline(codes), sets)

    def _set(self, levels: tuple[Level, ...]) -> frozenset[str]:
        return frozenset(level.method.name for level in levels)
