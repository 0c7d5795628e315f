"""System metrics monitor: how busy the machine is beside and because of this training.

A record costs 0.5 ms on a CPU, any other step a microsecond; over several ranks a record costs a collective as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from expkit.trainer.callback import Callback

_MEMORY = ("total", "available", "used", "percent")
_DISK = ("total", "used", "free", "percent")


@dataclass
class SystemMetricsMonitor(Callback):
    """Records the load of the machine; sizes are in bytes, shares in percent.

    cpu_percentage: share of all cores' time that was used, by anybody, since the last record.
    cpu_memory_total, cpu_memory_available, cpu_memory_used, cpu_memory_percent: the machine's memory.
    disk_memory_total, disk_memory_used, disk_memory_free, disk_memory_percent: the disk of the current folder.
    network_bytes_sent, network_bytes_recv: over all interfaces since training began.
    Where there is a CUDA device and NVIDIA's management library (pip install nvidia-ml-py), of this rank's device:
    gpu_percentage and memory_percentage: share of the time that it computed, and that its memory was in use;
    gpu_temperature_C, gpu_power_usage_W, memory_used_bytes and memory_free_bytes.
    Over several ranks, which may be on several machines, each is the mean; min_{series} and max_{series} are beside it.
    """

    batch_log_interval: Annotated[int, Field(ge=1)] = 100
    """Batches from one record to the next; the first is made after the first batch."""
    _cpu: Any = field(default=None, init=False, repr=False, compare=False)
    _network: Any = field(default=None, init=False, repr=False, compare=False)
    _earlier: Any = field(default=(0, 0), init=False, repr=False, compare=False)

    def fit_start(self, state: Any, logger: Any) -> None:
        self._cpu = _cpu_times()
        if self._network is None:
            self._network = _network_bytes()
        if state.device.type == "cuda" and not _has_management_library():
            logger.log_event("system_metrics_monitor", {"message": "the GPU's load is not recorded: it needs pynvml; "
                                                                   "pip install nvidia-ml-py"})  # fmt: skip

    def batch_end(self, state: Any, logger: Any) -> None:
        if (state.timestamp.batch - 1) % self.batch_log_interval:
            return
        values = {**self._of_cpu(), **_of_memory(), **self._of_network()}
        if state.device.type == "cuda" and _has_management_library():
            values |= _of_gpu(state.device)
        logger.log_metrics(values if state.world_size == 1 else _over_ranks(values))

    def state_dict(self) -> dict[str, Any]:
        """Bytes sent and received so far."""
        return {"network": list(self._so_far()) if self._network else list(self._earlier)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        sent, received = state["network"]
        self._earlier, self._network = (sent, received), None

    def _of_cpu(self) -> dict[str, float]:
        before, self._cpu = self._cpu, _cpu_times()
        total, idle = (now - then for now, then in zip(self._cpu, before, strict=True))
        return {"cpu_percentage": 100 * (total - idle) / total} if total > 0 else {}

    def _of_network(self) -> dict[str, float]:
        return dict(zip(("network_bytes_sent", "network_bytes_recv"), map(float, self._so_far()), strict=True))

    def _so_far(self) -> tuple[int, int]:
        sent, received = _network_bytes()
        return (self._earlier[0] + max(0, sent - self._network[0]),
                self._earlier[1] + max(0, received - self._network[1]))  # fmt: skip


def _cpu_times() -> tuple[float, float]:
    """Seconds of all cores since the machine started: in all, and idle."""
    import psutil

    times = psutil.cpu_times()._asdict()
    guests = times.get("guest", 0.0) + times.get("guest_nice", 0.0)  # they are counted as user time already
    return sum(times.values()) - guests, times["idle"] + times.get("iowait", 0.0)


def _network_bytes() -> tuple[int, int]:
    import psutil

    counters = psutil.net_io_counters()
    return (counters.bytes_sent, counters.bytes_recv) if counters else (0, 0)


def _of_memory() -> dict[str, float]:
    import psutil

    memory, disk = psutil.virtual_memory(), psutil.disk_usage(".")
    return {
        **{f"cpu_memory_{name}": float(getattr(memory, name)) for name in _MEMORY},
        **{f"disk_memory_{name}": float(getattr(disk, name)) for name in _DISK},
    }


def _has_management_library() -> bool:
    from importlib.util import find_spec

    return find_spec("pynvml") is not None


def _of_gpu(device: Any) -> dict[str, float]:
    import torch

    free, total = torch.cuda.mem_get_info(device)
    return {
        "gpu_percentage": float(torch.cuda.utilization(device)),
        "memory_percentage": float(torch.cuda.memory_usage(device)),
        "gpu_temperature_C": float(torch.cuda.temperature(device)),
        "gpu_power_usage_W": torch.cuda.power_draw(device) / 1000,  # it is told in milliwatts
        "memory_used_bytes": float(total - free),
        "memory_free_bytes": float(free),
    }


def _over_ranks(own: dict[str, float]) -> dict[str, float]:
    """Mean, least and most over the ranks, all of which come here at the same batch; no name has a rank in it."""
    from expkit import dist

    said = dist.all_gather_json(own)
    found: dict[str, float] = {}
    for name in own:
        values = [one[name] for one in said if name in one]
        found |= {name: sum(values) / len(values), f"min_{name}": min(values), f"max_{name}": max(values)}
    return found
