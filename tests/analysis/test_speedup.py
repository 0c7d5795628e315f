"""Speedups against the worked examples G6 and G7 of the definition sheet, and against scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from expkit.analysis.intervals import PooledError, bartlett_p, pooled_error, pooling, t_quantile
from expkit.analysis.speedup import correlation, geometric_mean, paired, ratio_of_means, relative_times, welch
from expkit.errors import UsageError

BASELINE, TREATED = [102, 98, 110, 105, 95], [88, 86, 93, 92, 83]
A = [80.437, 80.341, 80.632, 81.143, 80.434, 80.632, 80.614, 80.645, 80.561, 80.675]
B = [77.933, 77.446, 77.299, 77.194, 77.401, 77.431, 77.149, 77.247, 77.336, 77.186, 77.318, 77.224, 77.225]


def test_paired_of_the_worked_example() -> None:
    found = paired(BASELINE, TREATED)
    assert found.ratio.value == pytest.approx(1.153348, abs=5e-7)
    assert (found.ratio.lo, found.ratio.hi) == pytest.approx((1.131217, 1.175912), abs=5e-7)
    assert (found.sd, found.df, found.ratio.n) == (pytest.approx(0.015604, abs=5e-7), 4, 5)
    assert found.rho == pytest.approx(0.974327, abs=5e-7)


def test_fieller_of_the_worked_example() -> None:
    found = ratio_of_means(BASELINE, TREATED)
    assert found.value == pytest.approx(1.153846, abs=5e-7)
    assert (found.lo, found.hi) == pytest.approx((1.129859, 1.176334), abs=5e-7)
    arm = np.array(TREATED, dtype=float)
    g = t_quantile(0.95, 4) ** 2 * arm.var(ddof=1) / 5 / arm.mean() ** 2
    assert g == pytest.approx(0.003413, abs=5e-7)  # far below 1, so the set is bounded


def test_welch_of_real_unpaired_times() -> None:
    found = welch(A, B)
    assert found.ratio.value == pytest.approx(1.042331, abs=5e-7)
    assert found.df == pytest.approx(19.2092, abs=5e-5)
    assert (found.ratio.lo, found.ratio.hi) == pytest.approx((1.039894, 1.044774), abs=5e-7)


def test_unpaired_fieller_of_real_times() -> None:
    found = ratio_of_means(A, B, pair=False)
    assert found.value == pytest.approx(1.042331, abs=5e-7)
    assert (found.lo, found.hi) == pytest.approx((1.039888, 1.044779), abs=5e-7)


def test_fieller_is_unbounded_where_the_arm_s_mean_may_be_zero() -> None:
    found = ratio_of_means([1.0, 2.0], [0.1, 9.0])
    assert (found.lo, found.hi) == (None, None)
    assert "unbounded" in found.method


def test_one_pair_has_a_ratio_and_no_interval_and_none_has_nothing() -> None:
    assert paired([2.0], [1.0]).ratio.value == pytest.approx(2)
    assert paired([2.0], [1.0]).ratio.lo is None
    for found in (paired([], []), welch([], [1.0])):
        assert (found.ratio.value, found.ratio.n) == (None, 0)
    assert welch([2.0], [1.0, 1.0]).ratio.lo is None
    assert ratio_of_means([], []).value is None
    assert ratio_of_means([2.0], [1.0]).lo is None


def test_a_pair_with_a_missing_time_is_dropped() -> None:
    assert paired([1.0, 2.0, 4.0], [1.0, math.nan, 2.0]).ratio.n == 2


def test_identical_times_have_an_interval_of_no_width() -> None:
    found = paired([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    assert (found.ratio.lo, found.ratio.value, found.ratio.hi) == (1, 1, 1)
    assert welch([1.0, 1.0], [1.0, 1.0]).ratio.hi == 1


def test_times_that_are_not_positive_or_do_not_pair_say_so() -> None:
    with pytest.raises(UsageError, match="positive, but got 0"):
        paired([1.0, 0.0], [1.0, 1.0])
    with pytest.raises(UsageError, match="one length"):
        paired([1.0], [1.0, 1.0])


def test_correlation_needs_three_pairs_and_some_variation() -> None:
    assert correlation([1, 2], [1, 2]) is None
    assert correlation([1, 1, 1], [1, 2, 3]) is None
    assert correlation([1, 2, 3], [2, 4, 6]) == pytest.approx(1)


def test_the_geometric_mean_skips_what_is_no_time() -> None:
    assert geometric_mean([1, 4, math.nan]) == pytest.approx(2)
    assert geometric_mean([]) is None


def test_pooling_uses_all_arms_and_stops_where_spreads_differ() -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(8, 5)) * 0.04 + rng.normal(size=5)
    error = pooled_error(table)
    assert error is not None
    assert error.df == 28
    found = paired(np.exp(table[0]), np.exp(table[1]), error=error)
    half = scipy.stats.t.ppf(0.975, 28) * error.sd * math.sqrt(2 / 5)
    assert math.log(found.ratio.hi or 0) == pytest.approx((table[0] - table[1]).mean() + half)
    assert found.ratio.method == "pooled t"
    table[3] *= 40
    assert pooled_error(table) is None


def test_pooling_says_what_it_did_and_why() -> None:
    table = np.random.default_rng(0).normal(size=(8, 5)) * 0.04
    assert pooling(table).sentence.startswith("One error is pooled over all arms: SD 3.2 % of a time, 28 degrees")
    uneven = table * np.where(np.arange(8) == 3, 40, 1)[:, None]
    found = pooling(uneven)
    assert (found.used, found.df) == (False, 28)
    assert (found.homogeneity_p or 0) < 0.01
    assert "the arms' spreads differ (Bartlett's test" in found.sentence
    table[0, 0] = math.nan
    assert pooling(table).sentence == "Each arm has an error of its own: 1 of 40 pairs is missing."
    assert "fewer than two arms" in pooling(np.ones((1, 5))).sentence
    assert "no parameter point has two arms" in pooling(np.ones((2, 5)), ["lr=1", "lr=2"]).sentence


def test_bartlett_s_test_is_scipy_s() -> None:
    residuals = np.random.default_rng(3).normal(size=(6, 5)) * np.arange(1, 7)[:, None]
    assert bartlett_p(residuals) == pytest.approx(scipy.stats.bartlett(*residuals).pvalue)
    assert bartlett_p(np.zeros((3, 4))) == 1
    assert bartlett_p(np.array([[1.0, 2.0, 4.0], [0.0, 0.0, 0.0], [1.0, 0.0, 1.0]])) == 0


def test_blocks_at_several_parameter_points_are_centred_each() -> None:
    rng = np.random.default_rng(4)
    one, two = rng.normal(size=(4, 5)), rng.normal(size=(3, 5))
    shifted = np.concatenate((one, two + rng.normal(size=5) * 10))  # blocks of the second point are far apart
    error = pooled_error(shifted, ["lr=1"] * 4 + ["lr=2"] * 3)
    apart = [pooled_error(one), pooled_error(two)]
    assert error is not None and apart[0] is not None and apart[1] is not None
    assert error.df == 20
    assert error.sd**2 * 20 == pytest.approx(apart[0].sd ** 2 * 12 + apart[1].sd ** 2 * 8)


def test_nothing_is_pooled_over_a_hole_or_from_one_seed() -> None:
    table = np.ones((3, 3))
    assert pooled_error(table) is not None
    assert pooled_error(np.where(np.eye(3) == 1, math.nan, table)) is None
    assert pooled_error(np.ones((3, 1))) is None
    assert pooled_error(np.array([[1.0, 2.0], [1.0, 2.1]])) is not None


times = st.lists(st.tuples(st.floats(0.01, 1e4), st.floats(0.01, 1e4)), min_size=2, max_size=12)


@given(times)
def test_swapping_the_arms_inverts_the_speedup_and_its_interval(pairs: list[tuple[float, float]]) -> None:
    a, b = zip(*pairs, strict=True)
    there, back = paired(a, b).ratio, paired(b, a).ratio
    assert (there.value or 0) * (back.value or 0) == pytest.approx(1)
    assert (there.lo or 0) * (back.hi or 0) == pytest.approx(1)


@given(times, st.floats(1e-3, 1e3))
def test_the_unit_of_time_does_not_matter(pairs: list[tuple[float, float]], scale: float) -> None:
    a, b = (np.array(side) for side in zip(*pairs, strict=True))
    assert paired(a * scale, b * scale).ratio.value == pytest.approx(paired(a, b).ratio.value)


@given(st.lists(st.floats(-2, 2), min_size=2, max_size=12).filter(lambda d: np.std(d) > 1e-6))
def test_the_interval_contains_1_iff_p_is_at_least_5_percent(d: list[float]) -> None:
    found = paired(np.exp(d), np.ones(len(d)))
    assert found.p == pytest.approx(scipy.stats.ttest_1samp(d, 0).pvalue, rel=1e-6, abs=1e-12)
    if found.p is not None and abs(found.p - 0.05) > 1e-9:
        assert ((found.ratio.lo or 0) <= 1 <= (found.ratio.hi or 0)) == (found.p >= 0.05)


def test_p_of_welch_is_scipy_s_and_no_spread_is_certain() -> None:
    ours = welch(A, B).p
    assert ours == pytest.approx(scipy.stats.ttest_ind(np.log(A), np.log(B), equal_var=False).pvalue)
    p_pooled = paired(BASELINE, TREATED, error=PooledError(0.01, 28, 1.0)).p
    assert p_pooled == pytest.approx(2 * scipy.stats.t.sf(math.log(1.153348) / (0.01 * math.sqrt(2 / 5)), 28), rel=1e-3)
    assert welch([2.0, 2.0], [1.0, 1.0]).p == 0
    assert paired([1.0, 2.0], [1.0, 2.0]).p == 1


def test_fieller_s_set_is_where_the_t_test_of_a_minus_rb_does_not_reject() -> None:
    """The oracle is the definition: R is in the set iff |mean(T_0 - R T_c)| / se <= t."""
    found = ratio_of_means(BASELINE, TREATED)
    for end in (found.lo, found.hi):
        p = scipy.stats.ttest_1samp(np.array(BASELINE) - (end or 0) * np.array(TREATED), 0).pvalue
        assert p == pytest.approx(0.05)


def test_a_ratio_of_positive_times_has_no_end_below_0() -> None:
    assert ratio_of_means([1.0, 30.0], [9.0, 9.5]).lo == 0


def test_times_relative_to_the_fastest() -> None:
    """G17, hyperfine's test: 3, 2, 5 -> 1.5, 1, 2.5."""
    assert relative_times([3.0, 2.0, 5.0]) == (1.5, 1.0, 2.5)
    assert relative_times([3.0, None, 2.0]) == (1.5, None, 1.0)
    assert relative_times([None]) == (None,)
