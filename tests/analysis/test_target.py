"""The target and whether it was there before the data."""

from __future__ import annotations

import math

import pytest

from expkit.analysis.target import exploratory, ladder, lowest_final, slope, too_flat
from expkit.errors import UsageError


def test_the_lowest_final_is_the_worst_one_of_either_mode() -> None:
    assert lowest_final([0.84, 0.86, 0.85]) == 0.84
    assert lowest_final([0.5, 0.4, math.nan], "min") == 0.5
    with pytest.raises(UsageError, match="no pilot trial"):
        lowest_final([math.nan])


def test_the_ladder_climbs_from_the_first_evaluation() -> None:
    assert ladder([0.4, 0.6, 0.5], [0.8, 1.0, 0.9]) == (
        (0.90, pytest.approx(0.86)), (0.95, pytest.approx(0.88)), (0.99, pytest.approx(0.896)),
    )  # fmt: skip
    assert ladder([2.0], [1.0])[0] == (0.9, pytest.approx(1.1))
    assert ladder([math.nan], [1.0]) == ()
    assert ladder([], []) == ()


@pytest.mark.parametrize(
    ("set_utc", "started_utc", "hashes", "expected"),
    [
        ("2026-03-01T10:00:00Z", "2026-03-01T11:00:00Z", ["h"], False),
        ("2026-03-01T12:00:00Z", "2026-03-01T11:00:00Z", ["h"], True),
        ("2026-03-01T12:00:00+02:00", "2026-03-01T11:00:00", [], False),
        ("2026-03-01T10:00:00Z", "2026-03-01T11:00:00Z", ["other", "h"], True),
        ("2026-03-01T12:00:00Z", None, [], False),
        (None, "2026-03-01T11:00:00Z", [None], True),
        (None, "2026-03-01T11:00:00Z", ["h"], False),
    ],
)
def test_a_target_set_or_changed_after_the_first_arm_started_is_exploratory(
    set_utc: str | None, started_utc: str | None, hashes: list[str | None], expected: bool
) -> None:
    assert exploratory(set_utc, started_utc, hashes, "h") is expected


def test_the_slope_is_what_the_last_doubling_gains_and_more_is_better() -> None:
    at = [0, 1, 2, 4, 8, 16]
    assert slope(at, [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]) == pytest.approx(0.1)
    assert slope(at, [9.0, 4.0, 3.0, 2.0, 1.5, 1.25], "min") == pytest.approx(0.25)
    assert slope(at, [9.0, 4.0, 3.0, 2.0, math.nan, 1.25]) is None
    assert slope([], []) is None


def test_the_slope_at_a_goal_is_that_of_the_doubling_before_it() -> None:
    batches, quality = [1, 2, 4, 8, 16, 32], [0.1, 0.3, 0.5, 0.55, 0.6, 0.6]
    assert slope(batches, quality, goal=0.5) == pytest.approx(0.2)
    assert slope(batches, [-q for q in quality], "min", goal=-0.5) == pytest.approx(0.2)
    assert slope(batches, quality, goal=0.7) == slope(batches, quality) == pytest.approx(0.0)


def test_a_target_where_seeds_vary_as_much_as_a_doubling_gains_is_too_flat() -> None:
    assert too_flat(0.02, 0.005) == too_flat(None, 0.1) == too_flat(0.1, None) == ""
    assert "gains 0.005 per doubling of training there and its seeds vary by 0.005 (SD)" in too_flat(0.005, 0.005)
    assert "gains nothing" in too_flat(-0.1, 0.005)
