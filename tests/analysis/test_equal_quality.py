"""Equal-quality time and equal-time quality: G14 of the definition sheet, scipy, brute force, and coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st

from expkit.analysis.equal_quality import (
    TradeOff,
    gain_at,
    log_time_at,
    overlap,
    smooth_speedup_at,
    speedup_at,
    speedup_range,
    trade_off,
)

FFCV = trade_off(
    np.log([[14.9], [21.7], [28.7], [35.6], [49.4], [77.2]]), [[0.738], [0.756], [0.766], [0.772], [0.780], [0.784]]
)


def minutes(quality: float) -> float | None:
    found = log_time_at(FFCV, quality)
    return None if found is None else math.exp(found)


def curves(rng: np.random.Generator, seeds: int, noise: float = 0.003) -> tuple[TradeOff, TradeOff]:
    """A baseline and an arm 1.2 times as fast to any quality, at three budgets; q = 0.8 + 0.05 ln u."""
    shared = rng.normal(0, noise, (3, seeds))  # what a seed does to both
    found = []
    for factor in (1.0, 1.2):
        x = np.log([2.5, 5.0, 10.0])[:, None] + rng.normal(0, 0.01, (3, seeds))
        found.append(trade_off(x, 0.8 + 0.05 * (x + math.log(factor)) + shared + rng.normal(0, noise, (3, seeds))))
    return found[0], found[1]


def test_the_worked_example_interpolates_log_time_and_refuses_what_lies_beyond() -> None:
    assert minutes(0.7613) == pytest.approx(25.165959, abs=5e-7)
    assert minutes(0.77) == pytest.approx(33.132990, abs=5e-7)
    assert minutes(0.78) == pytest.approx(49.4)
    assert minutes(0.79) is None
    assert minutes(0.70) is None


@given(st.lists(st.floats(0, 1), min_size=2, max_size=6))
def test_the_isotonic_fit_is_scipy_s(qualities: list[float]) -> None:
    curve = trade_off(np.arange(len(qualities), dtype=float)[:, None], np.array(qualities)[:, None])
    assert curve.quality_K == pytest.approx(scipy.optimize.isotonic_regression(qualities).x)


def test_a_level_is_reached_at_its_shortest_budget_and_left_at_its_longest() -> None:
    curve = trade_off([[0.0], [1.0], [2.0], [3.0]], [[0.1], [0.5], [0.3], [0.8]])
    assert curve.quality_K.tolist() == [0.1, 0.4, 0.4, 0.8]
    assert log_time_at(curve, 0.4) == 1.0
    assert log_time_at(curve, 0.6) == pytest.approx(2.5)


@given(st.integers(0, 10**6))
def test_swapping_the_sides_inverts_the_speedup_and_turns_the_gain(seed: int) -> None:
    base, arm = curves(np.random.default_rng(seed), 4)
    common = overlap(base, arm)
    assert common is not None and common == overlap(arm, base)
    q = (common[0] + common[1]) / 2
    there, back = speedup_at(base, arm, q), speedup_at(arm, base, q)
    assert (there.value or 0) * (back.value or 0) == pytest.approx(1)
    assert (there.lo or 0) * (back.hi or 0) == pytest.approx(1)
    gain, loss = gain_at(base, arm, 1.5), gain_at(arm, base, 1.5)
    assert (gain.value or 0) == pytest.approx(-(loss.value or 0))
    assert speedup_at(base, base, q).value == 1


@pytest.mark.parametrize("quality", [0.86, 0.88, 0.895])
def test_the_interval_is_that_of_a_numerical_delta_method(quality: float) -> None:
    """Each seed's part is what the result moves by when that seed alone moves, here by finite differences."""
    rng = np.random.default_rng(3)
    x = np.log([2.5, 5.0, 10.0])[:, None] + rng.normal(0, 0.01, (3, 5))
    q = 0.8 + 0.05 * x + rng.normal(0, 0.003, (3, 5))
    base, arm = trade_off(x, q), trade_off(x - 0.2, q)
    h, parts = 1e-6, np.zeros(5)
    for k in range(3):
        for s in range(5):
            for which, table in enumerate((x, q)):
                moved = table.copy()
                moved[k, s] += h
                at = log_time_at(trade_off(*((moved, q) if which == 0 else (x, moved))), quality)
                slope = ((at or 0) - (log_time_at(base, quality) or 0)) / h * 5
                parts[s] += slope * (table[k, s] - table[k].mean())
    found = speedup_at(base, arm, quality)
    assert (found.lo, found.hi) == pytest.approx((math.exp(0.2),) * 2)  # what both sides share cancels seed by seed
    still = TradeOff(arm.log_time_K, arm.quality_K, arm.pool_KK, arm.log_time_K[:, None] + np.zeros((3, 5)),
                     q.mean(axis=1, keepdims=True) + np.zeros((3, 5)))  # fmt: skip
    ratio = speedup_at(base, still, quality)
    half = 2.7764451 * parts.std(ddof=1) / math.sqrt(5)
    assert math.log((ratio.hi or 0) / (ratio.value or 1)) == pytest.approx(half, rel=1e-4)


def test_the_interval_covers() -> None:
    rng = np.random.default_rng(0)
    found = [speedup_at(*curves(rng, 5), 0.89) for _ in range(400)]
    inside = [it.lo <= 1.2 <= it.hi for it in found if it.lo is not None and it.hi is not None]
    assert len(inside) == 400
    assert np.mean(inside) > 0.925


def test_the_range_is_that_of_a_fine_grid() -> None:
    rng = np.random.default_rng(7)
    base = trade_off(np.sort(rng.normal(0, 1, (5, 1)), axis=0), np.sort(rng.uniform(0, 1, (5, 1)), axis=0))
    arm = trade_off(np.sort(rng.normal(0, 1, (4, 1)), axis=0), np.sort(rng.uniform(0, 1, (4, 1)), axis=0))
    common, found = overlap(base, arm), speedup_range(base, arm)
    assert common is not None and found is not None
    every = [speedup_at(base, arm, q).value or 0 for q in np.linspace(*common, 2001)]
    assert found == pytest.approx((min(every), max(every)), rel=1e-2)
    assert found[0] <= min(every) * (1 + 1e-9) and found[1] >= max(every) * (1 - 1e-9)


def test_a_monotone_cubic_goes_through_the_same_points() -> None:
    base, arm = curves(np.random.default_rng(1), 4)
    q = float(base.quality_K[1])
    straight, smooth = speedup_at(base, arm, q).value, smooth_speedup_at(base, arm, q)
    assert smooth == pytest.approx(straight, rel=0.03)
    assert smooth_speedup_at(base, arm, 0.99) is None
    level = trade_off([[0.0], [1.0]], [[0.5], [0.5]])
    assert smooth_speedup_at(level, level, 0.5) is None


def test_nothing_is_said_where_the_curves_do_not_meet_or_do_not_rise() -> None:
    base, arm = curves(np.random.default_rng(1), 3)
    above = trade_off(arm.seeds_log_time_KS, arm.seeds_quality_KS + 1)
    falling = trade_off([[0.0], [1.0]], [[0.9], [0.8]])
    assert overlap(base, above) is None
    assert speedup_at(base, above, 0.9).value is None
    assert speedup_range(base, above) is None
    assert overlap(falling, falling) is None
    assert gain_at(base, arm, 9.0).value is None
    assert gain_at(falling, falling, 0.5).value == 0
    one = trade_off(arm.seeds_log_time_KS[:, :1], arm.seeds_quality_KS[:, :1])
    found = speedup_at(one, one, float(one.quality_K[1]))
    assert (found.value, found.lo, found.n) == (1, None, 1)


@given(st.integers(0, 10**6), st.floats(0.01, 100))
def test_the_unit_of_time_does_not_matter(seed: int, scale: float) -> None:
    base, arm = curves(np.random.default_rng(seed), 3)
    moved = [trade_off(c.seeds_log_time_KS + math.log(scale), c.seeds_quality_KS) for c in (base, arm)]
    q = sum(overlap(base, arm) or (0, 0)) / 2
    assert speedup_at(*moved, q).value == pytest.approx(speedup_at(base, arm, q).value)
