from __future__ import annotations

import psutil
import torch

from expkit.callbacks.memory_monitor import MemoryMonitor, _of_device
from expkit.loggers.memory import Memory
from tests.callbacks.lab import Lines, state_of, trainer


def look(monitor: MemoryMonitor, batch: int = 1) -> dict[str, float]:
    lines, state = Lines(), state_of()
    state.timestamp = state.timestamp._replace(batch=batch)
    monitor.batch_end(state, lines)  # type: ignore[arg-type]
    return lines.lines[0]


def test_on_a_cpu_it_records_what_the_process_holds_in_gb() -> None:
    seen = look(MemoryMonitor())
    assert set(seen) == {"memory/current_rss_mem", "memory/peak_rss_mem"}
    assert 0.5 < seen["memory/current_rss_mem"] / (psutil.Process().memory_info().rss / 1e9) < 2
    assert seen["memory/peak_rss_mem"] >= seen["memory/current_rss_mem"]


def test_the_peak_stays_when_the_memory_is_given_back() -> None:
    monitor = MemoryMonitor()
    before = look(monitor)["memory/current_rss_mem"]
    block = torch.ones(400_000_000 // 4)
    held = look(monitor)
    del block
    after = look(monitor)
    assert held["memory/current_rss_mem"] > before + 0.2
    assert after["memory/peak_rss_mem"] >= held["memory/current_rss_mem"]


def test_a_resumed_training_keeps_the_highest_peak() -> None:
    monitor = MemoryMonitor()
    monitor.load_state_dict({"memory/peak_rss_mem": 1234.5})
    assert look(monitor)["memory/peak_rss_mem"] == 1234.5
    assert monitor.state_dict() == {"memory/peak_rss_mem": 1234.5}


def test_it_looks_after_the_first_batch_and_then_now_and_then() -> None:
    memory = Memory()
    with trainer([MemoryMonitor(5)], loggers=[memory]) as t:
        t.fit()
    assert memory.get_timeseries("memory/peak_rss_mem")["batch"] == [1, 6, 11]


def test_the_series_of_a_cuda_device_bear_composers_names() -> None:
    kinds = ("allocated", "active", "inactive", "reserved")
    names = {f"memory/{moment}_{kind}_mem" for kind in kinds for moment in ("current", "peak")}
    assert set(_of_device(torch.device("cpu"))) == {*names, "memory/alloc_retries"}  # torch counts nothing there
