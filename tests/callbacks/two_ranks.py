"""Callbacks on two ranks, in processes of their own (`tests.forks`).

Each case is a function without arguments; what it gives is saved as /folder/<case>-<rank>.json.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from expkit import dist
from expkit.callbacks.early_stopper import EarlyStopper
from expkit.callbacks.lr_monitor import LRMonitor
from expkit.callbacks.memory_monitor import MemoryMonitor
from expkit.callbacks.nan_monitor import NaNMonitor
from expkit.callbacks.optimizer_monitor import OptimizerMonitor
from expkit.callbacks.speed_monitor import SpeedMonitor
from expkit.callbacks.system_metrics_monitor import SystemMetricsMonitor
from expkit.callbacks.threshold_stopper import ThresholdStopper
from expkit.callbacks.train_metrics import TrainMetrics
from expkit.duration import Time
from expkit.errors import TrialFailure
from expkit.loggers.memory import Memory
from tests.trainer.doubles import Net, trainer
from tests.trainer.two_ranks import loader, seeded

Result = dict[str, Any]


class Counting(Net):
    """Says what its batches take."""

    def flops_per_batch(self, batch: Any) -> int:
        return 1000 * len(batch[0])


def fitted(callbacks: list[Any], **settings: Any) -> Result:
    memory = Memory()
    t = trainer(**{"model": seeded(Counting), "loggers": [memory], "callbacks": callbacks, "max_duration": "3ep",
                   "eval_dataloader": loader(13, 4), "train_dataloader": loader(21, 6), "eval_interval": "3ba",
                   **settings})  # fmt: skip
    try:
        t.fit()
        error = None
    except TrialFailure as e:
        error = str(e)
    values = {name: [row[-1] for row in rows] for name, rows in memory.series.items()}
    return {"batch": t.state.timestamp.batch, "stop": t.state.stop_reason, "error": error, "values": values}


def early_in_batches() -> Result:
    return fitted([EarlyStopper("train/loss", min_delta=100, patience=Time.parse("2ba"))])


def early_by_the_clock() -> Result:
    """The clocks of the two are never alike; what counts is that of rank 0."""
    return fitted([EarlyStopper("train/loss", min_delta=100, patience=Time.parse("0.02sec"))], max_duration="99ep")


def early_by_evaluation() -> Result:
    return fitted([EarlyStopper("eval/accuracy", min_delta=1, patience=Time.parse("5ba"))])


def threshold_of_an_epoch() -> Result:
    return fitted([ThresholdStopper("train/loss", 100.0)])


def two_parts(outputs: torch.Tensor, targets: torch.Tensor) -> dict[str, torch.Tensor]:
    return {"all": torch.nn.functional.cross_entropy(outputs, targets), "none": 0 * outputs.sum()}


def threshold_of_a_part() -> Result:
    return fitted([ThresholdStopper("train/loss/all", 100.0)], loss_fn=two_parts)


def threshold_of_an_evaluation() -> Result:
    return fitted([ThresholdStopper("eval/accuracy", 0.0)])


def monitors() -> Result:
    speed = SpeedMonitor()
    callbacks = [speed, LRMonitor(), MemoryMonitor(3), OptimizerMonitor(batch_log_interval=3), SystemMetricsMonitor(3)]
    return {**fitted(callbacks), "flops": speed.state_dict()["moments"][-1][-1]}


def train_metrics() -> Result:
    """13 samples, 6 a batch: 6 6 1, of which the second rank gets none; each microbatch has two."""
    bare = Wrapped(seeded(Net).double())
    watch = TrainMetrics(interval=Time.parse("1ba"))
    return fitted([watch], model=bare, train_dataloader=loader(13, 6, double=True), device_train_microbatch_size=2,
                  eval_dataloader=None)  # fmt: skip


class Wrapped(torch.nn.Sequential):
    """Without the metrics of what is in it."""


def not_a_number() -> Result:
    data = loader(21, 6, shuffle=False)
    data._inputs[7] = float("nan")  # one sample of one rank
    return fitted([NaNMonitor()], train_dataloader=data)


def main(folder: Path, names: Sequence[str]) -> None:
    torch.set_num_threads(1)
    dist.initialize(store=f"file://{folder}/store", timeout_s=60)
    rank = dist.rank()
    for name in names:
        (folder / f"{name}-{rank}.json").write_text(json.dumps(globals()[name]()))
    dist.shutdown()
