"""Memory monitor: what training holds, of the CUDA device or of this process.

A record costs 0.2 ms, any other step a microsecond; over several ranks a record costs a collective as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from expkit.trainer.callback import Callback

_GB = 1e9
_KINDS = {"allocated": "allocated_bytes", "active": "active_bytes", "inactive": "inactive_split_bytes",
          "reserved": "reserved_bytes"}  # fmt: skip


@dataclass
class MemoryMonitor(Callback):
    """Records the memory of the first rank, in GB (10^9 bytes).

    On CUDA: memory/current_{kind}_mem and memory/peak_{kind}_mem, where kind is allocated, active, inactive or
    reserved, as torch's allocator counts them; memory/alloc_retries: how often it had to empty its cache.
    On a CPU: memory/current_rss_mem and memory/peak_rss_mem, what the whole process has in memory, libraries included.
    Over several ranks also memory/{series}_avg, memory/{series}_min and memory/{series}_max of each.
    Peaks are since the process started; a resumed training keeps the highest that was seen before.
    """

    batch_log_interval: Annotated[int, Field(ge=1)] = 10
    """Batches from one record to the next; the first is made after the first batch."""
    _peaks: Any = field(default_factory=dict, init=False, repr=False, compare=False)

    def batch_end(self, state: Any, logger: Any) -> None:
        if (state.timestamp.batch - 1) % self.batch_log_interval:
            return
        values = _of_device(state.device) if state.device.type == "cuda" else _of_process()
        for name in values:
            if name.startswith("memory/peak"):
                values[name] = self._peaks[name] = max(values[name], self._peaks.get(name, 0.0))
        logger.log_metrics(values if state.world_size == 1 else {**values, **_of_all(values)})

    def state_dict(self) -> dict[str, Any]:
        """The highest peaks so far."""
        return dict(self._peaks)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._peaks = dict(state)


def _of_device(device: Any) -> dict[str, float]:
    import torch

    stats = torch.cuda.memory_stats_as_nested_dict(device)
    values = {
        f"memory/{moment}_{kind}_mem": stats.get(key, {}).get("all", {}).get(moment, 0) / _GB
        for kind, key in _KINDS.items()
        for moment in ("current", "peak")
    }
    return {**values, "memory/alloc_retries": float(stats.get("num_alloc_retries", 0))}


def _of_process() -> dict[str, float]:
    current, peak = _of_linux() or _of_others()
    return {"memory/current_rss_mem": current / _GB, "memory/peak_rss_mem": max(current, peak) / _GB}


def _of_linux() -> tuple[int, int] | None:
    """Bytes in memory, now and at most; getrusage would count what the process was forked from."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return None
    found = dict(re.findall(r"(VmRSS|VmHWM):\s+([0-9]+) kB", status))
    return (int(found["VmRSS"]) * 1024, int(found.get("VmHWM", 0)) * 1024) if "VmRSS" in found else None


def _of_others() -> tuple[int, int]:
    import psutil

    info = psutil.Process().memory_info()
    return info.rss, getattr(info, "peak_wset", 0)


def _of_all(own: dict[str, float]) -> dict[str, float]:
    """Mean, least and most over the ranks, all of which come here at the same batch."""
    from expkit import dist

    said = dist.all_gather_json(own)
    found: dict[str, float] = {}
    for name in own:
        values = [one[name] for one in said if name in one]
        found |= {f"{name}_avg": sum(values) / len(values), f"{name}_min": min(values), f"{name}_max": max(values)}
    return found
