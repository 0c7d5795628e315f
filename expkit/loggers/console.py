"""Console: how training goes, as plain lines on stderr; stdout belongs to answers."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Annotated, Any

from pydantic import Field

from expkit.trainer.logger import LoggerDestination


@dataclass
class Console(LoggerDestination):
    """Prints the loss every few seconds, each evaluation when it is done, each event; only on the first rank."""

    interval_s: Annotated[float, Field(ge=0)] = 5.0
    """Seconds between two lines about the loss."""
    _due_s: Any = field(default=0.0, init=False, repr=False, compare=False)

    def log_metrics(self, metrics: Mapping[str, float], state: Any) -> None:
        if state.eval_name is not None and state.rank == 0:
            self._say(state, _listed({name: f"{value:.4g}" for name, value in metrics.items()}))

    def log_event(self, kind: str, payload: Mapping[str, Any], state: Any) -> None:
        if state.rank == 0:
            self._say(state, f"{kind}: {_listed(payload)}")

    def batch_end(self, state: Any, logger: Any) -> None:
        if state.rank == 0 and monotonic() >= self._due_s:
            self._due_s = monotonic() + self.interval_s
            self._say(state, f"train/loss {state.train_loss:.4g}")

    def _say(self, state: Any, what: str) -> None:
        now = state.timestamp
        sys.stderr.write(f"epoch {now.epoch}, batch {now.batch}/{state.max_steps}, {state.train_s:.1f} s: {what}\n")


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())
