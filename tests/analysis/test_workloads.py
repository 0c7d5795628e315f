"""Several workloads: geometric means both ways, profiles, whole sweeps as workloads; G9 and worked examples."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from expkit.analysis.across import across
from expkit.analysis.model import Summary
from expkit.analysis.summary import summarise
from expkit.analysis.workloads import (
    LogSpeedup,
    baseline_relative_score,
    best_relative_score,
    first_place,
    geometric_mean,
    profile,
)
from expkit.errors import UsageError
from expkit.store.query import connect
from tests.store.synthetic import Method, make_store

SHAMPOO = [0.6996, 0.6507, 1.0, 0.4714, 0.8663, 0.9611, 0.4369, 0.9385]
"""T / T_0 on AlgoPerf's eight base workloads, misses at the budget and a second."""


def test_the_winner_of_algoperf_over_its_workloads() -> None:
    """G9: ratio .721296, speedup 1.386394; the arithmetic mean of the same speedups would be 1.45457."""
    found = geometric_mean([LogSpeedup(-math.log(r), 0.02, 4) for r in SHAMPOO])
    assert found.random.value == pytest.approx(1.386394, abs=5e-5)
    assert 1 / (found.random.value or 1) == pytest.approx(0.721296, abs=5e-5)
    assert np.mean(1 / np.array(SHAMPOO)) == pytest.approx(1.45457, abs=5e-5)
    assert found.fixed.value == found.random.value
    assert (found.random.method, found.fixed.method) == ("t over workloads", "t over seeds")
    assert (found.random.lo or 0) < (found.fixed.lo or 0)  # other workloads are less sure than these


def test_the_interval_of_fixed_workloads_is_satterthwaites() -> None:
    found = geometric_mean([LogSpeedup(0.1, 0.03, 4), LogSpeedup(0.3, 0.04, 9)])
    df = 0.0025**2 / (0.0009**2 / 4 + 0.0016**2 / 9)
    from scipy.stats import t

    assert math.log(found.fixed.hi or 1) - 0.2 == pytest.approx(t.ppf(0.975, df) * 0.05 / 2)


def test_one_workload_and_none() -> None:
    one = geometric_mean([LogSpeedup(0.1, 0.03, 4)])
    assert (one.random.lo, one.fixed.lo is None) == (None, False)
    assert geometric_mean([]).random.value is None
    assert geometric_mean([LogSpeedup(0.1, math.inf, 0), LogSpeedup(0.2, 0.1, 3)]).fixed.lo is None


def test_profiles_in_closed_form_are_their_integral() -> None:
    times = np.array([[1.0, 2.0, math.inf], [2.0, 1.0, 3.0], [5.0, 1.5, math.inf]])
    ratios = times / np.array([1.0, 1.0, 3.0])
    taus = np.linspace(1, 4, 30_001)
    integral = np.trapezoid([profile(ratios, tau) for tau in taus], taus, axis=0) / 3
    assert best_relative_score(times) == pytest.approx(integral, abs=1e-4)
    logs = np.linspace(-math.log(4), math.log(4), 30_001)
    on_logs = np.trapezoid([profile(ratios, tau) for tau in np.exp(logs)], logs, axis=0) / (2 * math.log(4))
    assert baseline_relative_score(ratios) == pytest.approx(on_logs, abs=1e-4)


def test_where_nobody_came_nobody_scores() -> None:
    assert best_relative_score([[math.inf, 1.0], [math.nan, 2.0]]) == pytest.approx([0.5, 0.5 * 2 / 3])
    assert baseline_relative_score([[1.0, 1.0], [math.inf, 0.1], [8.0, 2.0]]) == pytest.approx([0.5, 0.5, 0.125])
    with pytest.raises(UsageError, match="got 0"):
        baseline_relative_score([[0.0]])
    with pytest.raises(UsageError, match="ends above 1"):
        baseline_relative_score([[1.0]], most=1.0)


def test_who_else_is_in_the_set_changes_a_profile_that_is_relative_to_the_best_and_no_other() -> None:
    """A10: removing a third arm makes the first two change places."""
    times = np.array([[1.0, 1.0, 3.0], [1.6, 1.6, 1.6], [9.0, 9.0, 0.9]])
    first, second, _ = best_relative_score(times)
    alone = best_relative_score(times[:2])
    assert (first > second) != (alone[0] > alone[1])
    assert baseline_relative_score(times)[:2].tolist() == baseline_relative_score(times[:2]).tolist()


@given(arrays(float, (3, 4), elements=st.floats(0.01, 100)), st.floats(0.01, 100))
def test_scaling_all_times_leaves_profiles_alone(times: np.ndarray, factor: float) -> None:
    assert best_relative_score(times * factor) == pytest.approx(best_relative_score(times), abs=1e-9)


def test_first_place_of_equal_and_of_sure_arms() -> None:
    rng = np.random.default_rng(0)
    assert first_place(np.zeros((2, 3)), np.full((2, 3), 0.1), rng) == pytest.approx([0.5, 0.5], abs=0.03)
    assert first_place([[0.5], [0.1]], [[0.01], [0.01]], rng).tolist() == [1.0, 0.0]
    assert first_place([[0.5], [0.5]], [[0.0], [0.0]], rng).tolist() == [0.5, 0.5]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("across")
    options = {"evaluations": 4, "seeds": range(17, 20)}  # lengths differ, so that trials do
    make_store(made, {"ema": Method(1.02), "resize": Method(0.8)}, sweep="images", num_batches=16, **options)  # type: ignore[arg-type]
    make_store(
        made, {"resize": Method(0.9), "mixup": Method()}, sweep="words", num_batches=8, seed=1, seconds=20, **options
    )  # type: ignore[arg-type]
    return made


@pytest.fixture(scope="module")
def summaries(root: Path) -> list[Summary]:
    with connect(root) as con:
        return [summarise(con, "images"), summarise(con, "words")]


def test_arms_that_both_sweeps_have(summaries: list[Summary]) -> None:
    found = across(summaries)
    [resize] = found.arms
    speedups = [next(a.speedup.value or 0 for a in s.arms if a.label == "resize") for s in summaries]
    assert resize.random.value == pytest.approx(math.sqrt(math.prod(speedups)))
    assert resize.random.value == pytest.approx(math.sqrt(1 / 0.72), abs=0.02)
    assert (resize.first, len(resize.speedups), resize.random.n) == (1.0, 2, 2)
    assert 0.5 < resize.baseline_score < 1
    assert set(found.left_out) == {"ema", "ema+resize", "mixup", "mixup+resize"}
    assert found.sentence == "1 arm in all of images and words; 2 workloads, and no claim beyond their like."


def test_sweeps_that_cannot_be_put_together(summaries: list[Summary]) -> None:
    with pytest.raises(UsageError, match="two sweeps or more"):
        across(summaries[:1])
    with pytest.raises(UsageError, match="one clock"):
        across([summaries[0], dataclasses.replace(summaries[1], clock="cpu_s")])
    none = across([summaries[0], dataclasses.replace(summaries[1], arms=())])
    assert (none.arms, none.sentence) == ((), "No arm has pairs in all of images and words.")
