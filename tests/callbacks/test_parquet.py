"""Every series of every monitor reaches the store under the name that it was recorded by."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import torch

from expkit.callbacks.activation_monitor import ActivationMonitor
from expkit.callbacks.lr_monitor import LRMonitor
from expkit.callbacks.memory_monitor import MemoryMonitor
from expkit.callbacks.optimizer_monitor import OptimizerMonitor
from expkit.callbacks.runtime_estimator import RuntimeEstimator
from expkit.callbacks.speed_monitor import SpeedMonitor
from expkit.callbacks.system_metrics_monitor import SystemMetricsMonitor
from expkit.loggers.memory import Memory
from expkit.loggers.parquet import Parquet
from tests.callbacks.lab import net, trainer


def test_all_series_are_in_the_store_with_their_values(tmp_path: Path) -> None:
    model, memory = net(), Memory()
    monitors = [ActivationMonitor(), LRMonitor(), MemoryMonitor(), OptimizerMonitor(), RuntimeEstimator(),
                SpeedMonitor(time_unit="seconds"), SystemMetricsMonitor()]  # fmt: skip
    with trainer(monitors, model=model, optimizers=torch.optim.AdamW(model.parameters()),
                 loggers=[memory, Parquet(tmp_path, "0123456789ab")]) as t:  # fmt: skip
        t.fit()
    table = pa.concat_tables(pq.read_table(file) for file in sorted(tmp_path.glob("metrics-*.parquet")))
    rows = list(zip(table["name"].to_pylist(), table["batch"].to_pylist(), table["value"].to_pylist(), strict=True))
    assert {name for name, _, _ in rows} == set(memory.series)
    for name in memory.series:
        kept = memory.get_timeseries(name)
        stored = [(batch, value) for other, batch, value in rows if other == name]
        assert stored == list(zip(kept["batch"], kept["value"], strict=True))
    assert {name.split("/")[0] for name in memory.series} >= {"activations", "l2_norm", "memory", "throughput", "time"}
