"""Speed monitor: throughput over a moving window of the train clock, which evaluation and logging do not move."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from expkit.trainer.callback import Callback


@dataclass
class SpeedMonitor(Callback):
    """Records batches, samples and tokens a second, of all ranks and for each device, from the second batch on.

    Series: throughput/batches_per_sec, throughput/samples_per_sec, throughput/tokens_per_sec (where there are tokens),
    and the same under throughput/device/.
    """

    window: Annotated[int, Field(ge=1)] = 50
    """Batches that the rate is taken over; fewer at the start. The first batch, which warms up, is left out."""
    _moments: Any = field(default=None, init=False, repr=False, compare=False)

    def fit_start(self, state: Any, logger: Any) -> None:
        self._moments = deque(maxlen=self.window + 1)

    def batch_end(self, state: Any, logger: Any) -> None:
        now = state.timestamp
        self._moments.append((now.train_s, now.batch, now.sample, now.token))
        then_s, *then = self._moments[0]
        elapsed_s = now.train_s - then_s
        if elapsed_s <= 0:
            return
        rates = {}
        for name, count, before in zip(_NAMES, (now.batch, now.sample, now.token), then, strict=True):
            if count:
                rates[f"throughput/{name}"] = (count - before) / elapsed_s
                rates[f"throughput/device/{name}"] = (count - before) / elapsed_s / state.world_size
        logger.log_metrics(rates)


_NAMES = ("batches_per_sec", "samples_per_sec", "tokens_per_sec")
