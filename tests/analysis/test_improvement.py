"""Probability of improvement against G7, G12, G15 and scipy; tests of equivalence against statsmodels and G7."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint
from statsmodels.stats.weightstats import ttost_paired

from expkit.analysis.improvement import noether, paired, unpaired
from expkit.analysis.quality import equivalence_p, quality_difference, reading
from expkit.errors import UsageError

RECORD_A = [80.437, 80.341, 80.632, 81.143, 80.434, 80.632, 80.614, 80.645, 80.561, 80.675]
RECORD_B = [77.933, 77.446, 77.299, 77.194, 77.401, 77.431, 77.149, 77.247, 77.336, 77.186, 77.318, 77.224, 77.225]


def test_two_sets_of_records() -> None:
    """G7: every B is faster; U = 130, p = 1.748e-6."""
    found = unpaired(RECORD_A, RECORD_B)
    assert found is not None
    assert found[0] == 1.0
    assert found[1] == pytest.approx(1.748e-6, abs=5e-10)


def test_rliables_example() -> None:
    """G12, x before y, more is better there: times turn it round. Mean over its two tasks is 1/3."""
    x, y = np.array([[1, 2], [2, 2], [1, 1], [2, 1]]), np.array([[1, 1], [2, 2], [3, 3]])
    found = [unpaired(-y[:, task], -x[:, task]) for task in (0, 1)]
    assert np.mean([one[0] for one in found if one]) == pytest.approx(1 / 3)


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=40)
def test_mann_whitney_is_scipys(n: int, m: int, seed: int, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    base, arm = rng.normal(size=n), rng.normal(size=m)
    if ties:
        base, arm = base.round(), arm.round()
    tied = bool(set(base) & set(arm))
    if np.ptp(np.concatenate((base, arm))) == 0:
        return
    oracle = scipy.stats.mannwhitneyu(base, arm, method="asymptotic" if tied else "exact")
    found = unpaired(base, arm)
    assert found is not None
    assert found[0] == pytest.approx(oracle.statistic / (n * m))
    assert found[1] == pytest.approx(oracle.pvalue, abs=1e-9)


def test_misses_come_last_and_tie_with_each_other() -> None:
    found = unpaired([10.0, math.inf], [5.0, math.inf])
    assert found is not None
    assert found[0] == (1 + 0 + 1 + 0.5) / 4
    assert unpaired([], [1.0]) is None
    equal = unpaired([math.inf] * 3, [math.inf] * 3)
    assert equal == (0.5, 1.0)


@pytest.mark.parametrize(("wins", "n"), [(0, 5), (5, 5), (3, 5), (9, 10)])
def test_the_share_of_blocks_has_the_interval_of_clopper_and_pearson(wins: int, n: int) -> None:
    found = paired([1.0] * wins + [-1.0] * (n - wins))
    lo, hi = proportion_confint(wins, n, method="beta")
    assert (found.value, found.lo, found.hi) == pytest.approx((wins / n, lo, hi))


def test_ties_make_half_and_no_interval_shorter() -> None:
    found, whole = paired([1.0, 1.0, 0.0, -1.0]), paired([1.0, 1.0, -1.0, -1.0])
    assert found.value == 2.5 / 4
    assert (found.lo, found.hi) == (whole.lo, paired([1.0, 1.0, 1.0, -1.0]).hi)
    assert paired([math.nan]).value is None


def test_noethers_sample_size() -> None:
    """G15."""
    expected = {0.6: 180.37, 0.65: 80.16, 0.7: 45.09, 0.75: 28.86, 0.8: 20.04, 0.9: 11.27}
    assert [noether(p) for p in expected] == pytest.approx(list(expected.values()), abs=5e-3)
    with pytest.raises(UsageError, match="above 1/2"):
        noether(0.5)


@given(st.integers(2, 10), st.floats(-2, 2), st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_equivalence_is_two_one_sided_tests(n: int, shift: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    q0 = rng.normal(size=n)
    qc = q0 + shift + rng.normal(size=n)
    difference = quality_difference(q0, qc)
    lower, both = equivalence_p(difference, 1.0)
    oracle, _, _ = ttost_paired(qc, q0, -1.0, 1.0)
    assert both == pytest.approx(oracle, abs=1e-9)
    assert lower is not None and both is not None
    assert (both < 0.05) == (difference.lo is not None and difference.lo > -1 and (difference.hi or 0) < 1)
    not_worse = reading(difference, 1.0) in ("better", "equal", "not worse")
    assert (lower < 0.05) == not_worse


def test_equivalence_needs_a_margin_and_pairs() -> None:
    assert equivalence_p(quality_difference([1.0], [1.0]), 0.1) == (None, None)
    assert equivalence_p(quality_difference([1.0, 2.0], [1.0, 2.0]), 0.0) == (None, None)
    assert equivalence_p(quality_difference([1.0, 2.0], [1.0, 2.0]), 0.1) == (0.0, 0.0)
