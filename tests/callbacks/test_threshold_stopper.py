from __future__ import annotations

import json
import math
from typing import Any

import pytest
import torch

from expkit.callbacks.threshold_stopper import ThresholdStopper
from expkit.errors import PluginError, UsageError
from expkit.loggers.memory import Memory
from tests.callbacks.lab import Lines, state_of, trainer


def stops_at(stopper: ThresholdStopper, values: list[Any], name: str) -> int | None:
    """The evaluation, from 1, at which it asks to stop."""
    reasons: list[str] = []
    state = state_of(stop=reasons.append)
    stopper.eval_before_all(state, Lines())
    for number, value in enumerate(values, 1):
        state.eval_name, state.metrics = name.split("/")[0], {name: value}
        stopper.eval_end(state, Lines())
        if reasons:
            return number
    return None


@pytest.mark.parametrize(
    ("name", "threshold", "comp", "values", "number"),
    [
        ("eval/accuracy", 0.5, None, [0.1, 0.49, 0.5, 0.9], 3),
        ("eval/cross_entropy", 0.5, None, [2.0, 0.6, 0.4], 3),
        ("eval/accuracy", 0.5, "less", [0.9, 0.4], 2),
        ("eval/accuracy", 0.5, None, [math.nan, math.nan], None),
        ("eval/loss", 0.5, None, [math.nan, math.inf], None),
    ],
)
def test_it_stops_once_the_value_is_good_enough_and_never_on_nan(
    name: str, threshold: float, comp: Any, values: list[float], number: int | None
) -> None:
    assert stops_at(ThresholdStopper(name, threshold, comp), values, name) == number


def test_a_part_of_a_metric_is_watched_by_a_dotted_path() -> None:
    """Composer #2413."""
    assert stops_at(ThresholdStopper("eval/f1.macro", 0.5), [{"macro": 0.1}, {"macro": 0.9}], "eval/f1") == 2
    assert stops_at(ThresholdStopper("eval/f1.macro", 0.5), [0.1, 0.9], "eval/f1/macro") == 2
    assert stops_at(ThresholdStopper("eval/f1.macro", 0.5), [0.1, 0.9], "eval/f1.macro") == 2


@pytest.mark.parametrize(("on_batch", "batches"), [(True, 1), (False, 6)])
def test_the_loss_of_a_batch_or_the_mean_of_an_epoch(on_batch: bool, batches: int) -> None:
    with trainer([ThresholdStopper("train/loss", 100.0, stop_on_batch=on_batch)]) as t:
        t.fit()
    assert t.state.timestamp.batch == t.state.evaluated_at["eval"] == batches


def test_the_epoch_under_way_survives_a_resume() -> None:
    first, second = ThresholdStopper("train/loss", 0.0), ThresholdStopper("train/loss", 0.0)
    memory = Memory()
    with trainer([first], loggers=[memory], max_duration="4ba") as t:
        t.fit()
        second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    losses = memory.get_timeseries("train/loss")["value"]
    assert second._series.epoch_end(t.state) == pytest.approx(sum(losses) / 4)


def two_parts(outputs: torch.Tensor, targets: torch.Tensor) -> dict[str, torch.Tensor]:
    return {"near": 0.1 * torch.nn.functional.cross_entropy(outputs, targets), "far": outputs.square().mean() + 100}


def test_a_part_of_the_loss_is_a_series_too() -> None:
    for name, batches in (("near", 6), ("far", 12)):
        with trainer([ThresholdStopper(f"train/loss/{name}", 10.0)], loss_fn=two_parts) as t:
            t.fit()
        assert t.state.timestamp.batch == batches


@pytest.mark.parametrize("name", ["train/loss/farther", "train/accuracy"])
def test_a_series_of_training_that_is_not_recorded_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"unknown series to monitor .* there are: train/loss, train/loss/far"):
        trainer([ThresholdStopper(name, 0.0)], loss_fn=two_parts).fit()


def test_settings_that_cannot_be_are_refused() -> None:
    with pytest.raises(PluginError, match="threshold"):
        ThresholdStopper("eval/accuracy", math.nan)
