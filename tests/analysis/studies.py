"""Studies made in memory, of any number of arms: for estimators that read no store."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from expkit.analysis.attainment import Attained
from expkit.analysis.replicate import Replicate
from expkit.analysis.study import Study
from expkit.analysis.time_to_target import Crossing

Outcome = Callable[[str, int, np.random.Generator], tuple[float, float]]
"""(label, seed, rng) -> (seconds, quality)."""


def study_of(
    labels: Sequence[str],
    seeds: Iterable[int],
    outcome: Outcome,
    *,
    target: float | None = 0.8,
    mode: str = "max",
    delta: float = 0.005,
    change: Callable[[Replicate], Replicate | None] = lambda one: one,
) -> Study:
    """Every arm with every seed, the baseline `none` twice; a trial reaches the target at its end if its quality does.

    `change` may alter a replicate, or leave it out.
    """
    rng = np.random.default_rng(0)
    points = dict.fromkeys(label.partition(" ")[2] for label in labels)
    blocks = {(point, seed): i for i, (point, seed) in enumerate((p, s) for p in points for s in seeds)}
    replicates, crossings = [], {}
    for (point, seed), block in blocks.items():
        for label in (one for one in labels if one.partition(" ")[2] == point):
            for number in range(2 if label.partition(" ")[0] == "none" else 1):
                seconds, quality = outcome(label, seed, rng)
                made = change(_replicate(label, seed, block, number, seconds, quality))
                if made is not None:
                    replicates.append(made)
                    crossings[made.id, made.replicate] = _crossing(made, target, mode)
    targets = {} if target is None else {None: target}
    rules = ("first", "sustained", "to_end", "median3", "endpoint")
    found = Attained({(rule, None): crossings for rule in rules}, targets, "train_s")  # type: ignore[misc]
    return Study(tuple(replicates), "eval/accuracy", mode, "train_s", "cpu_s", 0.95, delta, "none", found)  # type: ignore[arg-type]


def _replicate(label: str, seed: int, block: int, number: int, seconds: float, quality: float) -> Replicate:
    role = "repeat" if number else "baseline" if label.startswith("none") else "arm"
    clocks = {"train_s": seconds, "cpu_s": seconds * 0.99}
    return Replicate(
        f"{label}:{seed}", number, label, role, block, seed, "complete", seed, setting="s", driver="d", threads=2,
        clocks=clocks, quality=quality,
    )  # fmt: skip


def _crossing(one: Replicate, target: float | None, mode: str) -> Crossing:
    end = one.clocks.get("train_s")
    there = target is not None and one.quality is not None and math.isfinite(one.quality) and (
        one.quality >= target if mode == "max" else one.quality <= target
    )  # fmt: skip
    if end is None or not math.isfinite(end):
        return Crossing(False, None, None, None, False, None)
    if not there:
        return Crossing(False, None, None, None, False, end)
    return Crossing(True, end * 0.9, end, (end * 0.8, end), False, end)
