"""Speed monitor: throughput over a moving window of the train clock, which evaluation and logging do not move.

A step costs 7 microseconds, however long the window is; with `flops_per_batch` also what the model asks for it, and
over several ranks one collective of one number.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field

from expkit.errors import UsageError
from expkit.trainer.callback import Callback

_NAMES = [
    (f"throughput/{what}_per_sec", f"throughput/device/{what}_per_sec")
    for what in ("batches", "samples", "tokens", "flops")
]
_SECONDS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86400}


@dataclass
class SpeedMonitor(Callback):
    """Records how fast training goes, over a moving window of the train clock, from the second batch on.

    throughput/batches_per_sec: batches a second.
    throughput/samples_per_sec: samples a second, of all ranks together.
    throughput/tokens_per_sec: tokens a second, where batches have tokens.
    throughput/flops_per_sec: floating-point operations a second, where the model says `flops_per_batch(batch)`.
    throughput/device/{rate}: each of these of one device, divided by the number of ranks.
    throughput/device/mfu: the share, 0 to 1, of the operations that the device can do at most in this precision; only
    where that is known, never on CPUs.
    time/train, time/val, time/total: in `time_unit`, if one is given: the train clock, time in evaluations, their sum.
    """

    window_size: Annotated[int, Field(ge=1)] = 100
    """Batches that the rate is taken over; fewer at the start. The first batch, which warms up, is left out."""
    gpu_flops_available: Annotated[float | None, Field(gt=0)] = None
    """Operations a second that one device can do at most; null looks the device up in a table by its name."""
    time_unit: Literal["seconds", "minutes", "hours", "days"] | None = None
    """Unit of the time series; null records none of them, as every record has its moment on the clocks anyway."""
    _moments: Any = field(default=None, init=False, repr=False, compare=False)
    _flops_of: Any = field(default=None, init=False, repr=False, compare=False)
    _peak: Any = field(default=None, init=False, repr=False, compare=False)
    _wall_s: Any = field(default=0.0, init=False, repr=False, compare=False)
    _eval_s: Any = field(default=0.0, init=False, repr=False, compare=False)

    def init(self, state: Any, logger: Any) -> None:
        self._moments, self._eval_s, self._wall_s = None, 0.0, 0.0  # it may have been part of another training

    def fit_start(self, state: Any, logger: Any) -> None:
        if self._moments is None:
            self._moments = deque(maxlen=self.window_size + 1)
        self._flops_of = _method_of(state.model)
        self._peak = _peak_of(state) if self.gpu_flops_available is None else self.gpu_flops_available

    def batch_end(self, state: Any, logger: Any) -> None:
        now = state.timestamp
        flops = self._flops_until_now(state) if self._flops_of else 0.0
        moment = (now.train_s, now.batch, now.sample, now.token, flops)
        self._moments.append(moment)
        metrics = self._rates(moment, state.world_size)
        if self.time_unit:
            self._wall_s = state.wall_s
            metrics |= self._times(now.train_s)
        if metrics:
            logger.log_metrics(metrics)

    def eval_after_all(self, state: Any, logger: Any) -> None:
        self._eval_s += max(0.0, state.wall_s - self._wall_s)
        self._wall_s = state.wall_s

    def state_dict(self) -> dict[str, Any]:
        """The window as it is, and the time spent in evaluations."""
        moments = [list(moment) for moment in self._moments or ()]
        return {"moments": moments, "eval_s": self._eval_s, "wall_s": self._wall_s}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._moments = deque(map(tuple, state["moments"]), maxlen=self.window_size + 1)
        self._eval_s, self._wall_s = state["eval_s"], state["wall_s"]

    def _rates(self, moment: tuple[float, ...], world_size: int) -> dict[str, float]:
        then_s, *then = self._moments[0]
        elapsed_s = moment[0] - then_s
        rates: dict[str, float] = {}
        if elapsed_s <= 0:
            return rates
        for (name, of_device), count, before in zip(_NAMES, moment[1:], then, strict=True):
            if count:
                rate = rates[name] = (count - before) / elapsed_s
                rates[of_device] = rate / world_size
        if self._peak and moment[4]:
            rates["throughput/device/mfu"] = rates["throughput/device/flops_per_sec"] / self._peak
        return rates

    def _times(self, train_s: float) -> dict[str, float]:
        unit_s = _SECONDS[self.time_unit]  # type: ignore[index]
        return {
            "time/train": train_s / unit_s,
            "time/val": self._eval_s / unit_s,
            "time/total": (train_s + self._eval_s) / unit_s,
        }

    def _flops_until_now(self, state: Any) -> float:
        flops = float(self._flops_of(state.batch)) if state.num_samples else 0.0
        if state.world_size > 1:
            flops = _summed(flops)
        return flops + (self._moments[-1][4] if self._moments else 0.0)


def _method_of(model: Any) -> Callable[[Any], float] | None:
    """The model's `flops_per_batch`; UsageError where it is something else."""
    method = getattr(model, "flops_per_batch", None)
    if method is not None and not callable(method):
        raise UsageError(f"flops_per_batch of {type(model).__name__} must be a method that takes a batch and gives "
                         f"its floating-point operations, but is {method!r}")  # fmt: skip
    return method


def _peak_of(state: Any) -> float | None:
    if state.device.type != "cuda":
        return None
    import torch

    from expkit.functional.peak_flops import peak_flops_per_s

    tf32 = torch.get_float32_matmul_precision() != "highest"
    return peak_flops_per_s(torch.cuda.get_device_name(state.device), state.precision, tf32=tf32)


def _summed(flops: float) -> float:
    """Over all ranks, whose batches may differ in length."""
    import torch

    from expkit import dist

    return dist.all_reduce(torch.tensor([flops], dtype=torch.float64), control=True).item()
