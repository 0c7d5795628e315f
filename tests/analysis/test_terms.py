"""On what terms a sweep is read."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from expkit.analysis.guards.target import target_before_data
from expkit.analysis.load import Evaluations, Settings, Sweep
from expkit.analysis.model import TargetInfo
from expkit.analysis.replicate import Replicate
from expkit.analysis.terms import Asked, delta, metric_and_mode, preset, rungs_of, target_info

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


def test_every_budget_has_a_ladder_of_its_own_baseline() -> None:
    """Runs of two lengths in one median gave rungs that were the gain of neither."""

    def replicate(budget: str, arm: str = "none") -> Replicate:
        return Replicate(f"{arm}{budget}", 0, f"{arm} trainer.ssr={budget}", "baseline", 0, 0, "complete")

    def rising(to: float) -> Evaluations:
        at = np.array([1.0, 2.0])
        return Evaluations(at, at, {"train_s": at}, np.array([0.1, to]))

    runs = (replicate("1.0"), replicate("0.5"), replicate("0.5", "ema"), replicate("0.25", "ema"))
    ends = (0.9, 0.5, 0.7, 0.6)
    series = {(one.id, 0): rising(end) for one, end in zip(runs, ends, strict=True)}
    sweep = Sweep("s", None, None, None, {}, runs, series, ())
    info = target_info(sweep, SETTINGS, "eval/accuracy", "max", Asked(), "none")
    assert [(budget, rungs[0]) for budget, rungs in info.ladders] == [
        (0.5, (0.9, pytest.approx(0.46))),
        (1.0, (0.9, pytest.approx(0.82))),
    ]
    assert info.ladder == info.ladders[-1][1]
    own = rungs_of(info, runs)
    assert own["ema0.5", 0] == info.ladders[0][1]
    assert own["ema0.25", 0] == ()


def test_a_flat_target_that_was_allowed_is_exploratory_and_says_why() -> None:
    record = {"metric": "eval/accuracy", "value": 0.84, "rule": "lowest_final", "utc": "2026-03-01T10:00:00Z",
              "hash": "h" * 12, "slope": 0.01, "sd": 0.01, "flat": True}  # fmt: skip
    sweep = Sweep("s", None, None, None, record, (), {}, ())
    info = target_info(sweep, SETTINGS, "eval/accuracy", "max", Asked(), "none")
    assert (info.exploratory, info.flat, info.warning) == (True, True, "TARGET TOO FLAT: exploratory.")
    assert "too flat to time anything and was allowed all the same: exploratory; the baseline gains" in info.sentence


def test_what_was_fixed_before_the_data_is_the_target_and_a_pilot_s_rungs() -> None:
    rungs = ((0.9, 0.75), (0.99, 0.79))
    pilot = TargetInfo("eval/accuracy", "max", 0.8, "lowest_final", "pilot", ladder=rungs)
    assert preset(pilot) == [0.8, 0.75, 0.79]
    assert preset(dataclasses.replace(pilot, given="number")) == [0.8]  # its ladder is from the sweep's own baseline
    assert preset(dataclasses.replace(pilot, exploratory=True)) == []
    assert preset(dataclasses.replace(pilot, value=None)) == []


def test_a_target_of_another_baseline_is_amber_and_not_called_fixed() -> None:
    record = {"metric": "eval/accuracy", "value": 0.8, "rule": "lowest_final", "seeds": [1, 2], "ladder": [[0.9, 0.7]]}
    sweep = Sweep("ablate", None, None, None, record, (), {}, ())
    settings = dataclasses.replace(SETTINGS, target_of_another=True)
    info = target_info(sweep, settings, "eval/accuracy", "max", Asked(), "none")
    assert info.sentence.startswith("Target 0.8000 of eval/accuracy is of another baseline than this sweep's")
    assert target_before_data(info).light == "amber"
    assert not target_info(sweep, settings, "eval/accuracy", "max", Asked(target=0.7), "none").of_another
