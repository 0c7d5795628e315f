"""Ticks are round, few and inside; scales have room for all they show."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from expkit.report.vega import measure, padded, ticks


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.93, 1.26, [1.0, 1.1, 1.2]),
        (0.0, 1.0, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (-0.024, 0.011, [-0.02, -0.01, 0.0, 0.01]),
        (3.0, 3.0, [3.0]),
    ],
)
def test_ticks(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high) == expected


@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e6))
def test_ticks_are_few_and_inside(low: float, width: float) -> None:
    found = ticks(low, low + width)
    assert len(found) <= 6
    assert all(low - 1e-6 * width <= t <= low + width * (1 + 1e-6) for t in found)


def test_range_has_room_even_for_one_value() -> None:
    assert padded([2.0]) == (1.9, 2.1)
    assert padded([0.0]) == (-1.0, 1.0)
    assert padded([]) == (-0.06, 1.06)


def test_ratios_stand_on_a_log_scale_unless_one_is_not_positive() -> None:
    assert measure("speedup", [0.5, 2.0], log=True)["scale"]["type"] == "log"
    assert "type" not in measure("difference", [-0.5, 2.0], log=True)["scale"]
