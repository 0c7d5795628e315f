"""Looking before all seeds are in: published boundaries, and what the levels for few seeds are worth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from expkit.analysis.looks import Spending, boundaries, looks, spent
from expkit.errors import UsageError

FIFTHS = [0.2, 0.4, 0.6, 0.8, 1.0]


@pytest.mark.parametrize(
    ("fractions", "spending", "published"),
    [
        (FIFTHS, "obrien_fleming", [4.8769, 3.3569, 2.6803, 2.2898, 2.0310]),  # R's ldbounds, and gsDesign's sfLDOF
        (FIFTHS, "pocock", [2.4380, 2.4268, 2.4101, 2.3966, 2.3859]),
        ([0.5, 1.0], "obrien_fleming", [2.9626, 1.9686]),
        ([0.5, 1.0], "pocock", [2.1570, 2.2010]),
        ([1.0], "pocock", [1.9600]),
    ],
)
def test_boundaries_are_those_that_are_published(
    fractions: list[float], spending: Spending, published: list[float]
) -> None:
    assert boundaries(fractions, 0.05, spending) == pytest.approx(published, abs=2e-4)  # their grid is coarser


def test_all_is_spent_at_the_end_and_half_of_it_in_each_tail() -> None:
    for alpha in (0.01, 0.05, 0.2):
        assert spent([0.3, 1.0], alpha)[-1] == pytest.approx(alpha)
        assert spent([0.3, 1.0], alpha, "pocock")[-1] == pytest.approx(alpha)
    assert spent([0.5])[0] == pytest.approx(2 * 2 * stats.norm.sf(stats.norm.isf(0.0125) / 0.5**0.5))


@pytest.mark.parametrize("spending", ["obrien_fleming", "pocock"])
def test_few_seeds_looked_at_three_times_err_as_often_as_was_said(spending: Spending) -> None:
    plan = looks((3, 5, 10), 0.05, spending)
    values = np.random.default_rng(8).standard_normal((40_000, 10))
    crossed = np.zeros(len(values), dtype=bool)
    for n, share in zip(plan.n, plan.spent, strict=True):
        p = stats.ttest_1samp(values[:, :n], 0.0, axis=1).pvalue
        crossed |= p < 1 - plan.level(n)
        assert crossed.mean() == pytest.approx(share, abs=0.0035)  # three standard errors of the last one


def test_one_look_is_a_plain_interval_and_many_seeds_are_as_if_the_spread_were_known() -> None:
    assert looks((5,)).level(5) == pytest.approx(0.95)
    few, many = looks((99, 150)).nominal, looks((100, 150)).nominal
    assert few[-1] == pytest.approx(many[-1], rel=0.02)


@pytest.mark.parametrize("n", [(), (1, 5), (5, 5), (7, 5)])
def test_looks_that_cannot_be_are_refused(n: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="looks must grow"):
        looks(n)


def test_a_look_that_was_not_planned_and_an_alpha_that_is_none_are_refused() -> None:
    with pytest.raises(UsageError, match="no look was planned at 6 pairs, but at 5"):
        looks((5,)).level(6)
    with pytest.raises(UsageError, match="alpha"):
        looks((5, 7), 1.5)
