"""Numbers as text: aligned, with true minus signs, and a dash where there is none."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from expkit.analysis.model import Interval
from expkit.report.blocks import ABSENT
from expkit.report.numbers import (
    better_if,
    count,
    fixed,
    interval,
    moment,
    quality_decimals,
    ratio_cell,
    seconds,
    span,
    unique,
)
from tests.report.example_summary import example


@pytest.mark.parametrize(
    ("value", "decimals", "signed", "text"),
    [
        (1.22, 3, False, "1.220"),
        (-0.0208, 4, True, "−0.0208"),
        (0.0061, 4, True, "+0.0061"),
        (-0.00001, 4, True, "0.0000"),
        (12345.0, 1, False, "12,345.0"),
        (None, 3, False, "–"),
        (math.nan, 3, False, "–"),
        (-math.inf, 3, True, "–"),
    ],
)
def test_fixed(value: float | None, decimals: int, signed: bool, text: str) -> None:
    assert fixed(value, decimals, signed=signed) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.04134, "0.0413"),
        (0.4134, "0.413"),
        (-4.1, "−4.10"),
        (4.134, "4.13"),
        (41.34, "41.3"),
        (413.4, "413"),
        (None, "–"),
    ],
)
def test_seconds(value: float | None, text: str) -> None:
    assert seconds(value) == text


def test_interval_shows_its_ends_only_where_there_are_some() -> None:
    assert interval(Interval(1.22, 1.18, 1.26, 5), 2) == "1.22 [1.18, 1.26]"
    assert interval(Interval(1.22, None, None, 1), 2) == "1.22"
    assert interval(Interval(), 2) == "–"
    assert ratio_cell(Interval()) is ABSENT


@pytest.mark.parametrize(("delta", "decimals"), [(0.005, 4), (0.05, 3), (0.5, 2), (5.0, 1), (0.0, 4)])
def test_quality_has_one_figure_more_than_the_margin(delta: float, decimals: int) -> None:
    assert quality_decimals(replace(example(), delta=delta)) == decimals


def test_counts_spans_and_moments() -> None:
    assert (count(1, "run"), count(1024, "run"), count(2, "try", "tries")) == ("1 run", "1,024 runs", "2 tries")
    assert (span([5, 5]), span(iter([4, 5, 5]))) == ("5", "4 to 5")
    assert (moment("2026-07-01T12:00:00Z"), moment(None)) == ("2026-07-01 12:00:00 UTC", "–")
    assert (unique(["95 %", "95 %"]), unique(["95 %", "90 %"])) == ("95 %", "")


def test_direction_of_the_metric() -> None:
    assert better_if(example()) == "more is better"
    assert better_if(replace(example(), mode="min")) == "less is better"
