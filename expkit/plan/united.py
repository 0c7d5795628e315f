"""What the union of several grids and included arms has: gone through point by point, seeds multiplied."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from expkit.plan.blocks import Blocks, Here
from expkit.spec.axes import Point


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
    counted: Counter[str] = Counter()
    sets: set[frozenset[str]] = set()
    for point, parts in blocks.points():
        grids = tuple(i for i in parts if not blocks.parts[i].exempt)
        alone = len(blocks.codes_at(point, grids)) if grids else 0
        counted["points"] += alone
        if alone:
            blocks.space.require_baseline(point)
        for here, num_seeds in _by_seed(blocks, parts).items():
            _count_blocks(blocks, point, here, num_seeds, counted, sets)
            of_grids = alone if set(grids) <= set(here) else 0
            counted["included"] -= of_grids * num_seeds
    return United(counted["points"], counted["included"], counted["added"], counted["blocks"], len(sets))


def _by_seed(blocks: Blocks, parts: Here) -> Counter[Here]:
    """The parts that stand at a point together, and on how many seeds."""
    found: Counter[Here] = Counter()
    for seed in blocks.seeds():
        found[tuple(i for i in parts if seed in blocks.parts[i].seeds)] += 1
    del found[()]
    return found


def _count_blocks(
    blocks: Blocks, point: Point, here: Here, num_seeds: int, counted: Counter[str], sets: set[frozenset[str]]
) -> None:
    codes = blocks.codes_at(point, here)
    if not codes:
        return
    added = blocks.needs_baseline(codes)
    counted["blocks"] += num_seeds
    counted["added"] += num_seeds * added
    counted["included"] += num_seeds * len(codes)
    sets.update(frozenset(level.method.name for level in blocks.arm(code).levels) for code in codes)
    if added:
        sets.add(frozenset(level.method.name for level in blocks.baseline.levels))
