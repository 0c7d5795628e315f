"""Tobit: the mean where nothing is censored, lifelines where something is, and coverage with misses."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from lifelines import LogNormalFitter

from expkit.analysis.censored import tobit, tobit_speedup
from expkit.analysis.survival import Times

seconds = st.lists(st.floats(0.1, 1e4), min_size=1, max_size=12)


def normal(n: int, mu: float, s: float, horizon: float, rng: np.random.Generator) -> Times:
    drawn = np.exp(rng.normal(mu, s, n))
    return Times.of(np.minimum(drawn, horizon), drawn > horizon)


@given(seconds)
def test_without_censoring_mu_is_the_mean_of_log_time(values: list[float]) -> None:
    found = tobit((Times.of(values, np.zeros(len(values))),))
    assert found is not None
    assert found.mu[0] == pytest.approx(np.log(values).mean())
    assert found.sigma == pytest.approx(np.log(values).std(), abs=1e-9)


def test_without_censoring_the_interval_is_the_two_sample_t() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.lognormal(0.1, 0.1, 5), rng.lognormal(0, 0.1, 4)
    found = tobit_speedup(Times.of(a, np.zeros(5)), Times.of(b, np.zeros(4)))
    theirs = scipy.stats.ttest_ind(np.log(a), np.log(b)).confidence_interval()
    assert (found.lo, found.hi) == pytest.approx((math.exp(theirs.low), math.exp(theirs.high)))


def test_the_likelihood_ratio_interval_comes_to_the_t_interval_as_censoring_vanishes() -> None:
    """A trial that was there by its first evaluation, a thousand times later than all others, says nothing."""
    rng = np.random.default_rng(0)
    a, b = rng.lognormal(0.1, 0.1, 5), rng.lognormal(0, 0.1, 5)
    whole = tobit_speedup(Times.of(a, np.zeros(5)), Times.of(b, np.zeros(5)))
    more = tobit_speedup(Times.of([*a, 1e3], [0] * 5 + [-1]), Times.of(b, np.zeros(5)))
    assert (more.value, more.lo, more.hi) == pytest.approx((whole.value, whole.lo, whole.hi), rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_lifelines_finds_the_same_maximum_of_one_group(seed: int) -> None:
    sample = normal(12, 2.0, 0.4, 8.5, np.random.default_rng(seed))
    found = tobit((sample,))
    theirs = LogNormalFitter().fit(sample.seconds, sample.late == 0)
    assert found is not None
    assert (found.mu[0], found.sigma) == pytest.approx((theirs.mu_, theirs.sigma_), rel=1e-4)


def test_left_and_right_censored_trials_of_two_groups_by_a_general_optimiser() -> None:
    base = Times.of([2.0, 3.0, 4.0, 5.0, 5.0], [-1, 0, 0, 1, 0])
    arm = Times.of([1.5, 2.0, 3.5, 5.0], [0, -1, 0, 1])

    def loss(theta: np.ndarray) -> float:
        total = 0.0
        for mu, group in zip(theta[:2], (base, arm), strict=True):
            z = (np.log(group.seconds) - mu) / math.exp(theta[2])
            parts = {
                0: scipy.stats.norm.logpdf(z) - theta[2],
                1: scipy.stats.norm.logsf(z),
                -1: scipy.stats.norm.logcdf(z),
            }
            total -= sum(float(parts[kind][group.late == kind].sum()) for kind in parts)
        return total

    best = scipy.optimize.minimize(loss, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12})
    found = tobit((base, arm))
    assert found is not None
    assert (*found.mu, math.log(found.sigma)) == pytest.approx(tuple(best.x), abs=1e-5)
    ratio = tobit_speedup(base, arm)
    limit = 5 * math.log1p(scipy.stats.t.ppf(0.975, 3) ** 2 / 3)
    for end in (ratio.lo, ratio.hi):
        delta = math.log(end or 0)
        fixed = scipy.optimize.minimize(
            lambda t, delta=delta: loss(np.array([t[0] + delta, t[0], t[1]])), np.zeros(2), method="Nelder-Mead",
            options={"xatol": 1e-9, "fatol": 1e-12},
        )  # fmt: skip
        assert 2 * (fixed.fun - best.fun) == pytest.approx(limit, abs=1e-4)


def test_dropping_the_misses_and_doubling_them_both_lie_and_the_model_does_not() -> None:
    """A4's simulation: true 1.10, n = 10, s = 0.15, 40 % of the baseline's trials censored."""
    rng = np.random.default_rng(0)
    horizon = math.exp(0.15 * scipy.stats.norm.ppf(0.6))
    dropped, doubled, ours = [], [], []
    for _ in range(150):
        base, arm = normal(10, 0, 0.15, horizon, rng), normal(10, -math.log(1.1), 0.15, horizon, rng)
        found = tobit((base, arm))
        if found is None:
            continue
        ours.append(found.mu[0] - found.mu[1])
        logs = [np.log(t.seconds[t.late == 0]).mean() for t in (base, arm)]
        dropped.append(logs[0] - logs[1])
        twice = [np.log(t.seconds * np.where(t.late == 1, 2, 1)).mean() for t in (base, arm)]
        doubled.append(twice[0] - twice[1])
    assert math.exp(np.mean(ours)) == pytest.approx(1.10, abs=0.012)
    assert math.exp(np.mean(dropped)) < 1.06
    assert math.exp(np.mean(doubled)) > 1.2


@pytest.mark.parametrize("n", [3, 5])
def test_the_interval_covers_with_misses(n: int) -> None:
    rng = np.random.default_rng(n)
    horizon = math.exp(0.15 * scipy.stats.norm.ppf(0.75))
    found = [
        tobit_speedup(normal(n, 0, 0.15, horizon, rng), normal(n, -math.log(1.1), 0.15, horizon, rng))
        for _ in range(200)
    ]
    there = [it for it in found if it.lo is not None and it.hi is not None]
    assert len(there) > 150
    assert np.mean([it.lo <= 1.1 <= it.hi for it in there]) > 0.92  # 0.95 - 2 standard errors of 200


@given(st.integers(0, 10**6), st.floats(0.01, 100))
def test_swapping_the_sides_inverts_it_and_the_unit_does_not_matter(seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    base, arm = normal(5, 0.0, 0.2, 1.1, rng), normal(5, -0.1, 0.2, 1.1, rng)
    there, back = tobit_speedup(base, arm), tobit_speedup(arm, base)
    scaled = tobit_speedup(Times(base.seconds * scale, base.late), Times(arm.seconds * scale, arm.late))
    assert (there.value is None) == (back.value is None) == (scaled.value is None)
    if there.value is not None and back.value is not None and there.lo is not None and back.hi is not None:
        assert there.value * back.value == pytest.approx(1, rel=1e-5)
        assert there.lo * back.hi == pytest.approx(1, rel=1e-4)
        assert scaled.lo == pytest.approx(there.lo, rel=1e-4)


def test_what_cannot_be_estimated_has_no_value_and_few_hits_no_ends() -> None:
    hit, half, rare = (
        Times.of([1, 2, 3, 4], [0] * 4),
        Times.of([1, 2, 9, 9], [0, 0, 1, 1]),
        Times.of([1, 9, 9], [0, 1, 1]),
    )
    assert tobit_speedup(hit, half).value is not None
    assert tobit_speedup(hit, rare).value is None
    assert tobit_speedup(hit, Times.of([9, 9], [1, 1])).value is None
    assert tobit_speedup(Times.of([], []), hit).value is None
    one = tobit_speedup(Times.of([2.0], [0]), Times.of([1.0], [0]))
    assert (one.value, one.lo, one.n) == (pytest.approx(2), None, 1)
    assert tobit_speedup(Times.of([2.0, 3.0], [0, 1]), Times.of([1.0, 3.0], [0, 1])).lo is None
    assert tobit(()) is None


def test_equal_hits_and_a_miss_before_them_have_no_maximum() -> None:
    assert tobit((Times.of([5.0, 5.0, 4.9], [0, 0, 1]),)) is None
    later = tobit((Times.of([5.0, 5.0, 9.0], [0, 0, 1]),))
    assert later is not None and later.mu[0] > math.log(5)
    same = tobit_speedup(Times.of([5.0, 5.0], [0, 0]), Times.of([4.0, 4.0], [0, 0]))
    assert (same.lo, same.hi) == pytest.approx((1.25, 1.25))
    assert tobit_speedup(Times.of([5.0, 0.0], [0, -1]), Times.of([4.0, 4.0], [0, 0])).value == pytest.approx(1.25)
