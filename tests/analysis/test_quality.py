"""Quality differences, against the losses of worked example G7 and the readings of the margin."""

from __future__ import annotations

import math

import pytest

from expkit.analysis.model import Interval
from expkit.analysis.quality import quality_difference, reading
from expkit.errors import UsageError


def test_more_is_better_whatever_the_mode() -> None:
    up = quality_difference([0.80, 0.82, 0.81], [0.83, 0.84, 0.85])
    down = quality_difference([-0.80, -0.82, -0.81], [-0.83, -0.84, -0.85], mode="min")
    assert up.value == pytest.approx(0.03)
    assert (up.value, up.lo, up.hi) == pytest.approx((down.value, down.lo, down.hi))
    assert up.level == 0.90
    half = 2.919986 * 0.01 / math.sqrt(3)
    assert up.lo == pytest.approx(0.03 - half, abs=1e-7)


def test_pairs_that_are_not_finite_are_dropped() -> None:
    assert quality_difference([1.0, math.nan, 2.0], [1.0, 1.0, math.inf]).n == 1
    assert quality_difference([], []).value is None
    with pytest.raises(UsageError, match="one length"):
        quality_difference([1.0], [])


@pytest.mark.parametrize(
    ("lo", "hi", "expected"),
    [
        (0.001, 0.02, "better"),
        (0.0, 0.002, "equal"),
        (-0.004, 0.004, "equal"),
        (-0.004, 0.02, "not worse"),
        (-0.004, -0.001, "equal"),
        (-0.005, 0.001, "undecided"),
        (-0.02, -0.001, "worse"),
        (None, None, "undecided"),
    ],
)
def test_the_first_reading_that_fits_is_taken(lo: float | None, hi: float | None, expected: str) -> None:
    assert reading(Interval(0.0, lo, hi, 5, 0.9), 0.005) == expected
