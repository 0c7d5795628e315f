"""Learning curves."""

from __future__ import annotations

import math

import numpy as np
import pytest

from expkit.analysis.curves import MAX_POINTS, curve, spread
from expkit.analysis.load import Evaluations
from expkit.analysis.replicate import Replicate


def series(values: list[float]) -> Evaluations:
    batch = np.arange(1, len(values) + 1, dtype=float)
    return Evaluations(batch, batch * 8, {"train_s": batch / 2}, np.array(values))


def trial(id: str, number: int = 0, state: str = "complete") -> Replicate:
    return Replicate(id, number, "none", "baseline", 0, number, state)


def test_the_mean_over_trials_each_once_with_its_interval() -> None:
    found = curve(
        "none", "eval/accuracy", [trial("a"), trial("a", 1), trial("b"), trial("c", 0, "running")],
        {("a", 0): series([1, 2]), ("a", 1): series([9, 9]), ("b", 0): series([3, math.nan]), ("c", 0): series([7])},
        0.95,
    )  # fmt: skip
    assert found is not None
    assert (found.step, found.sample, found.train_s) == ((1, 2), (8, 16), (0.5, 1.0))
    assert (found.mean, found.n) == ((2, 2), (2, 1))
    assert (found.lo[0], found.lo[1]) == (pytest.approx(2 - 12.706205), None)
    assert curve("none", "x", [], {}, 0.95) is None


def test_long_curves_keep_their_ends() -> None:
    kept = spread(range(1, 1001), MAX_POINTS)
    assert (len(kept), kept[0], kept[-1]) == (200, 1, 1000)
    assert kept == sorted(set(kept))
