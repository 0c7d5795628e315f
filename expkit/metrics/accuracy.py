"""Accuracy of a classifier."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from expkit.trainer.contracts import Metric


@dataclass
class Accuracy(Metric):
    """Share of samples whose largest output is the target, over all samples seen."""

    _sums: Any = field(default=None, init=False, repr=False, compare=False)

    def reset(self) -> None:
        self._sums = None

    def update(self, outputs: Any, targets: Any) -> None:
        if self._sums is None:
            from expkit.functional.metrics import Accuracy as Sums

            self._sums = Sums()
        self._sums.update(outputs, targets)

    def compute(self) -> float:
        return float("nan") if self._sums is None else float(self._sums.compute())
