from __future__ import annotations

import json

import psutil
import pytest

from expkit.callbacks.system_metrics_monitor import SystemMetricsMonitor
from expkit.loggers.memory import Memory
from tests.callbacks.lab import Lines, state_of, trainer


def test_the_load_of_the_machine_in_ranges_that_can_be() -> None:
    memory = Memory()
    with trainer([SystemMetricsMonitor(5)], loggers=[memory]) as t:
        t.fit()
    last = {name: rows[-1][-1] for name, rows in memory.series.items()}
    assert memory.get_timeseries("cpu_memory_used")["batch"] == [1, 6, 11]
    assert last["cpu_memory_total"] == psutil.virtual_memory().total
    assert 0 < last["cpu_memory_percent"] <= 100 and 0 <= last["disk_memory_percent"] <= 100
    assert last["network_bytes_sent"] >= 0 and last["network_bytes_recv"] >= 0
    assert all(0 <= value <= 100 for value in memory.get_timeseries("cpu_percentage")["value"])
    assert not [name for name in last if "rank" in name or name.startswith(("min_", "max_"))]


def test_bytes_on_the_network_go_on_from_those_before_a_resume() -> None:
    monitor = SystemMetricsMonitor()
    monitor.load_state_dict({"network": [10**15, 10**16]})
    monitor.fit_start(state_of(), Lines())
    sent, received = json.loads(json.dumps(monitor.state_dict()))["network"]
    assert sent == pytest.approx(10**15, rel=1e-3) and received == pytest.approx(10**16, rel=1e-3)


def test_state_before_training_is_state_too() -> None:
    assert SystemMetricsMonitor().state_dict() == {"network": [0, 0]}
