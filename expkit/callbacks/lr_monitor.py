"""Learning-rate monitor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from expkit.trainer.callback import Callback


@dataclass
class LRMonitor(Callback):
    """Records the learning rate that each step was made with: `lr`, or `lr/0`, `lr/1` for several parameter groups."""

    def batch_end(self, state: Any, logger: Any) -> None:
        rates = [float(group["lr"]) for group in state.optimizer.param_groups]
        logger.log_metrics({"lr": rates[0]} if len(rates) == 1 else {f"lr/{i}": rate for i, rate in enumerate(rates)})
