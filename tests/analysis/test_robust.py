"""Sign flips, Hodges-Lehmann and the ratio of medians: G6 of the definition sheet, scipy, and brute force."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from expkit.analysis.robust import (
    LEAST_BOOTSTRAP,
    hodges_lehmann,
    least_sign_flip_p,
    ratio_of_medians,
    sign_flip_p,
    wilcoxon_rank,
)

BASELINE, TREATED = np.array([102.0, 98, 110, 105, 95]), np.array([88.0, 86, 93, 92, 83])
logs = st.lists(st.floats(-2, 2), min_size=1, max_size=10)


def test_the_worked_example() -> None:
    d = np.log(BASELINE / TREATED)
    assert sign_flip_p(d) == 0.0625
    assert least_sign_flip_p(5) == 0.0625
    assert ratio_of_medians(BASELINE, TREATED, np.random.default_rng(0)).value == pytest.approx(1.159091, abs=5e-7)
    assert float(np.mean(BASELINE / TREATED)) == pytest.approx(1.153461, abs=5e-7)  # what nobody should print
    walsh = [(a + b) / 2 for a, b in itertools.combinations_with_replacement(d, 2)]
    assert hodges_lehmann(d).value == pytest.approx(math.exp(np.median(walsh)))


@given(logs)
def test_sign_flip_counts_every_vector(values: list[float]) -> None:
    d = np.array(values)
    signs = np.array(list(itertools.product([1, -1], repeat=len(d))))
    every = np.mean(np.abs(signs @ d) >= abs(d.sum()) - 1e-12 * max(1.0, np.abs(d).sum()))
    assert sign_flip_p(d) == pytest.approx(float(every), abs=1e-15)


def test_sign_flip_is_scipy_s_permutation_test() -> None:
    d = np.random.default_rng(1).normal(0.3, 1, 9)
    asked = scipy.stats.permutation_test((d,), np.mean, permutation_type="samples", n_resamples=2**9)
    assert sign_flip_p(d) == pytest.approx(asked.pvalue)


def test_sign_flip_at_its_limits() -> None:
    assert sign_flip_p(np.ones(30)) == 2 / 2**30
    assert sign_flip_p(np.ones(31)) is None
    assert sign_flip_p([]) is None
    assert sign_flip_p([0.0, 0.0]) == 1
    assert (least_sign_flip_p(0), least_sign_flip_p(1), least_sign_flip_p(6)) == (None, 1, 2 / 64)


@pytest.mark.parametrize("n", [6, 7, 10, 15])
def test_the_wilcoxon_interval_is_where_scipy_s_exact_test_does_not_reject(n: int) -> None:
    d = np.random.default_rng(n).normal(0.1, 1, n)
    found = hodges_lehmann(d)
    assert found.lo is not None and found.hi is not None and found.value is not None

    def p(centre: float) -> float:
        return float(scipy.stats.wilcoxon(d - centre, method="exact").pvalue)

    lo, hi, eps = math.log(found.lo), math.log(found.hi), 1e-9
    assert min(p(lo + eps), p(hi - eps)) > 0.05
    assert max(p(lo - eps), p(hi + eps)) <= 0.05
    assert found.lo < found.value < found.hi


def test_no_interval_where_the_level_cannot_be_attained() -> None:
    assert hodges_lehmann([0.1] * 5).lo is None
    assert hodges_lehmann(np.arange(5.0), 0.90).lo is not None
    assert [wilcoxon_rank(n, 0.95) for n in (5, 6, 7, 8, 9, 10)] == [0, 1, 3, 4, 6, 9]  # tables of critical values + 1
    assert hodges_lehmann([]).value is None
    assert (hodges_lehmann([0.5]).value, hodges_lehmann([0.5]).n) == (pytest.approx(math.exp(0.5)), 1)


@given(logs)
def test_turning_the_arms_round_inverts_hodges_lehmann(values: list[float]) -> None:
    there, back = hodges_lehmann(values), hodges_lehmann([-v for v in values])
    assert (there.value or 0) * (back.value or 0) == pytest.approx(1)
    if there.lo is not None and back.hi is not None:
        assert there.lo * back.hi == pytest.approx(1)


def test_one_wild_pair_moves_the_mean_and_not_hodges_lehmann() -> None:
    d = [0.10, 0.11, 0.09, 0.12, 0.10, 0.08, 3.0]
    assert math.log(hodges_lehmann(d).value or 0) < 0.12
    assert np.mean(d) > 0.5


@pytest.mark.parametrize("n", [1, 3, 10, LEAST_BOOTSTRAP - 1])
def test_no_bootstrap_interval_of_a_ratio_below_n_20(n: int) -> None:
    rng = np.random.default_rng(0)
    found = ratio_of_medians(rng.uniform(1, 2, n), rng.uniform(1, 2, n), rng)
    assert (found.n, found.lo, found.hi, found.method) == (n, None, None, "no bootstrap below n = 20")


def test_the_bootstrap_from_n_20_on_is_near_scipy_s_and_repeats_itself() -> None:
    rng = np.random.default_rng(5)
    base, arm = rng.lognormal(0.2, 0.1, 30), rng.lognormal(0, 0.1, 30)
    found = ratio_of_medians(base, arm, np.random.default_rng(0))
    assert found == ratio_of_medians(base, arm, np.random.default_rng(0))
    asked = scipy.stats.bootstrap(
        (base, arm), lambda a, b, axis: np.median(a, axis=axis) / np.median(b, axis=axis), paired=True,
        method="percentile", n_resamples=4000, rng=np.random.default_rng(1), vectorized=True,
    ).confidence_interval  # fmt: skip
    assert (found.lo, found.hi) == pytest.approx((asked.low, asked.high), abs=0.02)


def test_a_pair_without_two_times_is_left_out() -> None:
    rng = np.random.default_rng(0)
    assert ratio_of_medians([2, math.nan, 4, 0], [1, 1, math.inf, 1], rng).n == 1
    assert ratio_of_medians([], [], rng).value is None
