"""Adjusted p values, Dunnett's comparisons with a control, the set that may be best; G11, scipy and statsmodels."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from expkit.analysis.best import best_set
from expkit.analysis.intervals import pooled_error
from expkit.analysis.multiplicity import benjamini_hochberg, benjamini_yekutieli, bonferroni, holm
from expkit.analysis.simultaneous import EQUAL, dunnett_p, dunnett_quantile, largest_of
from expkit.errors import UsageError

P = [.0001, .0004, .0019, .0095, .0201, .0278, .0298, .0344, .0459, .3240, .4262, .5719, .6528, .7590, 1]  # fmt: skip
"""Benjamini and Hochberg's example."""
CONTROL = np.array([7.40, 8.50, 7.20, 8.24, 9.84, 8.32])
DRUGS = np.array([9.76, 8.80, 7.68, 9.36]), np.array([12.80, 9.68, 12.16, 9.20, 10.55])


def test_adjusted_p_values() -> None:
    assert benjamini_hochberg(P) == pytest.approx(
        [.0015, .003, .0095, .035625, .0603, .063857, .063857, .0645, .0765, .486, .581182, .714875, .753231, .813214,
         1], abs=5e-7)  # fmt: skip
    assert holm(P)[:9] == pytest.approx([.0015, .0056, .0247, .114, .2211, .278, .278, .278, .3213])  # fmt: skip
    assert holm(P)[9:].tolist() == [1] * 6
    found = [
        int((adjusted(P) < 0.05).sum()) for adjusted in (bonferroni, holm, benjamini_hochberg, benjamini_yekutieli)
    ]
    assert found == [3, 3, 4, 3]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
@settings(max_examples=15)
def test_they_are_those_of_statsmodels(p: list[float]) -> None:
    for own, name in ((bonferroni, "bonferroni"), (holm, "holm"), (benjamini_hochberg, "fdr_bh"),
                      (benjamini_yekutieli, "fdr_by")):  # fmt: skip
        assert own(p) == pytest.approx(multipletests(p, method=name)[1], abs=1e-12)
    assert benjamini_hochberg(p) == pytest.approx(scipy.stats.false_discovery_control(p), abs=1e-12)


def test_a_test_that_could_not_be_made_counts_for_nothing() -> None:
    assert holm([0.01, math.nan, 0.04]) == pytest.approx([0.02, math.nan, 0.04], nan_ok=True)
    assert benjamini_hochberg([]).tolist() == []
    with pytest.raises(UsageError, match=r"got 1\.2"):
        holm([0.1, 1.2])


def test_dunnett_on_the_example_of_scipy() -> None:
    """G11: t .857032, 3.693752; p .6201, .0059; intervals (-1.257, 2.557), (.839, 4.417), by Monte Carlo there."""
    groups = (CONTROL, *DRUGS)
    df = sum(len(g) - 1 for g in groups)
    s = math.sqrt(sum(((g - g.mean()) ** 2).sum() for g in groups) / df)
    lambdas = [[math.sqrt(len(g) / (len(g) + len(CONTROL))) for g in DRUGS]]
    errors = [s * math.sqrt(1 / len(g) + 1 / len(CONTROL)) for g in DRUGS]
    apart = [g.mean() - CONTROL.mean() for g in DRUGS]
    t = np.array(apart) / errors
    assert t == pytest.approx([0.857032, 3.693752], abs=5e-7)
    assert dunnett_p(t, df, lambdas) == pytest.approx([0.6201, 0.0059], abs=1.5e-4)
    d = dunnett_quantile(0.95, df, lambdas)
    ends = [end for a, e in zip(apart, errors, strict=True) for end in (a - d * e, a + d * e)]
    assert ends == pytest.approx([-1.257, 2.557, 0.839, 4.417], abs=2e-3)


@pytest.mark.parametrize(
    ("m", "df", "one", "two"),
    [(1, 10, 1.81, 2.23), (3, 10, 2.34, 2.76), (9, 20, 2.60, 2.95)],
)
def test_quantiles_of_dunnetts_tables(m: int, df: float, one: float, two: float) -> None:
    """Dunnett (1955, 1964), 5 % tables."""
    assert dunnett_quantile(0.95, df, [[EQUAL] * m], two_sided=False) == pytest.approx(one, abs=0.006)
    assert dunnett_quantile(0.95, df, [[EQUAL] * m]) == pytest.approx(two, abs=0.016)


def test_dunnett_of_one_arm_is_students_t_and_of_independent_ones_sidaks() -> None:
    assert dunnett_quantile(0.95, 7, [[EQUAL]]) == pytest.approx(scipy.stats.t.ppf(0.975, 7), abs=1e-7)
    assert dunnett_p([1.3], 3, [[EQUAL]]) == pytest.approx(2 * scipy.stats.t.sf(1.3, 3), abs=1e-9)
    many = dunnett_quantile(0.95, 1e7, [[EQUAL], [EQUAL]])
    assert many == pytest.approx(scipy.stats.norm.ppf((1 + 0.95**0.5) / 2), abs=1e-5)


def test_a_thousand_arms_have_a_quantile() -> None:
    d = dunnett_quantile(0.95, 9_000, [[EQUAL] * 1023])
    assert d == pytest.approx(3.777, abs=0.01)  # of 20,000 simulated experiments; Bonferroni would be 4.07
    assert dunnett_p([d, 0.0], 9_000, [[EQUAL] * 1023]) == pytest.approx([0.05, 1.0], abs=1e-6)


def test_what_the_best_of_equal_arms_gains_by_chance() -> None:
    assert [largest_of(m) for m in (1, 8, 16, 64, 256)] == pytest.approx([0, 1.42, 1.77, 2.34, 2.83], abs=6e-3)
    rng = np.random.default_rng(0)
    assert largest_of(16) == pytest.approx(rng.normal(size=(200_000, 16)).max(axis=1).mean(), abs=0.01)


def test_the_set_that_may_be_best_by_hsu() -> None:
    rng = np.random.default_rng(4)
    table = np.array([0.0, 0.20, 0.21, 0.05, -0.3])[:, None] + rng.normal(0, 0.02, size=(5, 5)) + rng.normal(size=5)
    error = pooled_error(table)
    assert error is not None
    found = best_set(table, error=error)
    assert found is not None
    assert (found.tied, found.method, found.n) == ((1, 2), "Hsu, pooled t", 5)
    d = dunnett_quantile(0.95, error.df, [[EQUAL] * 4], two_sided=False)
    means = np.sort(table.mean(axis=1))[::-1]
    assert means[1] > means[0] - d * error.sd * math.sqrt(2 / 5) > means[2]
    assert found.shrunk is not None and found.luck is not None
    assert found.shrunk < found.value
    assert found.luck == pytest.approx(error.sd / math.sqrt(5) * largest_of(5))


def test_without_one_error_pairs_decide_and_holes_are_borne() -> None:
    rng = np.random.default_rng(6)
    table = np.array([0.0, 1.0, 1.001])[:, None] + rng.normal(0, 0.01, size=(3, 6))
    table[0, 2] = math.nan
    found = best_set(table)
    assert found is not None
    assert (found.tied, found.method, found.shrunk) == ((1, 2), "paired t, Bonferroni", None)
    assert best_set(np.full((3, 2), math.nan)) is None
    equal = best_set(np.zeros((4, 3)))
    assert equal is not None
    assert (equal.tied, equal.luck) == ((0, 1, 2, 3), 0.0)


@pytest.mark.parametrize("arms", [4, 12])
def test_the_true_best_is_in_the_set_as_often_as_it_says(arms: int) -> None:
    rng = np.random.default_rng(arms)
    means, kept = np.linspace(0, 0.02, arms), 0
    for _ in range(300):
        table = means[:, None] + rng.normal(0, 0.02, size=(arms, 5))
        found = best_set(table, error=pooled_error(table))
        kept += found is not None and arms - 1 in found.tied
    assert kept >= 0.93 * 300
