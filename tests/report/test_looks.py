"""Arms are told apart by two channels, and the baseline by its grey."""

from __future__ import annotations

from expkit.report.looks import GREY, styles
from expkit.report.ranking import looks, primary_time, ranked
from tests.report.example_summary import example


def test_no_two_of_many_arms_look_alike() -> None:
    made = styles([f"arm{i}" for i in range(37)], "arm0")
    assert len({(s.colour, s.dash) for s in made.values()}) == 37
    assert len({(s.colour, s.shape) for s in made.values()}) == 37


def test_baseline_is_grey_and_nobody_else() -> None:
    made = looks(example())
    assert [label for label, style in made.items() if style.colour == GREY] == ["none"]
    assert set(made) == {arm.label for arm in example().arms}


def test_arms_stand_baseline_first_then_fastest_first() -> None:
    labels = [arm.label for arm in ranked(example())]
    assert labels[:2] == ["none", "progressive_resizing"]
    assert labels[-1] == "ema+label_smoothing"


def test_primary_time_is_the_interpolated_one() -> None:
    arm = example().arms[0]
    time, rung = primary_time(arm), primary_time(arm, 0.9)
    assert time is not None and (time.rule, time.share) == ("interpolated", None)
    assert rung is not None and (rung.rule, rung.share) == ("interpolated", 0.9)
    assert primary_time(arm, 0.5) is None
