"""Kaplan-Meier, restricted mean and log-rank: G10 of the definition sheet; scipy, statsmodels and lifelines."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from lifelines import KaplanMeierFitter
from lifelines.statistics import logrank_test
from lifelines.utils import restricted_mean_survival_time
from statsmodels.duration.survfunc import SurvfuncRight, survdiff

from expkit.analysis.survival import Times, kaplan_meier, log_rank, mean_difference, median_s, restricted_mean

MAINTAINED = Times.of([9, 13, 13, 18, 23, 28, 31, 34, 45, 48, 161], [0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 1])
NOT = Times.of([5, 5, 8, 8, 12, 16, 23, 27, 30, 33, 43, 45], [0] * 5 + [1] + [0] * 6)

steps = st.lists(st.tuples(st.integers(1, 30), st.sampled_from([0, 0, 1, -1])), min_size=1, max_size=15)


def times(points: list[tuple[int, int]]) -> Times:
    return Times.of(*zip(*points, strict=True))


def test_the_worked_example_of_both_groups() -> None:
    m, n = kaplan_meier(MAINTAINED), kaplan_meier(NOT)
    assert m.time_s.tolist() == [9, 13, 18, 23, 31, 34, 48]
    assert m.share == pytest.approx([0.90909, 0.81818, 0.71591, 0.61364, 0.49091, 0.36818, 0.18409], abs=5e-6)
    assert n.time_s.tolist() == [5, 8, 12, 23, 27, 30, 33, 43, 45]
    assert n.share == pytest.approx(
        [0.83333, 0.66667, 0.58333, 0.48611, 0.38889, 0.29167, 0.19444, 0.09722, 0], abs=5e-6
    )
    assert (median_s(m), median_s(n)) == (31, 23)
    assert restricted_mean(m, 48).value == pytest.approx(31.84318, abs=5e-6)
    assert restricted_mean(n, 48).value == pytest.approx(22.70833, abs=5e-6)
    assert mean_difference(n, m, 48).value == pytest.approx(22.70833 - 31.84318, abs=1e-5)
    found = log_rank(NOT, MAINTAINED)
    assert found is not None
    assert found[0] == pytest.approx(3.396389, abs=5e-7)
    assert found[1] == pytest.approx(0.065339, abs=5e-7)


def test_scipy_statsmodels_and_lifelines_agree_on_it() -> None:
    for group in (MAINTAINED, NOT):
        hit, ours = group.late == 0, kaplan_meier(group)
        data = scipy.stats.CensoredData(uncensored=group.seconds[hit], right=group.seconds[~hit])
        theirs = scipy.stats.ecdf(data).sf
        assert theirs.evaluate(ours.time_s) == pytest.approx(ours.share)
        frame = SurvfuncRight(group.seconds, hit.astype(int))
        assert frame.surv_prob == pytest.approx(ours.share)
        assert frame.quantile(0.5) == median_s(ours)
        fitter = KaplanMeierFitter().fit(group.seconds, hit)
        assert fitter.median_survival_time_ == median_s(ours)
        assert restricted_mean_survival_time(fitter, t=40) == pytest.approx(restricted_mean(ours, 40).value)
    found = log_rank(NOT, MAINTAINED)
    assert found is not None
    seconds, hit = np.concatenate((NOT.seconds, MAINTAINED.seconds)), np.concatenate((NOT.late, MAINTAINED.late)) == 0
    assert survdiff(seconds, hit.astype(int), np.repeat([0, 1], [NOT.n, MAINTAINED.n])) == pytest.approx(found)
    theirs = logrank_test(NOT.seconds, MAINTAINED.seconds, NOT.late == 0, MAINTAINED.late == 0)
    assert (theirs.test_statistic, theirs.p_value) == pytest.approx(found)


@given(steps, steps)
def test_log_rank_is_lifelines_and_the_same_from_either_side(
    a: list[tuple[int, int]], b: list[tuple[int, int]]
) -> None:
    one, two = times(a), times(b)
    found, turned = log_rank(one, two), log_rank(two, one)
    assert (found is None) == (turned is None)
    if found is None or turned is None:
        return
    assert found == pytest.approx(turned, rel=1e-9, abs=1e-12)
    theirs = logrank_test(one.seconds, two.seconds, one.late <= 0, two.late <= 0)
    assert (theirs.test_statistic, theirs.p_value) == pytest.approx(found, rel=1e-6, abs=1e-9)


@given(st.lists(st.integers(1, 20), min_size=1, max_size=12))
def test_without_misses_the_curve_is_one_minus_the_ecdf_and_the_mean_is_the_mean(seconds: list[int]) -> None:
    curve, observed = kaplan_meier(Times.of(seconds, [0] * len(seconds))), np.array(seconds)
    assert curve.share == pytest.approx([np.mean(observed > t) for t in curve.time_s])
    for tau in (5.0, float(observed.max())):
        found, restricted = restricted_mean(curve, tau), np.minimum(observed, tau)
        if found.value is None:
            assert tau > observed.max()
            continue
        assert found.value == pytest.approx(restricted.mean())
        if len(seconds) > 1:
            se = restricted.std(ddof=1) / math.sqrt(len(seconds))
            assert (found.hi or 0) - found.value == pytest.approx(scipy.stats.t.ppf(0.975, len(seconds) - 1) * se)


def test_without_misses_the_difference_is_welch_s() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.uniform(5, 9, 6), rng.uniform(4, 9, 4)
    curves = [kaplan_meier(Times.of(x, np.zeros(len(x)))) for x in (a, b)]
    found = mean_difference(*curves, 9.0)
    theirs = scipy.stats.ttest_ind(a, b, equal_var=False).confidence_interval()
    assert (found.lo, found.hi) == pytest.approx((theirs.low, theirs.high))


@given(steps)
def test_the_curve_falls_from_one_and_is_never_below_zero(points: list[tuple[int, int]]) -> None:
    curve = kaplan_meier(times(points))
    assert (np.diff(np.concatenate(([1.0], curve.share))) < 0).all()
    assert (curve.share >= 0).all()


@given(steps, st.floats(0.01, 100))
def test_the_unit_of_time_does_not_matter(points: list[tuple[int, int]], scale: float) -> None:
    one = times(points)
    other = Times(one.seconds * scale, one.late)
    a, b = restricted_mean(kaplan_meier(one), 3.0).value, restricted_mean(kaplan_meier(other), 3.0 * scale).value
    assert (a is None) == (b is None)
    assert (b or 0) == pytest.approx((a or 0) * scale)


def test_nothing_is_said_beyond_what_was_followed() -> None:
    curve = kaplan_meier(Times.of([5, 10], [0, 1]))
    assert restricted_mean(curve, 10).value == 7.5
    assert restricted_mean(curve, 10.1).value is None
    assert restricted_mean(kaplan_meier(Times.of([5, 10], [0, 0])), 20).value == 7.5
    assert mean_difference(curve, curve, 11).value is None


def test_nobody_came_and_nobody_there() -> None:
    missed, nothing = Times.of([10, 10], [1, 1]), Times.of([], [])
    assert log_rank(missed, missed) is None
    assert log_rank(nothing, NOT) is None
    assert median_s(kaplan_meier(missed)) is None
    assert restricted_mean(kaplan_meier(missed), 10) == restricted_mean(kaplan_meier(missed), 10.0)
    assert restricted_mean(kaplan_meier(missed), 10).value == 10
    assert restricted_mean(kaplan_meier(nothing), 10).value is None
    assert mean_difference(kaplan_meier(missed), kaplan_meier(missed), 10).hi == 0
    assert restricted_mean(kaplan_meier(Times.of([4], [0])), 4).lo is None
    assert Times.of([1, math.nan, math.inf], [0, 0, 1]).n == 1
