"""Parquet: the numbers of one attempt in the store, where every report finds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from expkit.trainer.logger import LoggerDestination


@dataclass
class Parquet(LoggerDestination):
    """Writes every number into the attempt's folder, a closed file every two seconds; 1 microsecond a scalar."""

    attempt_dir: Path
    """Folder of the attempt."""
    id: str
    """First 12 digits of the trial's id."""
    replicate: int = 0
    """Which repeat of the trial."""
    attempt: int = 1
    """Which try at the replicate."""
    rank: int = 0
    """Which process of the trial."""
    _writer: Any = field(default=None, init=False, repr=False, compare=False)

    def log_metrics(self, metrics: Mapping[str, float], state: Any) -> None:
        now = state.timestamp
        stamp = (now.batch, now.epoch, now.iteration, now.sample, now.token, state.train_s, state.cpu_s, state.wall_s)
        self._opened().log_many(metrics, stamp)

    def log_table(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], state: Any) -> None:
        self._keep("table", name, state, columns, rows)

    def log_images(self, name: str, images: Any, state: Any) -> None:
        self._keep("images", name, state, _array(images))

    def log_histogram(self, name: str, values: Any, bins: int, state: Any) -> None:
        self._keep("histogram", name, state, _array(values), bins)

    def log_text(self, name: str, text: str, state: Any) -> None:
        self._keep("text", name, state, text)

    def log_traces(self, traces: Mapping[str, Mapping[str, int]], state: Any) -> None:
        self.log_event("traces", traces, state)

    def log_event(self, kind: str, payload: Mapping[str, Any], state: Any) -> None:
        from expkit.store.events import EventLog

        events = EventLog(self.attempt_dir, self.rank)  # events are rare; no file is kept open for them
        try:
            events.write(kind, state.timestamp.batch, **payload)
        finally:
            events.close()

    def state_dict(self) -> dict[str, Any]:
        """Nothing; but whoever goes on from a checkpoint finds all rows up to it on disk, for they are written now."""
        if self._writer is not None:
            self._writer.sync()
        return {}

    def upload_file(self, name: str, path: Path, state: Any) -> None:
        self._keep("file", name, state, path)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def _keep(self, what: str, name: str, state: Any, *content: Any) -> None:
        """A file beside the numbers, and the row that tells of it."""
        from expkit.store.artifacts import Artifacts

        artifacts = Artifacts(self.attempt_dir, self.rank)
        self.log_event("artifact", getattr(artifacts, what)(name, state.timestamp.batch, *content), state)

    def _opened(self) -> Any:
        if self._writer is None:
            from expkit.store.metrics import MetricsWriter

            self._writer = MetricsWriter(self.attempt_dir, self.id, self.replicate, self.attempt, self.rank)
        return self._writer


def _array(values: Any) -> Any:
    """A tensor as an array that shares no memory with the device; bfloat16, which numpy lacks, as float32."""
    if not hasattr(values, "detach"):
        return values
    tensor = values.detach().cpu()
    return tensor.numpy() if tensor.dtype.itemsize == 1 else tensor.float().numpy()
