"""Callbacks across a checkpoint on disk: each takes up there what it was; the rest of the training is the same."""

from __future__ import annotations

from pathlib import Path

from expkit.callbacks.early_stopper import EarlyStopper
from expkit.callbacks.memory_monitor import MemoryMonitor
from expkit.callbacks.runtime_estimator import RuntimeEstimator
from expkit.callbacks.speed_monitor import SpeedMonitor
from expkit.callbacks.system_metrics_monitor import SystemMetricsMonitor
from expkit.callbacks.threshold_stopper import ThresholdStopper
from expkit.duration import Time
from expkit.loggers.memory import Memory
from expkit.trainer.callback import Callback
from tests.callbacks.lab import trainer


def watching() -> list[Callback]:
    return [EarlyStopper("train/loss", min_delta=100, patience=Time.parse("6ba")), MemoryMonitor(), RuntimeEstimator(),
            SpeedMonitor(4), SystemMetricsMonitor(), ThresholdStopper("train/loss", 0.0)]  # fmt: skip


def test_a_stop_and_a_window_come_where_they_would_have_come(tmp_path: Path) -> None:
    whole = Memory()
    with trainer(watching(), loggers=[whole]) as t:
        t.fit()
    assert t.state.timestamp.batch == 8  # best at 1, more than 6 batches later
    with trainer(watching()) as first:
        first.fit(until="5ba")
        saved = first.save_checkpoint(str(tmp_path / "five"))
        kept = {label: callback.state_dict() for label, callback in first.state.callbacks.items()}
    memory = Memory()
    with trainer(watching(), load_path=str(saved), loggers=[memory]) as second:
        taken = {label: callback.state_dict() for label, callback in second.state.callbacks.items()}
        second.fit()
    assert {k: v for k, v in taken.items() if k != "system_metrics_monitor"} == {
        k: v
        for k, v in kept.items()
        if k != "system_metrics_monitor"  # it counts on by itself
    }
    assert second.state.timestamp.batch == 8 and second.state.stop_reason == t.state.stop_reason
    assert memory.get_timeseries("train/loss")["value"] == whole.get_timeseries("train/loss")["value"][5:]
    assert memory.get_timeseries("throughput/samples_per_sec")["batch"] == [6, 7, 8]  # no new warm-up
