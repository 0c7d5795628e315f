"""Cross-entropy of a classifier."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from expkit.trainer.contracts import Metric


@dataclass
class CrossEntropy(Metric):
    """Mean cross-entropy in nats over all samples seen, whatever the sizes of their batches."""

    _sums: Any = field(default=None, init=False, repr=False, compare=False)

    def reset(self) -> None:
        self._sums = None

    def update(self, outputs: Any, targets: Any) -> None:
        if self._sums is None:
            from expkit.functional.metrics import CrossEntropy as Sums

            self._sums = Sums()
        self._sums.update(outputs, targets)

    def compute(self) -> float:
        return float("nan") if self._sums is None else float(self._sums.compute())
