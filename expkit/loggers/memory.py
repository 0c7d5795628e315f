"""Memory: records kept in lists, for notebooks and tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from expkit.errors import UsageError, unknown
from expkit.trainer.logger import LoggerDestination


@dataclass
class Memory(LoggerDestination):
    """Keeps every number in memory; `get_timeseries(name)` gives them back with their moments."""

    series: Any = field(default_factory=dict, init=False, repr=False, compare=False)
    hyperparameters: Any = field(default_factory=dict, init=False, repr=False, compare=False)
    traces: Any = field(default_factory=list, init=False, repr=False, compare=False)

    def log_metrics(self, metrics: Mapping[str, float], state: Any) -> None:
        now = state.timestamp
        for name, value in metrics.items():
            moment = (now.batch, now.epoch, now.sample, now.token, state.train_s, state.cpu_s, state.wall_s, value)
            self.series.setdefault(name, []).append(moment)

    def log_hyperparameters(self, values: Mapping[str, Any], state: Any) -> None:
        self.hyperparameters.update(values)

    def log_traces(self, traces: Mapping[str, Mapping[str, int]], state: Any) -> None:
        self.traces.append(traces)

    def get_timeseries(self, name: str) -> dict[str, list[float]]:
        """Columns of equal length: batch, epoch, sample, token, train_s, cpu_s, wall_s, value.

        UsageError with the nearest name where nothing was logged under this one.
        """
        if name not in self.series:
            raise UsageError(unknown("series", name, self.series))
        rows = self.series[name]
        return {column: [row[i] for row in rows] for i, column in enumerate(_COLUMNS)}


_COLUMNS = ("batch", "epoch", "sample", "token", "train_s", "cpu_s", "wall_s", "value")
