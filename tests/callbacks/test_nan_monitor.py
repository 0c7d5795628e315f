from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from expkit.callbacks.nan_monitor import NaNMonitor
from expkit.errors import TrialFailure
from expkit.trainer.callback import Callback
from tests.callbacks.lab import net, trainer


class LossGoesBad(Callback):
    """Makes the loss of one batch what it is told."""

    def __init__(self, batch: int, value: float) -> None:
        self.batch, self.value = batch, value

    def after_loss(self, state: Any, logger: Any) -> None:
        if state.timestamp.batch + 1 == self.batch:
            state.loss = state.loss * self.value


@pytest.mark.parametrize(("value", "word"), [(float("nan"), "nan"), (float("inf"), "inf"), (-float("inf"), "-inf")])
@pytest.mark.parametrize("microbatch", [None, 3])
def test_the_batch_is_named_and_no_step_is_made_with_it(value: float, word: str, microbatch: int | None) -> None:
    model = net()
    t = trainer([NaNMonitor(), LossGoesBad(8, value)], model=model, device_train_microbatch_size=microbatch)
    with t, pytest.raises(TrialFailure, match=rf"the loss of batch 8 \(in epoch 1\) is {word}; no step was made"):
        t.fit()
    assert t.state.timestamp.batch == 7
    assert all(bool(torch.isfinite(weight).all()) for weight in model.parameters())


def test_without_it_the_same_training_is_a_result() -> None:
    with trainer([LossGoesBad(8, float("nan"))]) as t:
        t.fit()
    assert t.diverged


def test_a_good_loss_is_let_through() -> None:
    with trainer([NaNMonitor()], model=nn.Linear(6, 3)) as t:
        t.fit()
    assert t.state.timestamp.batch == 12
