"""How sentences write numbers."""

from __future__ import annotations

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


def test_small_words() -> None:
    assert phrases.percent(0.0198) == "2 %"
    assert [phrases.share(x) for x in (0.0213, 0.273, 1.0, 4.1, 12.3)] == ["2.1 %", "27 %", "100 %", "410 %", "1,230 %"]
    assert phrases.seconds(12.345) == "12.3 s"
    assert phrases.seconds(12345) == "12345 s"
    assert (phrases.count(1, "pair"), phrases.count(0, "pair")) == ("1 pair", "0 pairs")
    assert phrases.listing([]) == ""
    assert phrases.listing(["a"]) == "a"
    assert phrases.listing(["a", "b", "c"]) == "a, b and c"
    assert phrases.listing(list("abcdefgh")) == "a, b, c, d, e, f and 2 more"
    assert [phrases.on_clock(c) for c in ("cpu_s", "train_s")] == ["in CPU time", "on the train clock"]
    assert phrases.quality(0.84123) == "0.8412"
