"""On what terms a sweep is read."""

from __future__ import annotations

import dataclasses

import pytest

from expkit.analysis.load import Settings
from expkit.analysis.model import TargetInfo
from expkit.analysis.terms import Asked, delta, metric_and_mode, preset

SETTINGS = Settings("train_s", 0.95, 0.005, "eval/accuracy", "max", "none", True)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (None, ("eval/accuracy", "max")),
        ("eval/accuracy", ("eval/accuracy", "max")),
        ("eval/cross_entropy", ("eval/cross_entropy", "min")),
        ("train/loss", ("train/loss", "min")),
        ("eval/f1", ("eval/f1", "max")),
        ("eval/odd:min", ("eval/odd", "min")),
        ("eval/lossy:max", ("eval/lossy", "max")),
        ("eval/a:b", ("eval/a:b", "max")),
    ],
)
def test_the_mode_of_another_metric_is_said_or_read_off_its_name(asked: str | None, expected: tuple[str, str]) -> None:
    assert metric_and_mode(Asked(metric=asked), SETTINGS) == expected


def test_the_margin_belongs_to_the_sweep_s_own_metric() -> None:
    assert delta("eval/accuracy", SETTINGS) == 0.005
    assert delta("eval/cross_entropy", SETTINGS) == 0.0


def test_what_was_fixed_before_the_data_is_the_target_and_a_pilot_s_rungs() -> None:
    rungs = ((0.9, 0.75), (0.99, 0.79))
    pilot = TargetInfo("eval/accuracy", "max", 0.8, "lowest_final", "pilot", ladder=rungs)
    assert preset(pilot) == [0.8, 0.75, 0.79]
    assert preset(dataclasses.replace(pilot, given="number")) == [0.8]  # its ladder is from the sweep's own baseline
    assert preset(dataclasses.replace(pilot, exploratory=True)) == []
    assert preset(dataclasses.replace(pilot, value=None)) == []
