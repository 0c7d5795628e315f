"""How sentences write numbers."""

from __future__ import annotations

import math

import pytest

from expkit.analysis import phrases
from expkit.analysis.model import Interval


def test_factors_show_the_digits_that_their_interval_carries() -> None:
    assert phrases.factor(Interval(1.2201, 1.1789, 1.2612, 5)) == "x1.220 [1.179, 1.261] (n=5)"
    assert phrases.factor(Interval(1.25, 1.0, 1.5, 3)) == "x1.25 [1.00, 1.50] (n=3)"
    assert phrases.factor(Interval(1.04, None, None, 1)) == "x1.04 (n=1, no interval)"
    assert phrases.factor(Interval()) == "no ratio"
    assert phrases.factor(Interval(1.0, 1.0, 1.0, 2)) == "x1.00 [1.00, 1.00] (n=2)"


def test_differences_carry_their_sign_and_zero_is_never_negative() -> None:
    assert phrases.difference(Interval(-0.0251, -0.028, -0.021, 5)) == "-0.0251 [-0.0280, -0.0210] (n=5)"
    assert phrases.difference(Interval(-1e-9, -0.01, 0.01, 5)) == "+0.000 [-0.010, +0.010] (n=5)"
    assert phrases.difference(Interval(0.5, None, None, 1)) == "+0.500 (n=1, no interval)"
    assert phrases.difference(Interval()) == "no difference known"


@pytest.mark.parametrize(
    ("value", "figures", "text"),
    [
        (1.9, 3, "1.90"), (1.934, 3, "1.93"), (0.0412, 3, "0.0412"), (0.8, 4, "0.8000"), (0.84123, 4, "0.8412"),
        (9.996, 3, "10.0"), (99.96, 3, "100"), (413.4, 3, "413"), (12345.0, 3, "12,345"), (1e8, 2, "100,000,000"),
        (1e9, 3, "1.00e+09"), (9.9996e-5, 3, "0.000100"), (0.00012, 3, "0.000120"), (9.1e-5, 2, "9.1e-05"),
        (-1.9, 3, "-1.90"), (0.0, 3, "0"), (-0.0, 3, "0"), (1e-320, 3, "1.00e-320"), (1.0, 1, "1"),
        (math.nan, 3, "not a number"), (math.inf, 3, "not a number"),
    ],
)  # fmt: skip
def test_a_measured_number_has_as_many_figures_as_its_neighbours(value: float, figures: int, text: str) -> None:
    assert phrases.significant(value, figures) == text


def test_units_around_numbers() -> None:
    assert [phrases.times(x) for x in (1.2, 0.953, 12.34)] == ["x1.20", "x0.953", "x12.3"]
    assert [phrases.seconds(x) for x in (1.9, 12.345, 12345)] == ["1.90 s", "12.3 s", "12,345 s"]
    assert [phrases.quality(x) for x in (0.84123, 0.8)] == ["0.8412", "0.8000"]
    assert [phrases.percent(x) for x in (0.0198, 1e-16, 0.0)] == ["2.0 %", "< 0.001 %", "0 %"]
    assert [phrases.share(x) for x in (0.0213, 0.273, 1.0, 4.1, 12.3, 3.1e6)] == [
        "2.1 %", "27 %", "100 %", "410 %", "1,230 %", "3,100,000-fold",
    ]  # fmt: skip


def test_small_words() -> None:
    assert (phrases.count(1, "pair"), phrases.count(0, "pair")) == ("1 pair", "0 pairs")
    assert phrases.listing([]) == ""
    assert phrases.listing(["a"]) == "a"
    assert phrases.listing(["a", "b", "c"]) == "a, b and c"
    assert phrases.listing(list("abcdefg")) == "a, b, c, d, e, f and g"  # never `and 1 more`
    assert phrases.listing(list("abcdefgh")) == "a, b, c, d, e, f and 2 more"
    assert [phrases.on_clock(c) for c in ("cpu_s", "train_s")] == ["in CPU time", "on the train clock"]
