from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from expkit.callbacks.speed_monitor import SpeedMonitor
from expkit.duration import Timestamp
from expkit.errors import PluginError, UsageError
from expkit.functional.peak_flops import peak_flops_per_s
from expkit.loggers.memory import Memory
from tests.callbacks.lab import Lines, net, state_of, trainer

SECONDS = [9.0, 10.0, 10.5, 12.5, 12.6, 13.0]


def rates(monitor: SpeedMonitor, seconds: list[float], *, tokens: int = 0, **given: Any) -> list[dict[str, float]]:
    """What is recorded where batches of 128 samples end at these seconds of the train clock."""
    state, lines = state_of(batch=(torch.zeros(128, 1), torch.zeros(128)), num_samples=128, **given), Lines()
    monitor.fit_start(state, lines)
    for train_s in seconds:
        state.timestamp = state.timestamp.to_next_batch(128, tokens, train_s)
        monitor.batch_end(state, lines)
    return lines.lines


def test_rates_over_a_window_hand_computed_from_the_second_batch_on() -> None:
    seen = [line["throughput/batches_per_sec"] for line in rates(SpeedMonitor(2), SECONDS[:4])]
    assert seen == [1.0, 2 / 1.5, 2 / 2.5]  # the first batch took 9 s to warm up and is left out


def test_samples_tokens_and_devices() -> None:
    assert rates(SpeedMonitor(10), [1.0, 2.0], tokens=1000, world_size=2) == [{
        "throughput/batches_per_sec": 1.0, "throughput/device/batches_per_sec": 0.5,
        "throughput/samples_per_sec": 128.0, "throughput/device/samples_per_sec": 64.0,
        "throughput/tokens_per_sec": 1000.0, "throughput/device/tokens_per_sec": 500.0,
    }]  # fmt: skip
    assert "throughput/tokens_per_sec" not in rates(SpeedMonitor(10), [1.0, 2.0])[0]


def test_a_clock_that_stood_still_divides_by_nothing() -> None:
    assert rates(SpeedMonitor(10), [1.0, 1.0, 1.0]) == []


class Counting(torch.nn.Linear):
    """Says what its batches take."""

    def flops_per_batch(self, batch: Any) -> int:
        return 1000 * len(batch[0])


def test_flops_and_the_share_of_what_the_device_can_do() -> None:
    line = rates(SpeedMonitor(gpu_flops_available=1e6), [1.0, 2.0, 3.0], model=Counting(1, 1))[-1]
    assert line["throughput/flops_per_sec"] == line["throughput/device/flops_per_sec"] == 128_000.0
    assert line["throughput/device/mfu"] == 0.128
    on_a_cpu = rates(SpeedMonitor(), [1.0, 2.0], model=Counting(1, 1))[-1]
    assert "throughput/flops_per_sec" in on_a_cpu and "throughput/device/mfu" not in on_a_cpu


def test_flops_that_are_no_method_are_refused() -> None:
    model = net()
    model.flops_per_batch = torch.tensor(3.0)
    with pytest.raises(UsageError, match=r"flops_per_batch of Sequential must be a method .* but is tensor"):
        trainer([SpeedMonitor()], model=model).fit()


@pytest.mark.parametrize(
    ("name", "precision", "tf32", "peak"),
    [
        ("NVIDIA H200", "amp_bf16", False, 989.5e12),
        ("NVIDIA H100 80GB HBM3", "fp32", True, 494.5e12),
        ("NVIDIA H100 PCIe", "amp_fp16", False, 756.5e12),
        ("NVIDIA H100 NVL", "fp32", False, 60e12),
        ("NVIDIA A100-SXM4-80GB", "fp32", False, 19.5e12),
        ("NVIDIA A100-SXM4-80GB", "fp32", True, 156e12),
        ("NVIDIA A10G", "amp_bf16", False, 70e12),
        ("NVIDIA A10", "amp_bf16", False, 125e12),
        ("NVIDIA L40S", "amp_bf16", False, 362e12),
        ("NVIDIA L4", "fp32", False, 30.3e12),
        ("Tesla V100-SXM2-16GB", "amp_fp16", False, 125e12),
        ("Tesla V100-PCIE-16GB", "amp_fp16", False, 112e12),
        ("Tesla V100-SXM2-16GB", "fp32", True, 15.7e12),
        ("Tesla V100-SXM2-16GB", "amp_bf16", False, None),
        ("Tesla T4", "amp_fp16", False, 65e12),
        ("NVIDIA A1000", "amp_bf16", False, None),
        ("Unheard Of 9000", "fp32", False, None),
        ("NVIDIA H200", "amp_fp8", False, None),
    ],
)
def test_peaks_are_looked_up_by_whole_words_and_unknown_is_none(
    name: str, precision: str, tf32: bool, peak: float | None
) -> None:
    assert peak_flops_per_s(name, precision, tf32=tf32) == peak


def test_a_resumed_window_goes_on_as_if_nothing_had_happened() -> None:
    """SpeedMonitor's window began anew with each resume (D23)."""
    whole = rates(SpeedMonitor(2), SECONDS, model=Counting(1, 1))
    first, second = SpeedMonitor(2), SpeedMonitor(2)
    rates(first, SECONDS[:3], model=Counting(1, 1))
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    now = Timestamp()
    for train_s in SECONDS[:3]:
        now = now.to_next_batch(128, 0, train_s)
    assert rates(second, SECONDS[3:], model=Counting(1, 1), timestamp=now) == whole[-3:]


def test_time_series_in_a_unit_of_choice() -> None:
    monitor, lines = SpeedMonitor(time_unit="minutes"), Lines()
    state = state_of(wall_s=100.0)
    monitor.fit_start(state, lines)
    state.timestamp = state.timestamp.to_next_batch(1, 0, 60.0)
    monitor.batch_end(state, lines)
    state.wall_s = 130.0  # an evaluation of half a minute
    monitor.eval_after_all(state, lines)
    state.timestamp = state.timestamp.to_next_batch(1, 0, 120.0)
    monitor.batch_end(state, lines)
    assert [lines.lines[-1][f"time/{name}"] for name in ("train", "val", "total")] == [2.0, 0.5, 2.5]
    assert not any(name.startswith("time/") for name in rates(SpeedMonitor(), [1.0, 2.0])[0])


def test_a_short_training_has_throughput_and_a_second_fit_goes_on() -> None:
    memory = Memory()
    with trainer([SpeedMonitor()], loggers=[memory], max_duration="3ba") as t:
        t.fit()
        t.fit("1ba")
    assert memory.get_timeseries("throughput/samples_per_sec")["batch"] == [2, 3, 4]
    assert all(value > 0 for value in memory.get_timeseries("throughput/device/batches_per_sec")["value"])


def test_a_window_needs_a_batch() -> None:
    with pytest.raises(PluginError, match="window_size: Input should be greater than or equal to 1"):
        SpeedMonitor(0)


def test_a_batch_without_samples_of_this_rank_asks_the_model_nothing() -> None:
    monitor = SpeedMonitor()
    state = state_of(model=SimpleNamespace(flops_per_batch=lambda batch: 1 / len(batch[0])), num_samples=4)
    monitor.fit_start(state, Lines())
    state.batch, state.num_samples = (torch.zeros(0, 6), torch.zeros(0)), 0
    monitor.batch_end(state, Lines())
    assert monitor.state_dict()["moments"] == [[0.0, 0, 0, 0, 0.0]]
