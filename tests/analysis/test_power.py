"""Power, detectable speedups and seeds needed against the tables of section D; what tuning and claims cost."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from statsmodels.stats.power import TTestIndPower, TTestPower

from expkit.analysis import cost
from expkit.analysis.expected_best import curve, expected_best
from expkit.analysis.power import detectable, power, seeds_needed
from expkit.errors import UsageError

NOISE = (0.01, 0.02, 0.04, 0.09, 0.15, 0.22)
SEEDS = {
    1.02: "6/5 18/11 66/34 326/165 902/453 1939/971",
    1.05: "3/3 4/4 12/8 55/29 150/77 321/162",
    1.10: "2/3 3/3 4/4 16/10 40/22 85/44",
    1.20: "2/2 2/3 3/3 5/5 12/8 24/14",
    1.50: "2/2 2/2 2/3 3/3 4/4 6/5",
}
"""Speedup -> unpaired/paired with rho = 0.5 for each noise. Two pairs where this has three (1.10 at 0.01, 1.50 at 0.04)
are in the definition sheet; their exact power is 71 and 74 %, by simulation too."""


@pytest.mark.parametrize("speedup", SEEDS)
def test_seeds_needed(speedup: float) -> None:
    found = [f"{seeds_needed(speedup, sd)}/{seeds_needed(speedup, sd, rho=0.5)}" for sd in NOISE]
    assert " ".join(found) == SEEDS[speedup]
    assert seeds_needed(1 / speedup, 0.09) == seeds_needed(speedup, 0.09)


def test_seeds_that_nobody_has() -> None:
    assert seeds_needed(1.0, 0.04) is None
    assert seeds_needed(1.0001, 5.0) is None
    assert seeds_needed(1.1, 0.04, rho=1.0) == 2
    with pytest.raises(UsageError, match="got -1"):
        seeds_needed(-1, 0.1)


def test_smallest_detectable_main_effect() -> None:
    """Two-sided 5 %, power 80 %, sd 0.04, without blocks: 2^k (r - 1) degrees of freedom."""
    expected = {3: [1.066, 1.050, 1.037], 4: [1.043, 1.034, 1.026], 5: [1.029, 1.023, 1.018], 6: [1.020, 1.016, 1.013],
                8: [1.010, 1.008, 1.006]}  # fmt: skip
    for k, row in expected.items():
        found = [detectable(2 * 0.04 / math.sqrt(2**k * r), 2**k * (r - 1)) for r in (2, 3, 5)]
        assert found == pytest.approx(row, abs=5.5e-4)
    assert detectable(0.0, 5) == 1.0
    with pytest.raises(UsageError, match="degrees of freedom"):
        detectable(0.1, 0)


@pytest.mark.parametrize(("effect", "n"), [(0.5, 10), (1.2, 4), (2.5, 12), (0.1, 40)])
def test_power_is_that_of_statsmodels(effect: float, n: int) -> None:
    paired = TTestPower().power(effect, n, 0.05)
    assert power(effect, 1 / math.sqrt(n), n - 1) == pytest.approx(paired, abs=1e-9)
    apart = TTestIndPower().power(effect, n, 0.05)
    assert power(effect, math.sqrt(2 / n), 2 * n - 2) == pytest.approx(apart, abs=1e-9)


def test_power_at_its_ends() -> None:
    assert power(0.0, 1.0, 5) == pytest.approx(0.05)
    assert power(1e6, 1.0, 5) == 1.0
    assert power(1.0, 0.0, 5) == 1.0


def test_expected_best_of_n() -> None:
    """G13."""
    values = [0.9, 0.5, 0.7, 0.6]
    assert curve(values) == pytest.approx([0.675, 0.783333, 0.85, 0.9], abs=5e-7)
    with_replacement = [expected_best(values, n, replace=True) for n in (1, 2, 3, 4)]
    assert with_replacement == pytest.approx([0.675, 0.75625, 0.801563, 0.830078], abs=5e-7)
    rng = np.random.default_rng(0)
    drawn = np.array([rng.choice(values, 2, replace=False).max() for _ in range(20_000)])
    assert expected_best(values, 2) == pytest.approx(drawn.mean(), abs=0.005)
    with pytest.raises(UsageError, match="the best of 5 of 4"):
        expected_best([*values, math.nan], 5)


def test_cost_and_energy() -> None:
    assert cost.energy_kwh([100, 100, 200], [0, 1800, 3600]) == pytest.approx(0.05 + 0.075)
    assert cost.energy_kwh([100, math.nan, 100], [0, 1, 3600]) == pytest.approx(0.1)
    assert cost.energy_kwh([100], [0]) == 0
    assert cost.modelled_kwh(7200, 300, 0.5) == pytest.approx(0.3)
    assert cost.price(7200, per_hour=2.5, kwh=3, per_kwh=0.3) == pytest.approx(5.9)
    assert cost.price_per_percent(10, 1.25) == pytest.approx(0.5)
    assert cost.price_per_percent(10, 0.9) is None
    assert (cost.runs_to_break_even(41, 10, 5), cost.runs_to_break_even(41, 5, 5)) == (9, None)
    with pytest.raises(UsageError, match="one length"):
        cost.energy_kwh([1, 2], [1])


def test_the_noncentral_t_of_scipy_agrees() -> None:
    t = scipy.stats.t.ppf(0.975, 7)
    expected = scipy.stats.nct.sf(t, 7, 3.2) + scipy.stats.nct.cdf(-t, 7, 3.2)
    assert power(3.2, 1.0, 7) == pytest.approx(expected, abs=1e-9)
