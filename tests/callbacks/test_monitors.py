from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from expkit.callbacks.lr_monitor import LRMonitor
from expkit.callbacks.speed_monitor import SpeedMonitor
from expkit.duration import Timestamp
from expkit.loggers.memory import Memory
from expkit.testing.training import train


class Lines:
    """A logger that keeps what it is given."""

    def __init__(self) -> None:
        self.lines: list[dict[str, float]] = []

    def log_metrics(self, metrics: dict[str, float]) -> None:
        self.lines.append(metrics)


def rates(window: int, seconds: list[float], *, tokens: int = 0, world_size: int = 1) -> list[dict[str, float]]:
    monitor, lines = SpeedMonitor(window), Lines()
    state: Any = SimpleNamespace(timestamp=Timestamp(), world_size=world_size)
    monitor.fit_start(state, lines)
    for train_s in seconds:
        state.timestamp = state.timestamp.to_next_batch(128, tokens, train_s)
        monitor.batch_end(state, lines)
    return lines.lines


def test_rates_over_a_window_hand_computed_from_the_second_batch_on() -> None:
    seen = [line["throughput/batches_per_sec"] for line in rates(2, [9.0, 10.0, 10.5, 12.5])]
    assert seen == [1.0, 2 / 1.5, 2 / 2.5]  # the first batch took 9 s to warm up and is left out


def test_samples_tokens_and_devices() -> None:
    assert rates(10, [1.0, 2.0], tokens=1000, world_size=2) == [{
        "throughput/batches_per_sec": 1.0, "throughput/device/batches_per_sec": 0.5,
        "throughput/samples_per_sec": 128.0, "throughput/device/samples_per_sec": 64.0,
        "throughput/tokens_per_sec": 1000.0, "throughput/device/tokens_per_sec": 500.0,
    }]  # fmt: skip
    assert "throughput/tokens_per_sec" not in rates(10, [1.0, 2.0])[0]


def test_a_clock_that_stood_still_divides_by_nothing() -> None:
    assert rates(10, [1.0, 1.0, 1.0]) == []


def test_a_short_training_has_throughput_and_rates() -> None:
    memory = Memory()
    train(callbacks=[SpeedMonitor(), LRMonitor()], loggers=[memory], num_batches=3)
    assert memory.get_timeseries("throughput/samples_per_sec")["batch"] == [2, 3]
    assert all(value > 0 for value in memory.get_timeseries("throughput/device/batches_per_sec")["value"])
    lr = memory.get_timeseries("lr")
    assert (lr["batch"], lr["value"]) == ([1, 2, 3], [0.05] * 3)


def test_several_parameter_groups_are_told_apart() -> None:
    lines = Lines()
    state: Any = SimpleNamespace(optimizer=SimpleNamespace(param_groups=[{"lr": 0.1}, {"lr": 0.2}]))
    LRMonitor().batch_end(state, lines)
    assert lines.lines == [{"lr/0": pytest.approx(0.1), "lr/1": pytest.approx(0.2)}]
