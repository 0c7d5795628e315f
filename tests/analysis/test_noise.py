"""The A/A floor."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from expkit.analysis.noise import aa_floor


def test_eps_is_the_half_width_of_the_interval_of_the_mean_log_ratio() -> None:
    r0, r1 = [10.0, 11.0, 9.0, 10.5], [10.2, 10.7, 9.3, 10.4]
    d = np.log(r0) - np.log(r1)
    floor = aa_floor(r0, r1)
    assert floor.eps == pytest.approx(scipy.stats.t.ppf(0.975, 3) * d.std(ddof=1) / 2)
    assert floor.ratio.value == pytest.approx(math.exp(d.mean()))
    assert (floor.pairs, floor.contains_one) == (4, True)


def test_a_second_run_that_is_always_slower_shows() -> None:
    assert aa_floor([1.0, 1.0, 1.0], [1.1, 1.11, 1.09]).contains_one is False


@pytest.mark.parametrize("r0", [[], [1.0], [1.0, math.nan], [1.0, 0.0]])
def test_fewer_than_two_pairs_give_no_floor(r0: list[float]) -> None:
    floor = aa_floor(r0, [1.0, 1.0][: len(r0)])
    assert (floor.eps, floor.contains_one) == (None, None)
